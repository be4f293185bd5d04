"""Table 1: accuracy at counting shapes, for models and test sets that are moved about."""

from lietransformer.analysis.provenance import provenance
from lietransformer.analysis.runs import Sweep
from lietransformer.analysis.tables.table import Column, Row, Table, cell_of, mark_best
from lietransformer.reference import table1 as published_table1

MODELS = ("SetTransformer", "LieTransformer-T2", "LieTransformer-SE2")
# Augmentation of the training set, transformation of the test set.
SETTINGS = (
    ("none", "none"),
    ("none", "T2"),
    ("none", "SE2"),
    ("T2", "T2"),
    ("T2", "SE2"),
    ("SE2", "SE2"),
)
_DECIMALS = 2


def metric(transform: str) -> str:
    """The accuracy on a test set, of the weights with the best validation accuracy."""
    return "best/test/accuracy" if transform == "none" else f"best/test_{transform}/accuracy"


def build(sweep: Sweep) -> Table:
    """Table 1 from the runs of a sweep."""
    published = published_table1()
    rows = []
    for model in MODELS:
        cells = []
        for augmentation, transform in SETTINGS:
            runs = sweep.select("constellations", model=model, augmentation=augmentation)
            paper = published[model, augmentation, transform]
            cells.append(cell_of(runs, metric(transform), paper.mean, paper.deviation))
        rows.append(Row(model, "", tuple(cells)))
    columns = tuple(_column(*setting) for setting in SETTINGS)
    return Table(
        "table1",
        "Table 1: test accuracy on the shape counting task, mean ± standard deviation over seeds",
        ("Training data", "Test data"),
        columns,
        mark_best(rows, columns, lower_is_better=False),
        (
            "Bold: best of the column. Each of our numbers stands with the seeds that it rests on.",
            "Weights: those with the best validation accuracy.",
            *provenance(sweep, sweep.select("constellations")),
        ),
    )


def _column(augmentation: str, transform: str) -> Column:
    names = (("train", augmentation), ("test", transform))
    return Column(
        {"train_augmentation": augmentation, "test_transform": transform},
        tuple(f"D_{name}" + ("" if moved == "none" else f"^{moved}") for name, moved in names),
        tuple(
            rf"$D_{{\mathrm{{{name}}}}}" + ("$" if moved == "none" else rf"^{{{moved}}}$")
            for name, moved in names
        ),
        _DECIMALS,
    )
