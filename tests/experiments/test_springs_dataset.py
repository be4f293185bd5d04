"""Springs: the generated trajectories, what is stored of them, and their order."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.linalg
import torch

from lietransformer.data.reader import DatasetFile
from lietransformer.dynamics import SpringSystem, rollout, systems_last
from lietransformer.errors import UserError
from lietransformer.experiments.springs.dataset import generate
from lietransformer.experiments.springs.plan import SpringsConfig
from tests.conftest import SMALL_SPRINGS


@pytest.fixture(scope="module")
def file(springs_file: Path) -> DatasetFile:
    return DatasetFile(springs_file)


def made(path: Path, **changes: object) -> DatasetFile:
    generate(SpringsConfig(**changes), path)
    return DatasetFile(path)


def system(file: DatasetFile, rows: slice) -> SpringSystem:
    masses = np.array(file.array("systems/masses")[rows])
    stiffness = np.array(file.array("systems/stiffness")[rows])
    return SpringSystem(torch.from_numpy(masses).T, torch.from_numpy(stiffness).T)


def test_what_is_stored(file: DatasetFile) -> None:
    shapes = {name: file.array(name).shape for name in file.names}
    assert shapes == {
        "times": (500,),
        "systems/masses": (120, 6),
        "systems/stiffness": (120, 6),
        "systems/initial": (120, 2, 6, 2),
        "chunks/start": (120,),
        "chunks/states": (120, 5, 2, 6, 2),
        "test/long_start": (30,),
        "test/long_states": (30, 100, 2, 6, 2),
        "test/trajectories": (30, 500, 2, 6, 2),
    }
    assert file.array("chunks/states").dtype == np.float64
    times = file.array("times")
    assert (times[0], times[-1]) == (0, 5)
    np.testing.assert_allclose(np.diff(times), 5 / 499, rtol=1e-10)


def test_trajectories_follow_the_exact_solution(file: DatasetFile) -> None:
    """exp(tA)·z, with the equations of motion written down once more, at t = 0, 1.25, 5."""
    trajectories = file.array("test/trajectories")
    times = file.array("times")
    errors = []
    for row in range(30):
        masses = file.array("systems/masses")[90 + row]
        k = file.array("systems/stiffness")[90 + row]
        pull = 2 * np.outer(k, k)
        np.fill_diagonal(pull, pull.diagonal() - 2 * k * k.sum())
        generator = np.block([[np.zeros((6, 6)), np.diag(1 / masses)], [pull, np.zeros((6, 6))]])
        for time in (0, 124, 499):
            start = trajectories[row, 0].reshape(12, 2)
            exact = scipy.linalg.expm(generator * times[time]) @ start
            errors.append(np.abs(exact - trajectories[row, time].reshape(12, 2)).max())
    assert np.median(errors) < 1e-4
    assert max(errors) < 0.1  # the lightest and stiffest system


def test_the_step_and_the_rule_are_those_of_the_model(file: DatasetFile) -> None:
    """Integrated again by the rollout that models use: the same to rounding."""
    initial = torch.from_numpy(np.array(file.array("systems/initial")[90:]))
    field = system(file, slice(90, None)).velocity
    states = rollout(field, systems_last(initial).contiguous(), step=5 / 499, states=500)
    again = states.movedim((4, 0), (0, 1)).numpy()
    np.testing.assert_allclose(file.array("test/trajectories"), again, rtol=0, atol=1e-11)


def test_energy_and_momentum(file: DatasetFile) -> None:
    states = torch.from_numpy(np.array(file.array("test/trajectories")))
    momentum = states[:, :, 1].sum(dim=2)
    drift = (momentum - momentum[:, :1]).abs().max()
    assert drift < 1e-11
    assert momentum.abs().mean() > 0.1  # a single system is not at rest as a whole
    tested = system(file, slice(90, None))
    energy = torch.stack([tested.energy(systems_last(states[:, t])) for t in range(0, 500, 50)])
    relative = (energy / energy[0] - 1).abs()
    assert relative.median() < 1e-4
    assert relative.max() < 0.05
    assert (energy[1:] <= energy[:-1] * (1 + 1e-12)).all()  # the rule only ever loses energy


def test_chunks_are_pieces_of_the_trajectory(file: DatasetFile) -> None:
    trajectories = file.array("test/trajectories")
    start, chunks = file.array("chunks/start"), file.array("chunks/states")
    for row in range(30):
        begin = start[90 + row]
        np.testing.assert_array_equal(chunks[90 + row], trajectories[row, begin : begin + 5])
        long_begin = file.array("test/long_start")[row]
        np.testing.assert_array_equal(
            file.array("test/long_states")[row], trajectories[row, long_begin : long_begin + 100]
        )
    np.testing.assert_array_equal(file.array("systems/initial")[90:], trajectories[:, 0])


def test_chunks_of_other_systems_are_pieces_of_their_trajectory(file: DatasetFile) -> None:
    initial = torch.from_numpy(np.array(file.array("systems/initial")[:20]))
    field = system(file, slice(20)).velocity
    states = rollout(field, systems_last(initial).contiguous(), step=5 / 499, states=500)
    for row, begin in enumerate(file.array("chunks/start")[:20]):
        expected = states[begin : begin + 5, ..., row].numpy()
        np.testing.assert_allclose(file.array("chunks/states")[row], expected, rtol=0, atol=1e-11)


def test_chunks_are_consecutive_and_chosen_uniformly(tmp_path: Path) -> None:
    """Cut at multiples of the length; from the first to the last that is complete."""
    file = made(
        tmp_path / "x.h5", systems=3000, test=2900, states=17, chunk=5, long_chunk=4, particles=2
    )
    starts, counts = np.unique(file.array("chunks/start"), return_counts=True)
    assert starts.tolist() == [0, 5, 10]
    np.testing.assert_allclose(counts / 3000, 1 / 3, atol=0.04)
    starts, counts = np.unique(file.array("test/long_start"), return_counts=True)
    assert starts.tolist() == [0, 4, 8, 12]
    np.testing.assert_allclose(counts / 2900, 1 / 4, atol=0.04)


def test_parameters_and_initial_states_have_the_distributions_of_the_paper(
    tmp_path: Path,
) -> None:
    file = made(tmp_path / "x.h5", systems=5000, test=1, states=2, chunk=2, long_chunk=2)
    masses, stiffness = file.array("systems/masses"), file.array("systems/stiffness")
    initial = file.array("systems/initial")
    assert (masses.min(), masses.max()) == pytest.approx((0.1, 3.1), abs=0.001)
    assert (stiffness.min(), stiffness.max()) == pytest.approx((0, 5), abs=0.002)
    assert (masses.mean(), stiffness.mean()) == pytest.approx((1.6, 2.5), rel=0.02)
    assert initial[:, 0].std() == pytest.approx(0.4, rel=0.02)
    assert initial[:, 1].std() == pytest.approx(0.6, rel=0.02)
    # Nothing depends on anything else.
    columns = np.concatenate([masses, stiffness, initial.reshape(5000, -1)], axis=1)
    correlation = np.corrcoef(columns.T) - np.eye(36)
    assert np.abs(correlation).max() < 0.08
    # Over the systems of a generation batch (here all of them) momenta have mean zero,
    # positions have not, and neither have the momenta of a single system.
    np.testing.assert_allclose(initial[:, 1].mean(axis=0), 0, atol=1e-14)
    assert np.abs(initial[:, 0].mean(axis=0)).max() > 1e-4
    assert np.abs(initial[:, 1].mean(axis=1)).max() > 0.5


def test_momenta_are_centred_over_generation_batches(tmp_path: Path) -> None:
    file = made(
        tmp_path / "x.h5", systems=60, test=1, states=2, chunk=2, long_chunk=2, generation_batch=20
    )
    momentum = file.array("systems/initial")[:, 1].reshape(3, 20, 6, 2)
    np.testing.assert_allclose(momentum.mean(axis=1), 0, atol=1e-14)
    assert len(np.unique(file.array("systems/masses"), axis=0)) == 60  # no batch repeats another


def test_trajectories_that_grow_without_bound_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="Make the step smaller: raise states or lower duration"):
        made(tmp_path / "x.h5", systems=10, test=2, duration=5000.0)
    assert list(tmp_path.iterdir()) == []


def test_a_smaller_file_is_the_beginning_of_a_larger_one(
    tmp_path: Path, springs_file: Path
) -> None:
    """Nested by construction: a system does not depend on how many follow."""
    larger = DatasetFile(springs_file)
    smaller = made(tmp_path / "small.h5", systems=33, test=5)
    for name in ("systems/masses", "systems/stiffness", "systems/initial", "chunks/states"):
        np.testing.assert_array_equal(smaller.array(name), larger.array(name)[:33])


def test_pieces_do_not_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether test systems begin inside a piece or at its edge, the same is stored."""
    module = "lietransformer.experiments.springs.dataset"
    monkeypatch.setattr(f"{module}._NUMBERS_AT_ONCE", 10 * 8 * 2 * 6 * 2)
    settings = {"systems": 64, "states": 8, "chunk": 4, "long_chunk": 4, "generation_batch": 25}
    files = [made(tmp_path / f"{t}.h5", test=t, **settings) for t in (4, 14, 20, 37)]
    for file in files:
        count = len(file.array("test/trajectories"))
        np.testing.assert_array_equal(
            file.array("test/trajectories")[:, 0], file.array("systems/initial")[-count:]
        )
        np.testing.assert_array_equal(
            file.array("test/trajectories"), files[-1].array("test/trajectories")[-count:]
        )


