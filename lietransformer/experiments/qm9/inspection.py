"""QM9 in words, and a page of molecules."""

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from mpl_toolkits.mplot3d import Axes3D

from lietransformer.data.inspection import Lines, spread
from lietransformer.data.reader import DatasetFile
from lietransformer.experiments.qm9.properties import ELEMENTS, PROPERTIES

_SPLITS = ("train", "validation", "test")
# Colour and covalent radius (Å) of each element, by charge.
_ATOMS = {
    1: ("#F4F4F4", 0.31),
    6: ("#555555", 0.76),
    7: ("#0072B2", 0.71),
    8: ("#D55E00", 0.66),
    9: ("#009E73", 0.57),
}


def describe(file: DatasetFile) -> Lines:
    sizes = np.diff(file.array("molecules/offsets"))
    charges = file.array("atoms/charges")
    elements = ", ".join(f"{n} {np.mean(charges == z):.1%}" for n, z in ELEMENTS.items())
    parts = (f"{name} {len(file.array(f'split/{name}')):,}" for name in _SPLITS)
    lines = [
        ("molecules", f"{len(sizes):,} of {spread(sizes)} atoms"),
        ("atoms", f"{len(charges):,}: {elements}"),
        ("split", ", ".join(parts)),
    ]
    mean, std = file.array("statistics/train_mean"), file.array("statistics/train_std")
    for prop, m, s in zip(PROPERTIES, mean, std, strict=True):
        lines.append((prop.name, f"{m:,.2f} ± {s:,.2f} {prop.unit}"))
    return lines


def draw(file: DatasetFile) -> Figure:
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
