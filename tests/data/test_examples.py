"""Random access to examples: what they hold, and from other processes."""

import multiprocessing
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

from lietransformer.data.examples import Examples
from lietransformer.data.loader import Loader
from lietransformer.data.reader import DatasetError, DatasetFile
from lietransformer.errors import UserError
from lietransformer.experiments.constellations.examples import ConstellationExamples
from lietransformer.experiments.qm9.examples import MoleculeExamples
from lietransformer.experiments.springs.examples import SpringExamples
from tests.data.batches import same


def test_constellations_of_each_split(constellations_file: Path) -> None:
    file = DatasetFile(constellations_file)
    for split, size in (("train", 400), ("validation", 50), ("test", 60), ("test_SE2", 120)):
        examples = ConstellationExamples(file, split, torch.float64)  # type: ignore[arg-type]
        assert len(examples) == size
        batch = examples.take(np.array([7, 3]))
        np.testing.assert_array_equal(batch.counts, file.array(f"{split}/counts")[[7, 3]])
        assert batch.counts.dtype == torch.int64
        present = file.array(f"{split}/mask")[[7, 3]]
        for name, values in (
            (f"{split}/positions", batch.positions),
            (f"{split}/instance", batch.instance),
        ):
            stored = file.array(name)[[7, 3]]
            for example in range(2):
                count = present[example].sum()
                np.testing.assert_array_equal(
                    values[example, :count], stored[example][present[example]]
                )
                assert batch.mask[example].tolist() == [
                    slot < count for slot in range(present.sum(axis=1).max())
                ]


def test_springs_are_split_by_position_in_the_file(springs_file: Path) -> None:
    file = DatasetFile(springs_file)  # 120 systems, of which 30 test, at most 20 validate
    masses = file.array("systems/masses")
    for n_train, validating in ((1, 1), (10, 10), (50, 20), (70, 20)):
        for split, rows in (
            ("train", slice(0, n_train)),
            ("validation", slice(90 - validating, 90)),
            ("test", slice(90, 120)),
        ):
            examples = SpringExamples(file, split, n_train=n_train, dtype=torch.float64)  # type: ignore[arg-type]
            batch = examples.take(np.arange(len(examples)))
            np.testing.assert_array_equal(batch.masses, masses[rows])
            np.testing.assert_array_equal(batch.stiffness, file.array("systems/stiffness")[rows])
            np.testing.assert_array_equal(batch.states, file.array("chunks/states")[rows])


@pytest.mark.parametrize("n_train", [0, 71, 10_000])
def test_more_springs_than_there_are(springs_file: Path, n_train: int) -> None:
    with pytest.raises(UserError, match="1 to 70 of the 120 systems"):
        SpringExamples(DatasetFile(springs_file), "train", n_train=n_train)


def test_longer_pieces_of_test_systems(springs_file: Path) -> None:
    file = DatasetFile(springs_file)
    for span, name in (("long_chunk", "test/long_states"), ("trajectory", "test/trajectories")):
        examples = SpringExamples(file, "test", n_train=5, span=span, dtype=torch.float64)  # type: ignore[arg-type]
        batch = examples[4]
        np.testing.assert_array_equal(batch.states[0], file.array(name)[4])
        np.testing.assert_array_equal(batch.masses[0], file.array("systems/masses")[94])
    with pytest.raises(DatasetError, match="Only test systems"):
        SpringExamples(file, "train", n_train=5, span="trajectory")


def test_molecules_are_padded_to_the_largest_of_the_batch(
    real_qm9: DatasetFile, molecules: MoleculeExamples
) -> None:
    numbers = np.array([5, 17, 3])
    batch = molecules.take(numbers)
    assert batch.index.tolist() == real_qm9.array("split/train")[numbers].tolist()
    assert batch.positions.shape[1] == molecules.sizes[numbers].max()
    offsets = real_qm9.array("molecules/offsets")
    for example, number in enumerate(batch.index.tolist()):
        row = int(np.searchsorted(real_qm9.array("molecules/index"), number))
        atoms = slice(offsets[row], offsets[row + 1])
        size = offsets[row + 1] - offsets[row]
        assert batch.mask[example].tolist() == [i < size for i in range(batch.mask.shape[1])]
        np.testing.assert_allclose(
            batch.positions[example, :size], real_qm9.array("atoms/positions")[atoms], rtol=1e-6
        )
        np.testing.assert_array_equal(
            batch.charges[example, :size], real_qm9.array("atoms/charges")[atoms]
        )
        np.testing.assert_allclose(
            batch.targets[example], real_qm9.array("molecules/targets")[row], rtol=1e-6
        )
    assert (batch.positions[~batch.mask] == 0).all()
    assert (batch.charges[~batch.mask] == 0).all()


