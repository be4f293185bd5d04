"""The paper's tables and that of draws, each in several formats."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from lietransformer.experiments.registry import TABLES
from lietransformer.report.output import write_text
from lietransformer.report.runs import Sweep
from lietransformer.report.tables import comma_separated, latex, markdown
from lietransformer.report.tables.table import Table

FORMATS: dict[str, Callable[[Table], str]] = {
    "md": markdown.render,
    "csv": comma_separated.render,
    "tex": latex.render,
}


def write_tables(sweep: Sweep, names: Iterable[str], out: Path) -> Iterator[Path]:
    """Write tables in all formats; yields the files as they are done."""
    for name in names:
        table = TABLES[name].make(sweep)
        for ending, render in FORMATS.items():
            path = out / f"{name}.{ending}"
            write_text(path, render(table))
            yield path
