"""The paper's figures, drawn from our runs."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from matplotlib import rc_context

from lietransformer.experiments.registry import FIGURES
from lietransformer.report.figures.drawing import Drawing, add_notes, save
from lietransformer.report.figures.style import STYLE
from lietransformer.report.runs import Sweep


def draw_figure(name: str, sweep: Sweep) -> Drawing:
    """One figure in the style of all."""
    with rc_context(STYLE):
        drawing: Drawing = FIGURES[name].make(sweep)
        return drawing


def write_figures(sweep: Sweep, names: Iterable[str], out: Path) -> Iterator[Path]:
    """Draw figures into files of all formats; yields the files as they are done."""
    for name in names:
        drawing = draw_figure(name, sweep)
        add_notes(sweep, drawing)
        yield from save(name, sweep, drawing, out)
