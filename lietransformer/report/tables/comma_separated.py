"""A table as CSV: a line for each cell, with all digits."""

import csv
import io

from lietransformer.report.tables.table import Cell, Table


def render(table: Table) -> str:
    """A heading, a line for each cell, and the notes as lines that begin with #.

    Cells of a table below follow; the labels of their columns tell them apart.
    """
    tables = [table, *([table.below] if table.below else [])]
    labels = list(table.columns[0].labels)
    out = io.StringIO()
    names = ["model", "section", *labels, *_values(table.rows[0].cells[0])]
    writer = csv.DictWriter(out, names, lineterminator="\n")
    for part in tables:
        for note in (part.title, *part.notes):
            out.write(f"# {note}\n")
    writer.writeheader()
    for part in tables:
        for row in part.rows:
            for column, cell in zip(part.columns, row.cells, strict=True):
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
        "source": cell.source,
        "published_seeds": cell.published,
        "paper": cell.paper,
        "paper_standard_deviation": cell.paper_deviation,
        "difference": cell.difference,
        "gpu_hours": cell.hours,
        "is_quoted": cell.is_quoted,
    }
