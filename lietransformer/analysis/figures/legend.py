"""The legend of a whole figure, the same whatever runs there are."""

from collections.abc import Iterable

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from lietransformer.analysis.figures.style import FAINT, Look

_COLUMNS = 3


def add_legend(
    figure: Figure, looks: Iterable[Look], *, marked: bool = True, published: bool = False
) -> None:
    """Above the panels: each model, and what the paper's own curves look like."""
    handles = [
        Line2D([], [], color=look.colour, marker=look.marker if marked else "", label=look.label)
        for look in looks
    ]
    if published:
        handles.append(
            Line2D([], [], color="black", alpha=FAINT, linestyle=(0, (4, 2)), label="paper")
        )
    figure.legend(handles=handles, loc="outside upper center", ncols=_COLUMNS)
