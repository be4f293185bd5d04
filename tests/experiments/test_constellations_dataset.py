"""Constellations: patterns, placement, counts, splits and the transformed copies."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch

from lietransformer.data.reader import DatasetFile
from lietransformer.experiments.constellations.dataset import (
    PATTERNS,
    Constellations,
    draw,
    generate,
)
from lietransformer.experiments.constellations.plan import ConstellationsConfig
from tests.cases import seeded


def drawn(count: int = 500, **changes: object) -> Constellations:
    config = ConstellationsConfig(**changes)
    return draw(config, count, generator=seeded())


def test_patterns() -> None:
    assert list(PATTERNS) == ["square", "triangle", "pentagon", "L"]
    for name, vertices in (("square", 4), ("triangle", 3), ("pentagon", 5)):
        roots = torch.view_as_complex(PATTERNS[name].contiguous())
        torch.testing.assert_close(roots**vertices, torch.ones_like(roots))
        assert len(np.unique(roots.numpy().round(6))) == vertices
    assert PATTERNS["L"].tolist() == [[0, 0], [1, 0], [2, 0], [2, 1], [2, 2]]


def test_an_example_has_34_slots_of_which_the_present_instances_fill_theirs() -> None:
    examples = drawn()
    assert examples.positions.shape == (500, 34, 2)
    sizes = torch.tensor([len(vertices) for vertices in PATTERNS.values()] * 2)
    for number, size in enumerate(sizes):
        vertices = (examples.instance == number).sum(dim=1)
        assert torch.equal(vertices, examples.present[:, number] * size)
    assert torch.equal(examples.mask, examples.instance >= 0)
    assert (examples.positions[~examples.mask] == 0).all()


def test_counts_are_the_numbers_of_present_instances() -> None:
    examples = drawn()
    by_repetition = examples.present.unflatten(1, (2, 4))
    assert torch.equal(examples.counts, by_repetition[:, 0].long() + by_repetition[:, 1])
    assert set(examples.counts.unique().tolist()) == {0, 1, 2}


def test_at_least_one_instance_and_otherwise_a_fair_coin() -> None:
    examples = drawn(20_000)
    assert examples.present.any(dim=1).all()
    # Given that not all 8 are absent, each is present with probability ½ / (1 − 2⁻⁸).
    expected = 0.5 / (1 - 0.5**8)
    share = examples.present.double().mean(dim=0)
    torch.testing.assert_close(share, torch.full_like(share, expected), rtol=0, atol=0.015)
    rare = drawn(200, keep_probability=0.01)
    assert rare.present.any(dim=1).all()
    assert rare.present.sum() < 220


def test_text_scales_each_example_by_its_own_vertices() -> None:
    examples = drawn(variant="text")
    real = examples.mask[..., None]
    highest = torch.where(real, examples.positions, -math.inf).amax(dim=(1, 2))
    lowest = torch.where(real, examples.positions, math.inf).amin(dim=(1, 2))
    torch.testing.assert_close(highest, torch.ones_like(highest))
    torch.testing.assert_close(lowest, -torch.ones_like(lowest))


def test_text_rotates_scales_and_places_the_patterns() -> None:
    """Without noise, every instance is its pattern under the stored transformation."""
    examples = drawn(50, variant="text", noise=0.0, upscale=1.5)
    for row in range(50):
        unscaled, stored = [], []
        for number in examples.present[row].nonzero()[:, 0].tolist():
            template = torch.view_as_complex(list(PATTERNS.values())[number % 4].contiguous())
            turn = torch.polar(examples.scale[row, number], examples.angle[row, number])
            centre = torch.view_as_complex(examples.centre[row, number])
            unscaled.append(torch.view_as_real(turn * template + centre))
            stored.append(examples.positions[row][examples.instance[row] == number])
        everything = torch.cat(unscaled)
        lowest, highest = everything.min(), everything.max()
        for expected, found in zip(unscaled, stored, strict=True):
            scaled = 2 * (expected - lowest) / (highest - lowest) - 1
            distance = (scaled[:, None] - found[None]).norm(dim=-1)
            assert distance.min(dim=0).values.max() < 1e-12  # each vertex is there, in any order
            assert distance.min(dim=1).values.max() < 1e-12


def test_release_places_the_patterns_as_the_authors_code_does() -> None:
    """Polygons at roots of unity + 2 and 3 × a point of the field, an L at its own + 1.

    Both are rotated about the origin of those coordinates. The scale is that of all 34 slots, so
    the vertices that are there need not reach the border.
    """
    config = ConstellationsConfig(noise=0.0)
    examples = draw(config, 50, generator=seeded())
    for row in range(50):
        placed = {}
        for number in range(8):
            name = list(PATTERNS)[number % 4]
            offset = 1 + 1j if name == "L" else 2 + 2j
            template = torch.view_as_complex(PATTERNS[name].contiguous()) + offset
            turn = torch.polar(torch.ones(()).double(), examples.angle[row, number])
            centre = torch.view_as_complex(examples.centre[row, number])
            placed[number] = torch.view_as_real(turn * template + centre)
        everything = torch.cat(list(placed.values()))
        lowest, highest = everything.min(), everything.max()
        for number in examples.present[row].nonzero()[:, 0].tolist():
            expected = 2 * (placed[number] - lowest) / (highest - lowest) - 1
            found = examples.positions[row][examples.instance[row] == number]
            distance = (expected[:, None] - found[None]).norm(dim=-1)
            assert distance.min(dim=0).values.max() < 1e-12
            assert distance.min(dim=1).values.max() < 1e-12


def test_release_has_the_sizes_and_places_of_the_authors_data() -> None:
    """Pattern radius 0.031 ± 0.003; an L always in the lower left, polygons everywhere."""
    examples = drawn(2_000)
    radii = []
    for row in range(500):
        for number in examples.present[row].nonzero()[:, 0].tolist():
            if number % 4 != 3:
                vertices = examples.positions[row][examples.instance[row] == number]
                radii.append((vertices - vertices.mean(dim=0)).norm(dim=-1).mean().item())
    assert np.mean(radii) == pytest.approx(0.031, abs=0.001)
    assert np.std(radii) == pytest.approx(0.003, abs=0.001)
    is_l = examples.instance % 4 == 3
    assert examples.positions[is_l & examples.mask].max() < 0.2
    assert examples.positions[~is_l & examples.mask].max() > 0.95
    assert 23 < examples.centre[:, [3, 7]].max() < 24
    assert 70 < examples.centre.max() < 72


def test_release_has_no_scaled_instances() -> None:
    with pytest.raises(ValueError, match="upscale must be 0 with variant=release"):
        ConstellationsConfig(upscale=0.5)


def test_placement_is_uniform_within_its_bounds() -> None:
    examples = drawn(4_000, variant="text", upscale=0.5)
    limits = {
        "angle": (-0.33 * math.pi, 0.33 * math.pi),
        "scale": (1.0, 1.5),
        "centre": (0.0, 24.0),
    }
    for name, (low, high) in limits.items():
        values = getattr(examples, name)
        assert low <= values.min() < low + 0.01 * (high - low)
        assert high - 0.01 * (high - low) < values.max() <= high
        assert values.mean().item() == pytest.approx((low + high) / 2, abs=0.02 * (high - low))
        assert values.std().item() == pytest.approx((high - low) / math.sqrt(12), rel=0.02)
    assert (drawn(10).scale == 1).all()


def test_noise_moves_each_coordinate_by_a_normal_number() -> None:
    """Fit the scaling of each noisy example to the clean one of the same stream."""
    everything = {"variant": "text", "repetitions": 1, "keep_probability": 1.0, "upscale": 2.0}
    clean, noisy = drawn(400, noise=0.0, **everything), drawn(400, noise=0.1, **everything)
    template = torch.cat(list(PATTERNS.values()))
    owner = torch.repeat_interleave(torch.arange(4), torch.tensor([4, 3, 5, 5]))
    residuals = []
    for row in range(400):
        turn = torch.polar(clean.scale[row, owner], clean.angle[row, owner])
        placed = torch.view_as_real(turn * torch.view_as_complex(template))
        placed = placed + clean.centre[row, owner]
        side = (placed.max() - placed.min()) / 2
        in_field = (clean.positions[row] * side).flatten()
        design = torch.stack([noisy.positions[row].flatten(), torch.ones(34)], dim=1)
        fit = torch.linalg.lstsq(design, in_field[:, None]).solution
        # Two of 34 degrees of freedom went into the fit.
        residuals.append((in_field - (design @ fit)[:, 0]) * math.sqrt(34 / 32))
    noise = torch.cat(residuals)
    assert noise.std().item() == pytest.approx(0.1, rel=0.03)
    assert (noise**4).mean().item() == pytest.approx(3 * 0.1**4, rel=0.1)


def test_vertices_are_shuffled() -> None:
    """No slot is more likely than another to be absent or to belong to a pattern."""
    examples = drawn(8_000)
    share = examples.mask.double().mean(dim=0)
    torch.testing.assert_close(share, share.mean().expand_as(share), rtol=0, atol=0.03)
    squares = (examples.instance == 0).double().mean(dim=0)
    torch.testing.assert_close(squares, squares.mean().expand_as(squares), rtol=0, atol=0.02)


def test_splits_are_different_examples(constellations_file: Path) -> None:
    file = DatasetFile(constellations_file)
    positions = [file.array(f"{split}/positions") for split in ("train", "validation", "test")]
    assert [len(p) for p in positions] == [400, 50, 60]
    everything = np.concatenate([p.reshape(len(p), -1) for p in positions])
    assert len(np.unique(everything, axis=0)) == 510
    # Nor are they the same instances in another order: their extremes and centres differ.
    centres = np.concatenate([file.array(f"{s}/centre") for s in ("train", "validation", "test")])
    assert len(np.unique(centres)) == centres.size


def test_the_transformed_copies_are_the_stored_transformations_of_the_test_set(
    constellations_file: Path,
) -> None:
    file = DatasetFile(constellations_file)
    positions, mask = file.array("test/positions"), file.array("test/mask")
    for kind in ("T2", "SE2"):
        elements = file.array(f"test_{kind}_all/transformation")
        moved = file.array(f"test_{kind}_all/positions")
        rotation, translation = elements[:, :2, :2], elements[:, :2, 2]
        expected = np.einsum("eij,enj->eni", rotation, positions) + translation[:, None]
        np.testing.assert_allclose(moved[mask], expected[mask], atol=1e-13)
        assert (moved[~mask] == 0).all()
        assert len(np.unique(translation, axis=0)) == len(positions)
        identity = np.einsum("eij,ekj->eik", rotation, rotation)
        np.testing.assert_allclose(identity, np.broadcast_to(np.eye(2), identity.shape), atol=1e-13)
        np.testing.assert_allclose(np.linalg.det(rotation), 1)
    t2 = file.array("test_T2_all/transformation")[:, :2, :2]
    assert (t2 == np.eye(2)).all()
    shifts = [file.array(f"test_{kind}_all/transformation")[:, :2, 2] for kind in ("T2", "SE2")]
    assert len(np.unique(np.concatenate(shifts), axis=0)) == 2 * len(positions)
    angles = np.arctan2(*file.array("test_SE2_all/transformation")[:, [1, 0], 0].T)
    assert angles.min() < -2.5
    assert angles.max() > 2.5


@pytest.mark.parametrize("kind", ["T2", "SE2"])
def test_half_of_the_test_sets_of_table_1_is_untransformed(
    constellations_file: Path, kind: str
) -> None:
    file = DatasetFile(constellations_file)
    names = ("positions", "mask", "instance", "counts", "transformation")
    mixture = {name: file.array(f"test_{kind}/{name}") for name in names}
    for name in names:
        moved = file.array(f"test_{kind}_all/{name}")
        still = file.array(f"test/{name}") if name != "transformation" else np.eye(3)
        assert np.array_equal(mixture[name][1::2], moved)
        assert np.array_equal(mixture[name][0::2], np.broadcast_to(still, moved.shape))


def test_the_same_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        config = ConstellationsConfig(train=20, validation=5, test=5, seed=seed)
        generate(config, tmp_path / name)
    contents = [(tmp_path / name).read_bytes() for name in "abc"]
    assert contents[0] == contents[1] != contents[2]


def test_pieces_are_different_and_streamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lietransformer.experiments.constellations.dataset._EXAMPLES_AT_ONCE", 7)
    generate(ConstellationsConfig(train=20, validation=7, test=15), tmp_path / "x.h5")
    file = DatasetFile(tmp_path / "x.h5")
    for name, size in (("train", 20), ("validation", 7), ("test", 15), ("test_SE2", 30)):
        positions = file.array(f"{name}/positions").reshape(size, -1)
        assert len(np.unique(positions, axis=0)) == size
    moved = file.array("test_SE2/transformation")
    assert len(np.unique(moved, axis=0)) == 16  # each its own, and the identity


def test_one_repetition_of_everything() -> None:
    """The clouds of Figure 3: 17 points, all present."""
    examples = drawn(10, repetitions=1, keep_probability=1.0)
    assert examples.positions.shape == (10, 17, 2)
    assert examples.mask.all()
    assert (examples.counts == 1).all()
