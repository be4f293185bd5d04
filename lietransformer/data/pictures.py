"""A page of examples of each dataset."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from mpl_toolkits.mplot3d import Axes3D

from lietransformer.data.reader import DatasetFile
from lietransformer.experiments.constellations import dataset as constellations
from lietransformer.experiments.qm9 import dataset as qm9
from lietransformer.experiments.qm9.properties import ELEMENTS
from lietransformer.experiments.springs import dataset as springs
from lietransformer.files import cannot_write, complete_or_absent

# Okabe and Ito's colours, told apart by the colour-blind too; their yellow is too pale on white.
_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#999933", "#000000")
_MARKERS = ("s", "^", "p", "P")
_SPRING = "#888888"
# Colour and covalent radius (Å) of each element, by charge.
_ATOMS = {
    1: ("#F4F4F4", 0.31),
    6: ("#555555", 0.76),
    7: ("#0072B2", 0.71),
    8: ("#D55E00", 0.66),
    9: ("#009E73", 0.57),
}


def draw_page(file: DatasetFile, path: Path) -> None:
    """Draw examples of a dataset; the ending of the name says in which format."""
    figure = _PAGES[file.kind](file)
    with complete_or_absent(path) as part:
        try:
            figure.savefig(part, format=path.suffix[1:].lower(), dpi=150)
        except OSError as error:
            raise cannot_write(path, error) from error


# Constellations.


def _constellations_page(file: DatasetFile) -> Figure:
    columns = min(4, len(file.array("train/mask")), len(file.array("test/mask")))
    rows = {
        "train": "training",
        "test": "test",
        "test_T2_all": "the same, moved by T(2)",
        "test_SE2_all": "the same, moved by SE(2)",
    }
    figure = Figure(figsize=(max(7, 2.6 * columns + 0.6), 11), layout="constrained")
    figure.suptitle("Constellations, coloured by instance; the marker shows the pattern")
    axes = figure.subplots(len(rows), columns, squeeze=False)
    for line, (split, title) in zip(axes, rows.items(), strict=True):
        for column, axis in enumerate(line):
            _draw_constellation(axis, file, split, column)
        line[0].set_ylabel(title)
    names = list(constellations.PATTERNS)
    legend = [
        Line2D([], [], color="black", marker=marker, linestyle="", label=name)
        for name, marker in zip(names, _MARKERS, strict=True)
    ]
    figure.legend(handles=legend, loc="outside lower center", ncols=len(names), frameon=False)
    return figure


def _draw_constellation(axis: Axes, file: DatasetFile, split: str, row: int) -> None:
    positions = file.array(f"{split}/positions")[row]
    instances = file.array(f"{split}/instance")[row]
    for number in np.unique(instances[instances >= 0]):
        vertices = positions[instances == number]
        pattern = number % len(constellations.PATTERNS)
        colour = _COLOURS[number % len(_COLOURS)]
        outline = _path(vertices, closed=list(constellations.PATTERNS)[pattern] != "L")
        axis.plot(*outline.T, color=colour, linewidth=1, alpha=0.6)
        axis.plot(*vertices.T, color=colour, marker=_MARKERS[pattern], markersize=2.5, linestyle="")
    axis.set_aspect("equal", adjustable="datalim")
    axis.tick_params(labelsize=7)
    counts = file.array(f"{split}/counts")[row]
    named = zip(counts, constellations.PATTERNS, strict=True)
    axis.set_title(", ".join(f"{count} {name}" for count, name in named), fontsize=7)


def _path(vertices: np.ndarray, *, closed: bool) -> np.ndarray:
    """Shuffled vertices in the order in which a pen would join them."""
    centred = vertices - vertices.mean(axis=0)
    if closed:
        around = np.argsort(np.arctan2(centred[:, 1], centred[:, 0]))
        return vertices[np.append(around, around[0])]
    # An open chain: from one end always on to the nearest vertex that is left.
    order = [int(np.argmax(np.linalg.norm(centred, axis=1)))]
    while len(order) < len(vertices):
        distance = np.linalg.norm(vertices - vertices[order[-1]], axis=1)
        distance[order] = np.inf
        order.append(int(np.argmin(distance)))
    return vertices[order]


# Springs.


def _springs_page(file: DatasetFile) -> Figure:
    config = springs.config_of(file)
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
        colour = _COLOURS[particle % len(_COLOURS)]
        axis.plot(*path[:, particle].T, color=colour, linewidth=1.2, zorder=2)
        x, y = path[0, particle]
        axis.scatter(x, y, s=70 * mass, color=colour, edgecolor="white", linewidth=0.8, zorder=3)
    axis.set_aspect("equal", adjustable="datalim")
    axis.tick_params(labelsize=7)


# QM9.


def _qm9_page(file: DatasetFile) -> Figure:
    offsets = file.array("molecules/offsets")
    by_size = np.argsort(np.diff(offsets), kind="stable")
    shown = np.unique(np.linspace(0, len(by_size) - 1, 8).round().astype(int))
    columns = min(4, len(shown))
    rows = -(-len(shown) // columns)
    figure = Figure(figsize=(max(6, 3.2 * columns), 2.9 * rows + 1.1), layout="constrained")
    figure.suptitle("QM9: molecules from the smallest to the largest\n")
    positions, charges = file.array("atoms/positions"), file.array("atoms/charges")
    for place, row in enumerate(by_size[shown]):
        axis = figure.add_subplot(rows, columns, place + 1, projection="3d")
        atoms = slice(offsets[row], offsets[row + 1])
        _draw_molecule(axis, positions[atoms], charges[atoms])
        smiles = file.array("molecules/smiles")[row].decode()
        number, size = file.array("molecules/index")[row], offsets[row + 1] - offsets[row]
        axis.set_title(f"{smiles}\nmolecule {number}, {size} atoms", fontsize=9)
    legend = [
        Line2D([], [], marker="o", linestyle="", label=symbol, mfc=_ATOMS[charge][0], mec="black")
        for symbol, charge in ELEMENTS.items()
    ]
    figure.legend(handles=legend, loc="outside lower center", ncols=len(legend), frameon=False)
    return figure


def _draw_molecule(axis: Axes3D, positions: np.ndarray, charges: np.ndarray) -> None:
    """Balls and sticks, seen along the direction in which the molecule is thinnest."""
    centred = positions - positions.mean(axis=0)
    axes = np.linalg.svd(centred, full_matrices=True)[2]
    axes[2] *= np.linalg.det(axes)  # a rotation, not a reflection to the mirror image
    placed = centred @ axes.T
    radius = np.array([_ATOMS[charge][1] for charge in charges])
    distance = np.linalg.norm(placed[:, None] - placed[None], axis=-1)
    bonded = distance < 1.25 * (radius[:, None] + radius[None])
    for first, second in zip(*np.nonzero(np.triu(bonded, k=1)), strict=True):
        axis.plot(*placed[[first, second]].T, color="#777777", linewidth=2.5, zorder=1)
    axis.scatter(
        placed[:, 0],
        placed[:, 1],
        placed[:, 2],
        s=520 * radius**1.5,
        c=[_ATOMS[charge][0] for charge in charges],
        edgecolors="black",
        linewidths=0.6,
        depthshade=False,
    )
    reach = 0.8 * max(np.abs(placed).max(), 1.0)
    axis.set(xlim=(-reach, reach), ylim=(-reach, reach), zlim=(-reach, reach))
    axis.set_box_aspect((1, 1, 1))
    axis.view_init(elev=65, azim=-80)
    axis.set_axis_off()


_PAGES: dict[str, Callable[[DatasetFile], Figure]] = {
    constellations.KIND: _constellations_page,
    springs.KIND: _springs_page,
    qm9.KIND: _qm9_page,
}
