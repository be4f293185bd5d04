"""The paper's tables and that of draws, each in several formats."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from lietransformer.analysis.output import write_text
from lietransformer.analysis.runs import Sweep
from lietransformer.analysis.tables import comma_separated, draws, latex, markdown, table1, table2
from lietransformer.analysis.tables.table import Table

TABLES: dict[str, Callable[[Sweep], Table]] = {
    "table1": table1.build,
    "table2": table2.build,
    "draws": draws.build,
}
FORMATS: dict[str, Callable[[Table], str]] = {
    "md": markdown.render,
    "csv": comma_separated.render,
    "tex": latex.render,
}


def write_tables(sweep: Sweep, names: Iterable[str], out: Path) -> Iterator[Path]:
    """Write tables in all formats; yields the files as they are done."""
    for name in names:
        table = TABLES[name](sweep)
        for ending, render in FORMATS.items():
            path = out / f"{name}.{ending}"
            write_text(path, render(table))
            yield path
