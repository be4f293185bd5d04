"""The paper's figures, drawn from our runs."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from matplotlib import rc_context

from lietransformer.analysis.figures import (
    costs,
    figure2,
    figure3,
    figure4,
    figure10,
    growth,
    parameter_efficiency,
    rollout_error,
    trajectories,
)
from lietransformer.analysis.figures.drawing import Drawing, add_notes, save
from lietransformer.analysis.figures.style import STYLE
from lietransformer.analysis.runs import Sweep

FIGURES: dict[str, Callable[[Sweep], Drawing]] = {
    "figure2": figure2.draw,
    "figure3": figure3.draw,
    "figure4": figure4.draw,
    "figure5": rollout_error.draw_figure5,
    "figure6": trajectories.draw_figure6,
    "figure7": parameter_efficiency.draw_figure7,
    "figure8": parameter_efficiency.draw_figure8,
    "figure9": rollout_error.draw_figure9,
    "figure10": figure10.draw,
    "figure11": trajectories.draw_figure11,
    "complexity": costs.draw,  # which the paper does not have
    "growth": growth.draw,  # nor this one
}


def draw_figure(name: str, sweep: Sweep) -> Drawing:
    """One figure in the style of all."""
    with rc_context(STYLE):
        return FIGURES[name](sweep)


def write_figures(sweep: Sweep, names: Iterable[str], out: Path) -> Iterator[Path]:
    """Draw figures into files of all formats; yields the files as they are done."""
    for name in names:
        drawing = draw_figure(name, sweep)
        add_notes(sweep, drawing)
        yield from save(name, sweep, drawing, out)
