"""One look for all figures: of print size, told apart by the colour-blind and in grey."""

from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

COLUMN, PAGE = 3.3, 6.8  # inches: the widths of a column and of a page of the paper
TRUTH = "#222222"
# What the paper has published; ours is solid, with a filled band.
PAPER_LINE: Any = {"linestyle": (0, (3, 1.5)), "linewidth": 1.0, "alpha": 0.75}
# Published runs beside local ones.
COMPARISON: Any = {"linestyle": ":", "linewidth": 0.9, "markerfacecolor": "none"}
OUR_BAND: Any = {"alpha": 0.2, "linewidth": 0}
# Okabe and Ito's colours; lightness differs as well.
PARTICLES = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9")

STYLE: Any = {
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "legend.fontsize": 7,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.5,
    "axes.axisbelow": True,
    "lines.linewidth": 1.4,
    "lines.markersize": 4,
    "legend.frameon": False,
    "hatch.linewidth": 0.4,
    "pdf.fonttype": 42,  # text stays text
    "figure.dpi": 200,
}


@dataclass(frozen=True)
class Look:
    """How a model is drawn."""

    colour: str
    marker: str
    label: str


LOOKS = {
    "LieTransformer-T2": Look("#0072B2", "o", "LieTransformer-T2"),
    "LieConv-T2": Look("#D55E00", "s", "LieConv-T2"),
    "Graph network (Hamiltonian)": Look("#009E73", "^", "Graph network (HOGN)"),
    "Fully-connected (Hamiltonian)": Look("#CC79A7", "D", "Fully-connected (Hamiltonian)"),
}


def paper_band(colour: str) -> Any:
    """How the paper's band is drawn: hatched, with a thin edge."""
    return {
        "facecolor": (colour, 0.08),
        "edgecolor": (colour, 0.45),
        "hatch": "////////",
        "linewidth": 0.3,
    }


def new_figure(width: float, height: float) -> Figure:
    """An empty figure, in inches."""
    return Figure(figsize=(width, height), layout="constrained")


def say_nothing_to_draw(axis: Axes, what: str, why: str = "not run") -> None:
    """A note in place of missing curves."""
    axis.text(
        0.5,
        0.5,
        f"{why}:\n{what}",
        transform=axis.transAxes,
        ha="center",
        va="center",
        color="#777777",
        bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8},
    )
    if not axis.has_data():
        axis.set(xticks=[], yticks=[])
        axis.minorticks_off()