def test_draws_of_springs_are_disjoint_and_share_the_other_splits(springs_file: Path) -> None:
    file = DatasetFile(springs_file)
    masses = file.array("systems/masses")
    for draw in range(3):
        batch = SpringExamples(file, "train", n_train=5, draw=draw, dtype=torch.float64)[0]
        assert torch.equal(batch.masses[0], torch.tensor(masses[5 * draw]))
        for split, row in (("validation", 85), ("test", 90)):
            other = SpringExamples(file, split, n_train=5, draw=draw, dtype=torch.float64)[0]  # type: ignore[arg-type]
            assert torch.equal(other.masses[0], torch.tensor(masses[row]))
    again = pickle.loads(pickle.dumps(SpringExamples(file, "train", n_train=5, draw=2)))
    assert torch.equal(again[0].masses, batch.masses.float())
    with pytest.raises(DatasetError, match="training systems"):
        SpringExamples(file, "train", n_train=5, draw=10_000)


def test_smaller_training_sets_of_molecules_are_nested(real_qm9: DatasetFile) -> None:
    small, large = (MoleculeExamples(real_qm9, "train", n_train=n) for n in (10, 20))
    assert torch.equal(large.take(np.arange(10)).index, small.take(np.arange(10)).index)
    assert len(MoleculeExamples(real_qm9, "train")) == 100_000
    assert len(MoleculeExamples(real_qm9, "test", n_train=10)) == 13_083
    with pytest.raises(
        DatasetError, match="number of training molecules must be from 1 to 100,000"
    ):
        MoleculeExamples(real_qm9, "train", n_train=100_001)


def test_another_kind_of_dataset_is_refused(springs_file: Path) -> None:
    with pytest.raises(DatasetError, match="of the kind springs, not qm9"):
        MoleculeExamples(DatasetFile(springs_file), "train")


@pytest.mark.usefixtures("without_shape_checks")
def test_an_unknown_split_is_refused(springs_file: Path) -> None:
    with pytest.raises(ValueError, match="split must be one of train, validation, test"):
        SpringExamples(DatasetFile(springs_file), "training", n_train=5)  # type: ignore[arg-type]


def test_precision_is_what_was_asked_for(springs_file: Path) -> None:
    file = DatasetFile(springs_file)
    single = SpringExamples(file, "train", n_train=5)[0]
    double = SpringExamples(file, "train", n_train=5, dtype=torch.float64)[0]
    assert (single.states.dtype, double.states.dtype) == (torch.float32, torch.float64)
    assert torch.equal(single.states, double.states.float())


def test_a_batch_is_a_copy(springs: SpringExamples) -> None:
    springs.take(np.arange(3)).states.zero_()
    assert springs.take(np.arange(3)).states.abs().sum() > 0


def test_numbers_out_of_range(springs: SpringExamples) -> None:
    for number in (-1, 50):
        with pytest.raises(IndexError, match=f"example {number} of 50"):
            springs[number]


# Other processes.


def identity(batch: Any) -> Any:
    return batch


@pytest.mark.slow
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_data_loader_workers(
    springs: SpringExamples, molecules: MoleculeExamples, method: str
) -> None:
    """torch's own loader with worker processes, forked or fresh, gives the same batches."""
    examples: Examples[Any]
    for examples in (springs, molecules):
        loader: Loader[Any] = Loader(examples, 8, order_seed=0)
        batches = [batch.tolist() for batch in loader.batches(0)[:6]]
        workers: DataLoader[Any] = DataLoader(
            examples,  # type: ignore[arg-type]  # by its protocol, not by its class
            batch_sampler=batches,
            collate_fn=identity,
            num_workers=2,
            multiprocessing_context=multiprocessing.get_context(method),
        )
        expected = [examples.take(np.array(batch)) for batch in batches]
        assert all(same(a, b) for a, b in zip(expected, workers, strict=True))


def test_pickling_does_not_carry_the_data(molecules: MoleculeExamples) -> None:
    pickled = pickle.dumps(molecules)
    assert len(pickled) < 2_000
    assert same(pickle.loads(pickled)[5], molecules[5])


def test_random_access_does_not_read_the_whole_file(qm9_file: Path) -> None:
    """In a process of its own, whose memory grows by less than the file it reads from.

    Counted are both private memory and the pages of the file that are mapped; the kernel
    maps more than it is asked for, but not everything.
    """
    program = """
import re, sys
import numpy as np
from lietransformer.experiments.qm9.examples import (MoleculeExamples)
from lietransformer.data.reader import DatasetFile

def kilobytes(name):
    with open("/proc/self/status") as status:
        return int(re.search(name + r":\\s+(\\d+)", status.read())[1])

before = kilobytes("RssAnon"), kilobytes("RssFile")
examples = MoleculeExamples(DatasetFile(sys.argv[1], verify=False), "train")
rng = np.random.default_rng(0)
for _ in range(4):
    examples.take(rng.integers(len(examples), size=3))
print(kilobytes("RssAnon") - before[0], kilobytes("RssFile") - before[1])
"""
    result = subprocess.run(
        [sys.executable, "-c", program, str(qm9_file)], capture_output=True, text=True, check=True
    )
    private, mapped = (int(part) * 1024 for part in result.stdout.split())
    size = qm9_file.stat().st_size
    assert private < 0.2 * size
    assert 0 < mapped < 0.75 * size
