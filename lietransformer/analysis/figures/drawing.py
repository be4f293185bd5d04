"""A drawn figure with all that belongs to it, and how it gets into files."""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd
from matplotlib import rc_context
from matplotlib.figure import Figure

from lietransformer.analysis.figures.style import STYLE
from lietransformer.analysis.provenance import provenance
from lietransformer.analysis.runs import Sweep
from lietransformer.files import cannot_write, complete_or_absent

FORMATS = ("pdf", "png")


@dataclass(frozen=True)
class Drawing:
    """A figure of the paper, drawn from our runs.

    Attributes:
        figure: the picture.
        caption: what is to be seen.
        runs: those that it is drawn from.
        missing: what it should show and does not.
    """

    figure: Figure
    caption: str
    runs: pd.DataFrame
    missing: Sequence[str] = field(default=())


def notes(sweep: Sweep, drawing: Drawing) -> list[str]:
    """What stands below a figure: its origin, and what is missing."""
    lines = provenance(sweep, drawing.runs)
    return [*lines, f"Missing: {'; '.join(drawing.missing)}."] if drawing.missing else lines


def add_notes(sweep: Sweep, drawing: Drawing) -> None:
    """Print the notes below the picture, small."""
    drawing.figure.supxlabel(
        "\n".join(_wrapped(notes(sweep, drawing), drawing.figure.get_figwidth())),
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
    about = " ".join([drawing.caption, *notes(sweep, drawing)])
    metadata = {
        "pdf": {"Title": name, "Subject": about, "CreationDate": None},
        "png": {"Title": name, "Description": about},
    }
    for ending in FORMATS:
        path = out / f"{name}.{ending}"
        with complete_or_absent(path) as part, rc_context(STYLE):
            try:
                drawing.figure.savefig(part, format=ending, metadata=metadata[ending])
            except OSError as error:
                raise cannot_write(path, error) from error
        paths.append(path)
    return paths
