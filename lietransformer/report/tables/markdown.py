"""A table as Markdown: each cell ours, the paper's, and the difference."""

from lietransformer.report.tables.table import Cell, Row, Table
from lietransformer.report.tables.text import fixed, signed, with_spread

_LINE = "<br>"


def render(table: Table) -> str:
    """The whole table, with its title and notes, and any table below it."""
    headings = [_LINE.join(column.headings) for column in table.columns]
    lines = [
        f"### {table.title}",
        "",
        _line([_LINE.join(table.stub), *headings]),
        _line(["---"] + ["---:"] * len(headings)),
    ]
    section = ""
    for row in table.rows:
        if row.section != section:
            section = row.section
            lines.append(_line([f"*{section}*"] + [""] * len(headings)))
        lines.append(_line([_name(row), *_cells(row, table)]))
    notes = [f"- {note}" for note in table.notes]
    below = ["", render(table.below)] if table.below else [""]
    return "\n".join([*lines, "", *notes, *below])


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _name(row: Row) -> str:
    return f"{row.name}{_LINE}*quoted*" if row.is_quoted else row.name


def _cells(row: Row, table: Table) -> list[str]:
    return [
        _LINE.join(_cell_lines(cell, column.decimals))
        for cell, column in zip(row.cells, table.columns, strict=True)
    ]


def _cell_lines(cell: Cell, decimals: int) -> list[str]:
    """All that is known about a cell."""
    if cell.is_quoted:
        return ["–" if cell.paper is None else _emphasised(cell, decimals)]
    lines = [_ours(cell, decimals)]
    if cell.diverged:
        lines.append(f"{cell.diverged} diverged")
    if cell.paper is not None:
        lines.append(f"paper {with_spread(cell.paper, cell.paper_deviation, decimals)}")
    if cell.difference is not None:
        lines.append(f"Δ {signed(cell.difference, decimals)}")
    return lines


def _ours(cell: Cell, decimals: int) -> str:
    if cell.ours.mean is None:
        return cell.absence
    deviation = cell.ours.deviation
    spread = "" if deviation is None else f" ± {fixed(deviation, decimals)}"
    return f"{_emphasised(cell, decimals)}{spread} ({cell.seeds})"


def _emphasised(cell: Cell, decimals: int) -> str:
    assert cell.value is not None
    text = fixed(cell.value, decimals)
    if cell.is_best_in_section:
        text = f"**{text}**"
    return f"<u>{text}</u>" if cell.is_best else text
