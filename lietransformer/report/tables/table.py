"""A table of the paper, ours beside it: what every format is written from."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from lietransformer.report.prices import not_run
from lietransformer.report.runs import Sweep, numbers
from lietransformer.report.statistics import Summary, summarise
from lietransformer.report.tables.text import fixed

PUBLISHED = "†"  # marks the number of published runs


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
        published: how many of those in `ours` are published runs; the others are local.
        diverged: how many runs diverged; they are left out of `ours`.
        paper: the paper's number; None where it has a dash.
        paper_deviation: its standard deviation, where the paper has one.
        absence: why there is no number of ours, to stand in its place.
        hours: GPU-hours of the cell at the paper's scale, if they are known.
        is_quoted: the number was taken over from the paper, and we have no run of it.
        is_best_in_section, is_best: what the paper prints bold and underlined.
    """

    ours: Summary
    planned: int
    published: int
    diverged: int
    paper: float | None
    paper_deviation: float | None = None
    absence: str = ""
    hours: float | None = None
    is_quoted: bool = False
    is_best_in_section: bool = False
    is_best: bool = False

    @property
    def value(self) -> float | None:
        """The number that stands in the table."""
        return self.paper if self.is_quoted else self.ours.mean

    @property
    def seeds(self) -> str:
        """How many runs the number rests on, of how many, and which of them are published."""
        local = self.ours.count - self.published
        counts = (f"{self.published}{PUBLISHED}" if self.published else "", str(local or ""))
        text = " + ".join(count for count in counts if count) or "0"
        return text if self.ours.count == self.planned else f"{text} of {self.planned}"

    @property
    def source(self) -> str:
        """Where the runs are from, for the CSV file."""
        if self.ours.count == 0:
            return ""
        if self.published in (0, self.ours.count):
            return "published" if self.published else "local"
        return "both"

    @property
    def difference(self) -> float | None:
        """Ours less the paper's."""
        if self.is_quoted or self.ours.mean is None or self.paper is None:
            return None
        return self.ours.mean - self.paper


def cell_of(
    runs: pd.DataFrame,
    metric: str,
    paper: float | None,
    deviation: float | None = None,
    hours: float | None = None,
) -> Cell:
    """A cell of our runs."""
    values = numbers(runs, metric)
    published = runs.loc[runs["source"] == "published"]
    return Cell(
        summarise(list(values.values())),
        planned=len(runs),
        published=summarise(list(numbers(published, metric).values())).count,
        diverged=int((runs["status"] == "diverged").sum()),
        paper=paper,
        paper_deviation=deviation,
        absence=_absence(runs, metric, hours),
        hours=hours,
    )


def _absence(runs: pd.DataFrame, metric: str, hours: float | None) -> str:
    """Why runs have no number, or what they would cost."""
    statuses = runs["status"]
    if (statuses == "missing").all():
        return not_run(hours)
    if (statuses == "diverged").all():
        return "all diverged"
    if any(metric in names for names in runs["not_finite"]):
        return "not finite"
    return "not measured" if (statuses == "finished").any() else f"0 of {len(runs)} finished"


def quoted(paper: float | None) -> Cell:
    """A cell taken over from the paper."""
    return Cell(Summary(0), planned=0, published=0, diverged=0, paper=paper, is_quoted=True)


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
        below: a further table in the same files, with the same labels of columns.
    """

    name: str
    title: str
    stub: tuple[str, ...]
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...]
    below: "Table | None" = None


def legend(sweep: Sweep, rows: Iterable[Row]) -> list[str]:
    """What the signs of these rows mean; a sign that is nowhere is not explained."""
    cells = [cell for row in rows for cell in row.cells]
    marks = "In brackets: the seeds behind each of our numbers"
    if any(cell.published for cell in cells):
        marks += f"; {PUBLISHED} published runs, the others of this machine"
    if not any("GPU-h" in cell.absence for cell in cells if cell.ours.count == 0):
        return [f"{marks}."]
    hours = "“Not run” stands with the price of the paper's runs of this cell."
    return [f"{marks}.", hours, *sweep.prices.note]


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
