"""Springs in words, and a page of paths."""

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from lietransformer.data.inspection import COLOURS, Lines, spread
from lietransformer.data.reader import DatasetFile
from lietransformer.data.splits import largest_training_set
from lietransformer.dynamics import SpringSystem, systems_last
from lietransformer.experiments.springs.dataset import config_of

_SPRING = "#888888"


def describe(file: DatasetFile) -> Lines:
    config = config_of(file)
    largest = largest_training_set(config.systems, config.validation, config.test)
    masses = torch.from_numpy(np.array(file.array("systems/masses")))
    stiffness = torch.from_numpy(np.array(file.array("systems/stiffness")))
    whole = torch.from_numpy(np.array(file.array("test/trajectories")[:, [0, -1]]))
    tested = SpringSystem(masses[-config.test :].T, stiffness[-config.test :].T)
    first, last = (tested.energy(systems_last(whole[:, time])) for time in (0, 1))
    drift = ((last - first) / first).abs()
    return [
        (
            "systems",
            f"{config.systems:,} of {config.particles} particles in {config.dimension} dimensions",
        ),
        ("masses", f"{spread(masses.numpy(), '.2f')}"),
        ("stiffness", f"{spread(stiffness.numpy(), '.2f')} (a spring is the product of two)"),
        (
            "integration",
            f"{config.states} states from t = 0 to {config.duration:g}, "
            f"3/8-rule Runge–Kutta, step {config.step:.6g}, float64",
        ),
        (
            "energy drift",
            f"over a test trajectory, relative: median {drift.median():.1e}, "
            f"largest {drift.max():.1e}",
        ),
        ("training", f"the first n systems, n ≤ {largest:,}; one chunk of {config.chunk} states"),
        (
            "validation",
            f"min(n, {config.validation:,}) systems before the test systems, likewise",
        ),
        (
            "test",
            f"the last {config.test:,} systems: chunks of {config.chunk} and of "
            f"{config.long_chunk} states, and whole trajectories",
        ),
    ]


def draw(file: DatasetFile) -> Figure:
    config = config_of(file)
    states = file.array("test/trajectories")
    masses = file.array("systems/masses")[-config.test :]
    stiffness = file.array("systems/stiffness")[-config.test :]
    shown = min(6, config.test)
    columns = min(3, shown)
    rows = -(-shown // columns)
    figure = Figure(figsize=(max(8, 3.6 * columns), 3.6 * rows + 1.1), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).flat
    times = min(config.long_chunk, config.states)
    end = (times - 1) * config.step
    for row, axis in enumerate(axes):
        if row >= shown:
            axis.set_axis_off()
            continue
        _draw_springs(axis, states[row, :times, 0], masses[row], stiffness[row])
        axis.set_title(f"test system {row}", fontsize=9)
    seen = " (the first two coordinates)" if config.dimension > 2 else ""
    figure.suptitle(
        f"Springs: paths from t = 0 to {end:.2f}{seen}; discs at the start, their area the mass;\n"
        "lines between them the springs, as thick as they are stiff"
    )
    return figure


def _draw_springs(axis: Axes, path: np.ndarray, masses: np.ndarray, stiffness: np.ndarray) -> None:
    """One system; `path` is (times, particles, space)."""
    if path.shape[-1] == 1:  # on a line: time upward
        time = np.broadcast_to(np.linspace(0, 1, len(path))[:, None, None], path.shape)
        path = np.concatenate([path, time], axis=-1)
        axis.set_ylabel("time, as a share of what is shown", fontsize=8)
    path = path[..., :2]
    first, second = np.triu_indices(len(masses), k=1)
    springs_between = np.stack([path[0, first], path[0, second]], axis=1)
    width = stiffness[first] * stiffness[second] / 25 * 3  # at most 25, drawn 3 points wide
    axis.add_collection(
        LineCollection(springs_between, linewidths=width, colors=_SPRING, alpha=0.5, zorder=1)  # type: ignore[arg-type]
    )
    for particle, mass in enumerate(masses):
        colour = COLOURS[particle % len(COLOURS)]
        axis.plot(*path[:, particle].T, color=colour, linewidth=1.2, zorder=2)
        x, y = path[0, particle]
        axis.scatter(x, y, s=70 * mass, color=colour, edgecolor="white", linewidth=0.8, zorder=3)
    axis.set_aspect("equal", adjustable="datalim")
    axis.tick_params(labelsize=7)
