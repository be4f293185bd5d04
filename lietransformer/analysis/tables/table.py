"""A table of the paper, ours beside it: what every format is written from."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pandas as pd

from lietransformer.analysis.runs import numbers
from lietransformer.analysis.statistics import Summary, summarise
from lietransformer.analysis.tables.text import fixed


@dataclass(frozen=True)
class Column:
    """A column.

    Attributes:
        labels: what tells it from the others, for the CSV file.
        headings: its lines at the top of the table, in Markdown.
        latex_headings: the same in LaTeX.
        decimals: digits after the point.
    """

    labels: dict[str, str]
    headings: tuple[str, ...]
    latex_headings: tuple[str, ...]
    decimals: int


@dataclass(frozen=True)
class Cell:
    """One number of the paper and ours.

    Attributes:
        ours: over the finished runs.
        planned: how many runs belong here.
        diverged: how many of them diverged; they are left out of `ours`.
        published: the paper's number; None where it has a dash.
        published_deviation: its standard deviation, where the paper has one.
        is_quoted: the number was taken over from the paper, and we have no run of it.
        is_best_in_section, is_best: what the paper prints bold and underlined.
    """

    ours: Summary
    planned: int
    diverged: int
    published: float | None
    published_deviation: float | None = None
    is_quoted: bool = False
    is_best_in_section: bool = False
    is_best: bool = False

    @property
    def value(self) -> float | None:
        """The number that stands in the table."""
        return self.published if self.is_quoted else self.ours.mean

    @property
    def difference(self) -> float | None:
        """Ours less the paper's."""
        if self.is_quoted or self.ours.mean is None or self.published is None:
            return None
        return self.ours.mean - self.published


def cell_of(
    runs: pd.DataFrame, metric: str, published: float | None, deviation: float | None = None
) -> Cell:
    """A cell of our runs."""
    return Cell(
        summarise(list(numbers(runs, metric).values())),
        planned=len(runs),
        diverged=int((runs["status"] == "diverged").sum()),
        published=published,
        published_deviation=deviation,
    )


def quoted(published: float | None) -> Cell:
    """A cell taken over from the paper."""
    return Cell(Summary(0), planned=0, diverged=0, published=published, is_quoted=True)


@dataclass(frozen=True)
class Row:
    """A model.

    Attributes:
        name: as the paper's table has it.
        section: the part of the table that it stands in.
        is_quoted: whether all its cells are.
    """

    name: str
    section: str
    cells: tuple[Cell, ...]
    is_quoted: bool = False


@dataclass(frozen=True)
class Table:
    """A table of the paper.

    Attributes:
        name: "table1" or "table2".
        title: what it shows.
        stub: what the lines of the heading are about.
        notes: sentences below it.
    """

    name: str
    title: str
    stub: tuple[str, ...]
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...]


def mark_best(
    rows: Sequence[Row], columns: Sequence[Column], *, lower_is_better: bool
) -> tuple[Row, ...]:
    """Mark the best of each column, in each section and overall; equal as printed is equal.

    Where there is only one section, the best of all is not marked again.
    """
    has_sections = len({row.section for row in rows}) > 1
    choose = min if lower_is_better else max
    marked = [list(row.cells) for row in rows]
    for index, column in enumerate(columns):
        printed = [_printed(row.cells[index], column) for row in rows]
        for row, own in enumerate(printed):
            if own is None:
                continue
            section = [
                value
                for other, value in zip(rows, printed, strict=True)
                if other.section == rows[row].section and value is not None
            ]
            everywhere = [value for value in printed if value is not None]
            marked[row][index] = replace(
                marked[row][index],
                is_best_in_section=own == choose(section),
                is_best=has_sections and own == choose(everywhere),
            )
    return tuple(replace(row, cells=tuple(cells)) for row, cells in zip(rows, marked, strict=True))


def _printed(cell: Cell, column: Column) -> float | None:
    return None if cell.value is None else float(fixed(cell.value, column.decimals))
