"""Table 2: mean absolute errors of molecular properties (QM9)."""

from typing import NamedTuple

from lietransformer.reference import QM9Row
from lietransformer.reference import table2 as paper_table2
from lietransformer.report.provenance import provenance
from lietransformer.report.runs import Sweep
from lietransformer.report.tables.table import (
    Column,
    Row,
    Table,
    cell_of,
    legend,
    mark_best,
    quoted,
)

METRIC = "best/test/mae"
# The rows that a reproduction has to run itself; others may be run, or else are quoted.
OURS = ("LieConv-T3", "LieConv-SE3", "LieTransformer-T3", "LieTransformer-SE3")


class _Task(NamedTuple):
    """A property as the paper's table heads it, and the digits that it prints."""

    symbol: str
    latex: str
    unit: str
    latex_unit: str
    decimals: int


_ENERGY = ("meV", "meV", 0)
TASKS = {
    "alpha": _Task("α", r"$\alpha$", "bohr³", r"bohr$^3$", 3),
    "gap": _Task("Δε", r"$\Delta\epsilon$", *_ENERGY),
    "homo": _Task("ε HOMO", r"$\epsilon_{\mathrm{HOMO}}$", *_ENERGY),
    "lumo": _Task("ε LUMO", r"$\epsilon_{\mathrm{LUMO}}$", *_ENERGY),
    "mu": _Task("μ", r"$\mu$", "D", "D", 3),
    "Cv": _Task("Cν", r"$C_\nu$", "cal/mol K", "cal/mol K", 3),
    "G": _Task("G", "$G$", *_ENERGY),
    "H": _Task("H", "$H$", *_ENERGY),
    "r2": _Task("R²", "$R^2$", "bohr²", r"bohr$^2$", 3),
    "U": _Task("U", "$U$", *_ENERGY),
    "U0": _Task("U₀", "$U_0$", *_ENERGY),
    "zpve": _Task("ZPVE", "ZPVE", "meV", "meV", 2),
}


def build(sweep: Sweep) -> Table:
    """Table 2 from the runs of a sweep."""
    rows = [_row(sweep, row) for row in paper_table2()]
    columns = tuple(
        Column(
            {"task": name},
            (task.symbol, task.unit),
            (task.latex, task.latex_unit),
            task.decimals,
        )
        for name, task in TASKS.items()
    )
    return Table(
        "table2",
        "Table 2: QM9 molecular property prediction, mean absolute error",
        ("Task", "Unit"),
        columns,
        mark_best(rows, columns, lower_is_better=True),
        (
            "Bold: best of the section. Underlined: best of all.",
            *legend(sweep, rows),
            "Quoted rows are the numbers that the paper prints; no run of ours is behind them. Its "
            "authors ran DimeNet++ and the rows of LieConv but LieConv-T3 + SO3 Aug themselves.",
            "Weights: those with the best validation error.",
            *provenance(sweep, sweep.select("qm9")),
        ),
    )


def _row(sweep: Sweep, paper: QM9Row) -> Row:
    name = paper.model + (" + SO3 Aug" if paper.augmentation == "SO3" else "")
    runs = sweep.select("qm9", model=paper.model, augmentation=paper.augmentation)
    is_quoted = paper.model not in OURS and runs.empty
    cells = tuple(
        quoted(paper.errors[task])
        if is_quoted
        else cell_of(
            runs[runs["target"] == task],
            METRIC,
            paper.errors[task],
            hours=sweep.prices.total([configuration(paper.model, paper.augmentation, task)]),
        )
        for task in TASKS
    )
    return Row(name, paper.section, cells, is_quoted)


def configuration(model: str, augmentation: str, task: str) -> dict[str, str]:
    """The labels of a cell's runs at the paper's scale."""
    return {"task": "qm9", "model": model, "target": task, "augmentation": augmentation}
