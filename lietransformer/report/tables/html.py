"""A table as HTML, for the report."""

import re
from html import escape

from lietransformer.report import page
from lietransformer.report.tables.table import Cell, Row, Table
from lietransformer.report.tables.text import fixed, signed, with_spread


def render(table: Table) -> str:
    """The table without its title and notes; any table below it has them."""
    width = len(table.columns) + 1
    lines = ["<table><thead>"]
    for line, stub in enumerate(table.stub):
        headings = "".join(
            f"<th>{_heading(column.headings[line])}</th>" for column in table.columns
        )
        lines.append(f"<tr><th>{escape(stub)}</th>{headings}</tr>")
    lines.append("</thead><tbody>")
    section = ""
    for row in table.rows:
        if row.section != section:
            section = row.section
            lines.append(f'<tr><th class="section" colspan="{width}">{escape(section)}</th></tr>')
        lines.append(f"<tr><th>{_name(row)}</th>{_cells(row, table)}</tr>")
    return "\n".join([*lines, "</tbody></table>", *_below(table)])


def _below(table: Table) -> list[str]:
    if table.below is None:
        return []
    title = f"<h4>{escape(table.below.title)}</h4>"
    return [title, render(table.below), page.notes(table.below.notes)]


def _heading(text: str) -> str:
    """D_test^T2 with a lowered and a raised part."""
    lowered = re.sub(r"_(\w+)", r"<sub>\1</sub>", escape(text))
    return re.sub(r"\^(\w+)", r"<sup>\1</sup>", lowered)


def _name(row: Row) -> str:
    quoted = '<div class="small">quoted</div>' if row.is_quoted else ""
    return escape(row.name) + quoted


def _cells(row: Row, table: Table) -> str:
    return "".join(
        f"<td>{_cell(cell, column.decimals)}</td>"
        for cell, column in zip(row.cells, table.columns, strict=True)
    )


def _cell(cell: Cell, decimals: int) -> str:
    if cell.is_quoted:
        return "–" if cell.value is None else _emphasised(cell, decimals)
    deviation = cell.ours.deviation
    notes = []
    if cell.value is None:
        absence, _, price = cell.absence.removesuffix(")").partition(" (")
        ours = f'<span class="missing">{escape(absence)}</span>'
        notes += [escape(price)] if price else []
    else:
        spread = "" if deviation is None else f" ± {fixed(deviation, decimals)}"
        ours = f'{_emphasised(cell, decimals)}{spread} <span class="small">({cell.seeds})</span>'
    if cell.diverged:
        notes.append(f"{cell.diverged} diverged")
    if cell.paper is not None:
        notes.append(f"paper {with_spread(cell.paper, cell.paper_deviation, decimals)}")
    if cell.difference is not None:
        notes.append(f"Δ {signed(cell.difference, decimals)}")
    return f'{ours}<div class="small">{"<br>".join(notes)}</div>'


def _emphasised(cell: Cell, decimals: int) -> str:
    assert cell.value is not None
    text = fixed(cell.value, decimals)
    if cell.is_best_in_section:
        text = f"<b>{text}</b>"
    return f"<u>{text}</u>" if cell.is_best else text
