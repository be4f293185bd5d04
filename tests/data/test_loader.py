"""Batches: their order, buckets of similar size, and augmentation."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from lietransformer.data.augmentation import augment
from lietransformer.data.config import Augmentation
from lietransformer.data.loader import Loader
from lietransformer.data.reader import DatasetFile
from lietransformer.experiments.constellations.examples import ConstellationExamples
from lietransformer.experiments.qm9.examples import MoleculeExamples
from lietransformer.experiments.springs.examples import SpringExamples
from tests.cases import seeded
from tests.data.batches import same

# Order.


def test_every_epoch_is_a_permutation(
    constellations: ConstellationExamples, molecules: MoleculeExamples
) -> None:
    for examples in (constellations, molecules):
        loader: Loader[Any] = Loader(examples, 32, order_seed=5)
        seen = set()
        for epoch in range(3):
            batches = loader.batches(epoch)
            assert len(batches) == len(loader) == -(-len(examples) // 32)
            assert sorted(len(batch) for batch in batches)[1:] == [32] * (len(batches) - 1)
            order = np.concatenate(batches)
            np.testing.assert_array_equal(np.sort(order), np.arange(len(examples)))
            seen.add(order.tobytes())
        assert len(seen) == 3


def test_order_follows_from_the_seed(molecules: MoleculeExamples) -> None:
    def order(seed: int) -> bytes:
        return np.concatenate(Loader(molecules, 75, order_seed=seed).batches(2)).tobytes()

    assert order(0) == order(0) != order(1)


def test_without_a_seed_the_order_is_fixed(
    constellations: ConstellationExamples, molecules: MoleculeExamples
) -> None:
    in_file_order = np.concatenate(Loader(constellations, 32).batches(9))
    np.testing.assert_array_equal(in_file_order, np.arange(400))
    by_size = np.concatenate(Loader(molecules, 32).batches(9))
    assert (np.diff(molecules.sizes[by_size]) >= 0).all()
    np.testing.assert_array_equal(np.sort(by_size), np.arange(10_000))


def test_an_incomplete_batch_counts_unless_it_is_dropped(
    constellations: ConstellationExamples,
) -> None:
    assert [len(b.mask) for b in Loader(constellations, 150).epoch(0)] == [150, 150, 100]
    dropping = Loader(constellations, 150, order_seed=0, drop_incomplete=True)
    assert [len(b.mask) for b in dropping.epoch(0)] == [150, 150]
    assert len(dropping) == 2


def test_an_epoch_can_be_resumed(molecules: MoleculeExamples) -> None:
    """From any batch on: the same batches, with the same transformations."""
    loader = Loader(molecules, 500, order_seed=1, augmentation="SO3", augmentation_seed=2)
    whole = list(loader.epoch(3))
    rest = list(loader.epoch(3, first=17))
    assert len(rest) == 3
    assert all(same(a, b) for a, b in zip(whole[17:], rest, strict=True))


def test_buckets_waste_little_and_leave_batches_random(molecules: MoleculeExamples) -> None:
    def real_share(batches: list[np.ndarray]) -> float:
        sizes = [molecules.sizes[batch] for batch in batches]
        return sum(s.sum() for s in sizes) / sum(len(s) * s.max() for s in sizes)

    shares = [
        real_share(Loader(molecules, 75, order_seed=0, size_pool=n).batches(0)) for n in (1, 8, 64)
    ]
    assert shares == pytest.approx([0.72, 0.94, 0.98], abs=0.015)
    loader = Loader(molecules, 75, order_seed=0, size_pool=8)
    # Molecules that were together in one epoch are not together in the next.
    first, second = (
        {number: batch for batch, numbers in enumerate(loader.batches(e)) for number in numbers}
        for e in (0, 1)
    )
    together = [n for n in range(10_000) if first[n] == first[0]]
    assert len({second[n] for n in together}) > 5
    # Sizes do not rise along the epoch: the order of batches is random.
    means = [molecules.sizes[batch].mean() for batch in loader.batches(0)]
    assert abs(np.corrcoef(means, np.arange(len(means)))[0, 1]) < 0.3


def test_batches_are_random_by_default(molecules: MoleculeExamples) -> None:
    """The mean size of a batch varies as that of molecules drawn independently."""
    batches = Loader(molecules, 75, order_seed=0).batches(0)
    means = [molecules.sizes[batch].mean() for batch in batches if len(batch) == 75]
    expected = molecules.sizes.std() / 75**0.5
    assert np.std(means) == pytest.approx(expected, rel=0.2)
    pooled = Loader(molecules, 75, order_seed=0, size_pool=8).batches(0)
    assert np.std([molecules.sizes[batch].mean() for batch in pooled]) > 5 * expected


def test_batch_size_zero_is_refused(constellations: ConstellationExamples) -> None:
    with pytest.raises(ValueError, match="batch_size must be at least 1"):
        Loader(constellations, 0)


# Augmentation.


def distances(points: Tensor) -> Tensor:
    return (points[:, None] - points[None]).norm(dim=-1)


@pytest.mark.parametrize("kind", ["T2", "SE2"])
def test_constellations_are_moved_as_a_whole(
    constellations: ConstellationExamples, kind: Augmentation
) -> None:
    plain = next(Loader(constellations, 100).epoch(0))
    moved = next(Loader(constellations, 100, augmentation=kind).epoch(0))
    assert torch.equal(plain.mask, moved.mask)
    assert torch.equal(plain.counts, moved.counts)
    assert (moved.positions[~moved.mask] == 0).all()
    for example in range(100):
        real = plain.mask[example]
        before, after = plain.positions[example, real], moved.positions[example, real]
        torch.testing.assert_close(distances(after), distances(before), atol=1e-5, rtol=1e-4)
        shift = after - before
        is_translation = (shift - shift[0]).abs().max() < 1e-5
        assert is_translation == (kind == "T2")
        assert shift.abs().max() > 1e-3


def test_each_epoch_and_example_has_its_own_transformation(
    constellations: ConstellationExamples,
) -> None:
    loader = Loader(constellations, 80, augmentation="T2")
    plain = next(Loader(constellations, 400).epoch(0))
    shifts = []
    for epoch in range(3):
        # Of the first vertex, which every example has.
        moved = torch.cat([batch.positions[:, 0] for batch in loader.epoch(epoch)])
        shifts.append(moved - plain.positions[:, 0])
    everything = torch.cat(shifts)
    assert len(torch.unique(everything, dim=0)) == 1200
    # Translations are 2·N(0, 1).
    assert everything.std().item() == pytest.approx(2, rel=0.06)
    assert everything.mean().abs().item() < 0.15


@pytest.mark.parametrize(("kind", "scale"), [("T2", 2.0), ("SE2", 2.0), ("SO3", 1.0)])
def test_scale_of_the_translations(kind: Augmentation, scale: float) -> None:
    """What the origin is moved by."""
    origin = torch.zeros(4_000, 1, 3 if kind == "SO3" else 2, dtype=torch.float64)
    moved = augment(origin, kind, generator=seeded())
    assert moved.std().item() == pytest.approx(scale, rel=0.04)


def test_augmentation_has_its_own_seed(constellations: ConstellationExamples) -> None:
    """Changing one seed changes nothing that follows from the other."""

    def first(order_seed: int, augmentation_seed: int) -> Any:
        return next(
            Loader(
                constellations,
                64,
                order_seed=order_seed,
                augmentation="SE2",
                augmentation_seed=augmentation_seed,
            ).epoch(0)
        )

    one, other = first(0, 0), first(0, 1)
    assert torch.equal(one.instance, other.instance)
    assert not torch.equal(one.positions, other.positions)
    assert same(first(0, 0), one)
    state = torch.random.get_rng_state()
    first(3, 4)
    assert torch.equal(torch.random.get_rng_state(), state)  # nobody touched the global one


def test_molecules_are_rotated_by_haar_random_rotations(molecules: MoleculeExamples) -> None:
    positions = torch.eye(3, dtype=torch.float64).expand(4_000, 3, 3)
    origin = torch.zeros(4_000, 1, 3, dtype=torch.float64)
    moved = augment(torch.cat([origin, positions], dim=1), "SO3", generator=seeded())
    rotation = (moved[:, 1:] - moved[:, :1]).mT  # columns are the images of the axes
    torch.testing.assert_close(torch.linalg.det(rotation), torch.ones(4_000, dtype=torch.float64))
    assert rotation.mean(dim=0).abs().max() < 0.05
    # E[tr(R)] = 0 and E[tr(R)²] = 1 under the Haar measure.
    trace = rotation.diagonal(dim1=1, dim2=2).sum(dim=1)
    assert trace.mean().abs() < 0.05
    assert trace.square().mean().item() == pytest.approx(1, abs=0.06)
    batch = next(Loader(molecules, 75, augmentation="SO3").epoch(0))
    assert (batch.positions[~batch.mask] == 0).all()


@pytest.mark.parametrize("kind", ["T2", "SE2"])
def test_moved_springs_still_obey_their_equations(springs_file: Path, kind: Augmentation) -> None:
    """Positions move by g and momenta by dg: states remain states of one trajectory."""
    file = DatasetFile(springs_file)
    examples = SpringExamples(file, "test", n_train=5, span="long_chunk", dtype=torch.float64)
    plain = next(Loader(examples, 30).epoch(0))
    moved = next(Loader(examples, 30, augmentation=kind).epoch(0))
    assert (moved.states - plain.states).abs().max() > 1
    velocity = moved.states[:, :, 1] / moved.masses[:, None, :, None]
    step = 5 / 499
    numerical = (moved.states[:, 2:, 0] - moved.states[:, :-2, 0]) / (2 * step)
    error = (numerical - velocity[:, 1:-1]).square().mean()
    unmoved = plain.states[:, :, 1] / plain.masses[:, None, :, None]
    unmoved_numerical = (plain.states[:, 2:, 0] - plain.states[:, :-2, 0]) / (2 * step)
    torch.testing.assert_close(error, (unmoved_numerical - unmoved[:, 1:-1]).square().mean())


@pytest.mark.usefixtures("without_shape_checks")
def test_an_unknown_augmentation(constellations: ConstellationExamples) -> None:
    with pytest.raises(ValueError, match="augmentation must be one of none, T2, SE2, SO3"):
        Loader(constellations, 4, augmentation="SO2")  # type: ignore[arg-type]
