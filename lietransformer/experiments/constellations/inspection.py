"""Constellations in words, and a page of them."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from lietransformer.data.inspection import COLOURS, Lines, spread
from lietransformer.data.reader import DatasetFile
from lietransformer.experiments.constellations.dataset import PATTERNS, SPLITS
from lietransformer.experiments.constellations.plan import TEST_SETS

_MARKERS = ("s", "^", "p", "P")


def describe(file: DatasetFile) -> Lines:
    lines: Lines = []
    for split in SPLITS:
        mask = file.array(f"{split}/mask")
        lines.append((split, f"{len(mask):,} examples of {spread(mask.sum(axis=1))} vertices"))
    for name, copies in TEST_SETS.items():
        if name != "test":
            motion = _motion(file.array(f"{name}/transformation"))
            what = "the test examples, and the same" if copies == 2 else "the test examples"
            lines.append((name, f"{what} {motion}"))
    counts = file.array("train/counts")
    for column, pattern in enumerate(PATTERNS):
        shares = np.bincount(counts[:, column], minlength=file.config["repetitions"] + 1)
        text = ", ".join(f"{n}: {share / len(counts):.1%}" for n, share in enumerate(shares))
        lines.append((pattern, f"in training examples {text}"))
    return lines


def _motion(elements: np.ndarray) -> str:
    shift = np.abs(elements[:, :2, 2]).max()
    angle = np.degrees(np.arctan2(elements[:, 1, 0], elements[:, 0, 0]))
    turned = "rotated by any angle" if angle.any() else "not rotated"
    return f"translated by up to {shift:.1f} along an axis, {turned}"


def draw(file: DatasetFile) -> Figure:
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
    names = list(PATTERNS)
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
        pattern = number % len(PATTERNS)
        colour = COLOURS[number % len(COLOURS)]
        outline = _path(vertices, closed=list(PATTERNS)[pattern] != "L")
        axis.plot(*outline.T, color=colour, linewidth=1, alpha=0.6)
        axis.plot(*vertices.T, color=colour, marker=_MARKERS[pattern], markersize=2.5, linestyle="")
    axis.set_aspect("equal", adjustable="datalim")
    axis.tick_params(labelsize=7)
    counts = file.array(f"{split}/counts")[row]
    named = zip(counts, PATTERNS, strict=True)
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
