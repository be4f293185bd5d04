"""The legend of a whole figure, the same whatever runs there are."""

from collections.abc import Iterable
from typing import Any

from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from lietransformer.report.figures.style import (
    COMPARISON,
    OUR_BAND,
    PAGE,
    PAPER_LINE,
    TRUTH,
    Look,
    paper_band,
)


def add_legend(
    figure: Figure,
    looks: Iterable[Look],
    *,
    marked: bool = True,
    paper: bool = False,
    comparison: bool = False,
) -> None:
    """Above the panels: each model, and how ours, the paper's and published runs look."""
    entries: dict[str, Any] = {
        look.label: Line2D([], [], color=look.colour, marker=look.marker if marked else "")
        for look in looks
    }
    if paper:
        entries["ours (median, quartiles)"] = (
            Patch(color=TRUTH, **OUR_BAND),
            Line2D([], [], color=TRUTH),
        )
        entries["paper (median, quartiles)"] = (
            Patch(**paper_band(TRUTH)),
            Line2D([], [], color=TRUTH, **PAPER_LINE),
        )
    if comparison:
        marker = "o" if marked else ""
        entries["published runs (median)"] = Line2D(
            [], [], color=TRUTH, marker=marker, **COMPARISON
        )
    columns = 3 if figure.get_figwidth() >= PAGE else 2
    figure.legend(entries.values(), entries.keys(), loc="outside upper center", ncols=columns)