@pytest.mark.parametrize(("particles", "dimension"), [(2, 1), (3, 3), (9, 2)])
def test_other_particle_numbers_and_dimensions(
    tmp_path: Path, particles: int, dimension: int
) -> None:
    shape = {"particles": particles, "dimension": dimension}
    file = made(tmp_path / "x.h5", systems=20, test=5, states=100, duration=1.0, **shape)
    assert file.array("chunks/states").shape == (20, 5, 2, particles, dimension)
    states = torch.from_numpy(np.array(file.array("test/trajectories")))
    tested = system(file, slice(15, None))
    first, last = (tested.energy(systems_last(states[:, t])) for t in (0, -1))
    torch.testing.assert_close(first, last, rtol=0.05, atol=0)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_bytes_whatever_the_number_of_threads(
    tmp_path: Path,
) -> None:
    program = (
        "import sys, torch; from pathlib import Path;"
        "torch.set_num_threads(int(sys.argv[1]));"
        "from lietransformer.experiments.springs.dataset import *;"
        "generate(SpringsConfig(systems=1500, test=9, seed=int(sys.argv[2])), Path(sys.argv[3]));"
        "assert torch.get_num_threads() == int(sys.argv[1])"
    )
    contents = []
    for threads, seed in ((1, 0), (3, 0), (1, 1)):
        path = tmp_path / f"{threads}-{seed}.h5"
        command = [sys.executable, "-c", program, str(threads), str(seed), str(path)]
        subprocess.run(command, check=True)
        contents.append(path.read_bytes())
    assert contents[0] == contents[1] != contents[2]


def test_memory_does_not_grow_with_the_number_of_systems(tmp_path: Path) -> None:
    """Their trajectories alone would be 1.5 GB."""
    program = (
        "import re, sys; from pathlib import Path;"
        "from lietransformer.experiments.springs.dataset import *;"
        "generate(SpringsConfig(systems=16000, test=10), Path(sys.argv[1]));"
        # Not ru_maxrss, in which a new process inherits the peak of the one that started it.
        "peak = re.search('VmHWM:\\\\s+(.*) kB', Path('/proc/self/status').read_text())[1];"
        "print(int(peak) / 2**20)"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "x.h5")]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert float(result.stdout) < 0.75  # GiB, importing torch included


def test_the_settings_are_stored(file: DatasetFile) -> None:
    assert SpringsConfig(**file.config) == SMALL_SPRINGS
