"""A table as LaTeX in the paper's layout; needs the packages booktabs and graphicx."""

from collections.abc import Callable, Iterator

from lietransformer.report.prices import gpu_hours
from lietransformer.report.tables.table import Cell, Column, Row, Table
from lietransformer.report.tables.text import fixed, signed, with_spread

_FITS = 8  # columns: wider tables are made as wide as the text
_SPECIAL = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "±": r"$\pm$",
    "−": r"$-$",
    "–": "--",
    "≈": r"$\approx$",
    "≥": r"$\geq$",
    "<": "$<$",
    "†": r"$\dagger$",
    "Δ": r"$\Delta$",
    "“": "``",
    "”": "''",
}


def render(table: Table) -> str:
    """A table* to be included with \\input, and another for the table below, if there is one.

    Rows of the paper's numbers stand below ours.
    """
    width = len(table.columns)
    lines = [
        "% Made by `lietransformer tables`. Needs \\usepackage{booktabs,graphicx}.",
        r"\begin{table*}[t]",
        r"  \setlength\tabcolsep{2pt}\centering\small",
        *([r"  \resizebox{\textwidth}{!}{%"] if width > _FITS else []),
        rf"  \begin{{tabular}}{{l{'r' * width}}}",
        r"    \toprule",
        *_headings(table),
        r"    \midrule",
    ]
    section = table.rows[0].section
    for row in table.rows:
        if row.section != section:
            section = row.section
            lines.append(r"    \midrule")
        lines += [f"    {line}" for line in _row_lines(row, table.columns)]
    notes = " ".join(escape(note) for note in table.notes)
    return "\n".join(
        [
            *lines,
            r"    \bottomrule",
            r"  \end{tabular}" + ("}" if width > _FITS else ""),
            rf"  \caption{{{escape(table.title.partition(': ')[2])}. {notes}}}",
            rf"  \label{{tab:{table.name}}}",
            r"\end{table*}",
            render(table.below) if table.below else "",
        ]
    )


def escape(text: str) -> str:
    """Text that LaTeX prints as it is."""
    return "".join(_SPECIAL.get(character, character) for character in text)


def _headings(table: Table) -> Iterator[str]:
    for line, stub in enumerate(table.stub):
        headings = (column.latex_headings[line] for column in table.columns)
        yield "    " + _line(rf"\textbf{{{stub}}}", *headings)


def _row_lines(row: Row, columns: tuple[Column, ...]) -> Iterator[str]:
    name = escape(row.name)
    if row.is_quoted:
        yield _line(f"{name} (quoted)", *_each(row, columns, _quoted))
        return
    yield _line(name, *_each(row, columns, _ours))
    yield _small_line("seeds", _each(row, columns, _seeds))
    if all(cell.paper is None for cell in row.cells):
        return
    yield _small_line("paper", _each(row, columns, _paper))
    yield _small_line("difference", _each(row, columns, _difference))


def _each(
    row: Row, columns: tuple[Column, ...], render_cell: Callable[[Cell, int], str]
) -> list[str]:
    cells = zip(row.cells, columns, strict=True)
    return [render_cell(cell, column.decimals) for cell, column in cells]


def _line(*cells: str) -> str:
    return " & ".join(cells) + r" \\"


def _small_line(name: str, cells: list[str]) -> str:
    small = [rf"{{\footnotesize\itshape {cell}}}" if cell else "" for cell in cells]
    return _line(rf"\quad{{\footnotesize\itshape {name}}}", *small)


def _quoted(cell: Cell, decimals: int) -> str:
    return "--" if cell.paper is None else _emphasised(cell, decimals)


def _ours(cell: Cell, decimals: int) -> str:
    if cell.value is None:
        return escape(cell.absence.partition(" (")[0])
    deviation = cell.ours.deviation
    spread = "" if deviation is None else rf" $\pm$ {fixed(deviation, decimals)}"
    return _emphasised(cell, decimals) + spread


def _emphasised(cell: Cell, decimals: int) -> str:
    assert cell.value is not None
    text = fixed(cell.value, decimals)
    if cell.is_best_in_section:
        text = rf"\textbf{{{text}}}"
    return rf"\underline{{{text}}}" if cell.is_best else text


def _seeds(cell: Cell, _decimals: int) -> str:
    if cell.absence.startswith("not run") and cell.value is None:
        return escape(gpu_hours(cell.hours))
    diverged = f", {cell.diverged} diverged" if cell.diverged else ""
    return escape(cell.seeds + diverged)


def _paper(cell: Cell, decimals: int) -> str:
    if cell.paper is None:
        return "--"
    return escape(with_spread(cell.paper, cell.paper_deviation, decimals))


def _difference(cell: Cell, decimals: int) -> str:
    return "" if cell.difference is None else escape(signed(cell.difference, decimals))
