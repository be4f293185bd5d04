"""Table 1: accuracy at counting shapes, for models and test sets that are moved about."""

from collections.abc import Sequence

from lietransformer.reference import table1 as paper_table1
from lietransformer.report.claims.protocol import DATA
from lietransformer.report.provenance import provenance, tier
from lietransformer.report.runs import Sweep
from lietransformer.report.tables.table import Column, Row, Table, cell_of, legend, mark_best

_ALL = "_all"
PAPER_SEEDS = 8
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
# The same, with every test example transformed; above, as in the authors' data, only half are.
STRICT_SETTINGS = tuple(
    (augmentation, f"{transform}{_ALL}")
    for augmentation, transform in SETTINGS
    if transform != "none"
)
_STUB = ("Training data", "Test data")
_DECIMALS = 2


def metric(transform: str) -> str:
    """The accuracy on a test set, of the weights with the best validation accuracy."""
    return "best/test/accuracy" if transform == "none" else f"best/test_{transform}/accuracy"


def build(sweep: Sweep) -> Table:
    """Table 1 from the runs of a sweep, and below it the stricter test sets."""
    rows = _rows(sweep, SETTINGS)
    return Table(
        "table1",
        "Table 1: test accuracy on the shape counting task, mean ± standard deviation over seeds",
        _STUB,
        _columns(SETTINGS),
        rows,
        (
            "Bold: best of the column.",
            *legend(sweep, rows),
            "Weights: those with the best validation accuracy.",
            "D_test^T2 and D_test^SE2 hold every test example twice, untransformed and "
            "transformed, as in the authors' released data.",
            _rotation(sweep),
            *provenance(sweep, sweep.select("constellations")),
        ),
        below=_strict(sweep),
    )


def _rotation(sweep: Sweep) -> str:
    """Which of the two states of the authors' data script the examples are of."""
    data = (sweep.config.get("constellations") or {}).get("data") or {}
    rotation = data.get("rotation", DATA["constellations"]["rotation"])
    if not rotation:
        return "Pattern instances are not rotated, which is not the default of the authors' script."
    return (
        f"Pattern instances are rotated by up to {rotation:g} half turns either way. Without "
        "rotation, another state of the authors' data script: not run."
    )


def _strict(sweep: Sweep) -> Table:
    return Table(
        "table1_all",
        "Table 1, stricter test sets: test accuracy when every test example is transformed, mean "
        "± standard deviation over seeds",
        _STUB,
        _columns(STRICT_SETTINGS),
        _rows(sweep, STRICT_SETTINGS),
        (
            "The paper has no such numbers: half of the authors' test examples are untransformed.",
            tier(sweep),
        ),
    )


def _rows(sweep: Sweep, settings: Sequence[tuple[str, str]]) -> tuple[Row, ...]:
    printed = paper_table1()
    rows = []
    for model in MODELS:
        cells = []
        for augmentation, transform in settings:
            runs = sweep.select("constellations", model=model, augmentation=augmentation)
            paper = printed.get((model, augmentation, transform))
            mean, deviation = (paper.mean, paper.deviation) if paper else (None, None)
            labels = {"task": "constellations", "model": model, "augmentation": augmentation}
            hours = sweep.prices.total([labels], PAPER_SEEDS)
            cells.append(cell_of(runs, metric(transform), mean, deviation, hours))
        rows.append(Row(model, "", tuple(cells)))
    return mark_best(rows, _columns(settings), lower_is_better=False)


def _columns(settings: Sequence[tuple[str, str]]) -> tuple[Column, ...]:
    return tuple(_column(*setting) for setting in settings)


def _column(augmentation: str, transform: str) -> Column:
    test, is_all = transform.removesuffix(_ALL), transform.endswith(_ALL)
    names = (("train", augmentation), ("test", test))
    suffixes = ("", " (all)" if is_all else "")
    return Column(
        {"train_augmentation": augmentation, "test_transform": transform},
        tuple(
            f"D_{name}" + ("" if moved == "none" else f"^{moved}") + suffix
            for (name, moved), suffix in zip(names, suffixes, strict=True)
        ),
        tuple(
            rf"$D_{{\mathrm{{{name}}}}}" + ("$" if moved == "none" else rf"^{{{moved}}}$") + suffix
            for (name, moved), suffix in zip(names, suffixes, strict=True)
        ),
        _DECIMALS,
    )
