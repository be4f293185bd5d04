"""A drawn figure with all that belongs to it, and how it gets into files."""

import io
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib import rc_context
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_pdf import FigureCanvasPdf
from matplotlib.figure import Figure

from lietransformer.files import cannot_write, complete_or_absent
from lietransformer.report.figures.style import STYLE
from lietransformer.report.provenance import provenance
from lietransformer.report.runs import Sweep

_LINE_HEIGHT = 0.084  # inches, of the notes


@dataclass(frozen=True)
class Drawing:
    """A figure of the paper, drawn from our runs.

    Attributes:
        figure: the picture.
        caption: what is to be seen.
        runs: those that it is drawn from.
        missing: what it should show and does not, and why.
        origin: where it comes from if not from runs, in sentences.
    """

    figure: Figure
    caption: str
    runs: pd.DataFrame
    missing: Sequence[str] = field(default=())
    origin: Sequence[str] = field(default=())


def notes(sweep: Sweep, drawing: Drawing) -> list[str]:
    """What stands below a figure: its origin, and what is missing."""
    measured = [f"Tier: {sweep.tier or 'unknown'}.", *drawing.origin]
    lines = measured if drawing.origin else provenance(sweep, drawing.runs)
    if not drawing.missing:
        return lines
    is_priced = any("GPU-h" in text for text in drawing.missing)
    return [
        *lines,
        f"Not shown: {'; '.join(drawing.missing)}.",
        *(sweep.prices.note if is_priced else ()),
    ]


def add_notes(sweep: Sweep, drawing: Drawing) -> None:
    """Print the notes below the picture, small, and make room for them."""
    figure = drawing.figure
    lines = _wrapped(notes(sweep, drawing), figure.get_figwidth())
    if figure.get_layout_engine() is not None:  # without one, parts are placed by hand
        figure.set_figheight(figure.get_figheight() + _LINE_HEIGHT * len(lines))
    figure.supxlabel(
        "\n".join(lines),
        fontsize=5,
        color="#666666",
        x=0.01,
        ha="left",
    )


def _wrapped(lines: Sequence[str], inches: float) -> list[str]:
    return [part for line in lines for part in textwrap.wrap(line, int(inches * 27))]


def save(name: str, sweep: Sweep, drawing: Drawing, out: Path) -> list[Path]:
    """Write a figure in all formats; the same runs give the same files."""
    paths = []
    figure = drawing.figure
    folders = ", ".join(sorted(drawing.runs["folder"]))
    about = " ".join(
        [drawing.caption, *notes(sweep, drawing), f"Run folders: {folders or 'none'}."]
    )
    with rc_context(STYLE):
        for ending, write in _WRITERS.items():
            path = out / f"{name}.{ending}"
            with complete_or_absent(path) as part:
                try:
                    write(figure, part, name, about)
                except OSError as error:
                    raise cannot_write(path, error) from error
            figure.set_layout_engine("none")  # it is laid out now; again would take long
            paths.append(path)
    return paths


def png(figure: Figure) -> bytes:
    """The picture alone."""
    buffer = io.BytesIO()
    with rc_context(STYLE):
        _write_png(figure, buffer)
    return buffer.getvalue()


def _write_png(figure: Figure, target: Path | io.BytesIO, title: str = "", about: str = "") -> None:
    canvas: Any = FigureCanvasAgg(figure)
    canvas.print_png(target, metadata={"Title": title, "Description": about})


def _write_pdf(figure: Figure, path: Path, title: str, about: str) -> None:
    canvas: Any = FigureCanvasPdf(figure)
    canvas.print_pdf(path, metadata={"Title": title, "Subject": about, "CreationDate": None})


# PDF last: it changes the figure's resolution.
_WRITERS: dict[str, Callable[[Figure, Path, str, str], None]] = {
    "png": _write_png,
    "pdf": _write_pdf,
}
