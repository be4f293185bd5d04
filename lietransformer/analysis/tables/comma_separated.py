"""A table as CSV: a line for each cell, with all digits."""

import csv
import io

from lietransformer.analysis.tables.table import Cell, Table


def render(table: Table) -> str:
    """A heading, a line for each cell, and the notes as lines that begin with #."""
    labels = list(table.columns[0].labels)
    out = io.StringIO()
    names = ["model", "section", *labels, *_values(table.rows[0].cells[0])]
    writer = csv.DictWriter(out, names, lineterminator="\n")
    for note in (table.title, *table.notes):
        out.write(f"# {note}\n")
    writer.writeheader()
    for row in table.rows:
        for column, cell in zip(table.columns, row.cells, strict=True):
            own = {"model": row.name, "section": row.section, **column.labels}
            writer.writerow(own | _values(cell))
    return out.getvalue()


def _values(cell: Cell) -> dict[str, object]:
    return {
        "mean": cell.ours.mean,
        "standard_deviation": cell.ours.deviation,
        "seeds": cell.ours.count,
        "planned": cell.planned,
        "diverged": cell.diverged,
        "published": cell.published,
        "published_standard_deviation": cell.published_deviation,
        "difference": cell.difference,
        "is_quoted": cell.is_quoted,
    }
