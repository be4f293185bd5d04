"""What the pages show: the right numbers in the right place (that they look well, people see)."""

from pathlib import Path

import numpy as np
import pytest
import torch
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure

from lietransformer.data.inspection import describe, draw_page
from lietransformer.data.reader import DatasetFile
from lietransformer.dynamics import SpringSystem, systems_last
from lietransformer.experiments.constellations import dataset as constellations
from lietransformer.experiments.constellations import inspection as constellations_inspection
from lietransformer.experiments.constellations.plan import ConstellationsConfig
from lietransformer.experiments.qm9 import inspection as qm9_inspection
from lietransformer.experiments.springs import dataset as springs
from lietransformer.experiments.springs import inspection as springs_inspection
from lietransformer.experiments.springs.plan import SpringsConfig


def test_springs_show_the_test_systems(springs_file: Path) -> None:
    file = DatasetFile(springs_file)
    figure = springs_inspection.draw(file)
    for row, axis in enumerate(figure.axes):
        discs = [c for c in axis.collections if isinstance(c, PathCollection)]
        masses = file.array("systems/masses")[90 + row]
        np.testing.assert_allclose([disc.get_sizes()[0] for disc in discs], 70 * masses)
        starts = [np.asarray(disc.get_offsets())[0] for disc in discs]
        np.testing.assert_allclose(starts, file.array("test/trajectories")[row, 0, 0])
        for particle, line in enumerate(axis.lines):
            path = file.array("test/trajectories")[row, :100, 0, particle]
            np.testing.assert_allclose(np.asarray(line.get_xydata()), path)


def test_constellations_have_a_colour_for_each_instance(constellations_file: Path) -> None:
    file = DatasetFile(constellations_file)
    figure = constellations_inspection.draw(file)
    for row, axis in enumerate(figure.axes[:4]):
        instances = file.array("train/instance")[row]
        points = [line for line in axis.lines if line.get_marker() != "None"]
        assert len(points) == len(np.unique(instances[instances >= 0]))
        assert len({line.get_color() for line in points}) == len(points)


@pytest.mark.parametrize(
    "settings",
    [
        {"dimension": 1, "test": 1},
        {"dimension": 3, "test": 4},
        {"particles": 12, "test": 7},
    ],
)
def test_unusual_springs(tmp_path: Path, settings: dict[str, int]) -> None:
    config = SpringsConfig(systems=20, states=20, long_chunk=10, **settings)
    springs.generate(config, tmp_path / "x.h5")
    draw_page(DatasetFile(tmp_path / "x.h5"), tmp_path / "x.PNG")
    assert (tmp_path / "x.PNG").stat().st_size > 10_000


@pytest.mark.parametrize("settings", [{"test": 1}, {"repetitions": 5}])
def test_unusual_constellations(tmp_path: Path, settings: dict[str, int]) -> None:
    config = ConstellationsConfig(**{"train": 5, "validation": 1, "test": 5} | settings)
    constellations.generate(config, tmp_path / "x.h5")
    file = DatasetFile(tmp_path / "x.h5")
    draw_page(file, tmp_path / "x.png")
    assert "rotated by any angle" in describe(file)


def test_molecules_are_not_drawn_as_their_mirror_image() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        positions = rng.normal(size=(5, 3))
        figure = Figure()
        axis = figure.add_subplot(projection="3d")
        qm9_inspection._draw_molecule(axis, positions, np.full(5, 6))
        (balls,) = (c for c in axis.collections if len(c._offsets3d[0]) == 5)
        drawn = np.stack(balls._offsets3d, axis=1)
        before, after = ((p - p[0])[1:4] for p in (positions, np.asarray(drawn)))
        assert np.linalg.det(before) == pytest.approx(np.linalg.det(after))


def test_the_energy_drift_is_that_of_the_test_systems(springs_file: Path) -> None:
    file = DatasetFile(springs_file)
    masses, k = (torch.tensor(file.array(f"systems/{n}")[90:]).T for n in ("masses", "stiffness"))
    states = torch.tensor(file.array("test/trajectories"))
    first, last = (
        SpringSystem(masses, k).energy(systems_last(states[:, time])) for time in (0, -1)
    )
    drift = (last / first - 1).abs()
    assert f"median {drift.median():.1e}, largest {drift.max():.1e}" in describe(file)
