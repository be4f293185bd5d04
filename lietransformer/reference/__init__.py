"""Published numbers: the paper's, for comparison with our own, and QM9's list of exclusions."""

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files

# The paper's legend has another name for a model than `lietransformer models`.
_MODEL_NAMES = {"Graph network (HOGN)": "Graph network (Hamiltonian)"}
_AUGMENTED = " + SO3 Aug"


@dataclass(frozen=True)
class ParameterCount:
    """How many parameters a model of the paper has.

    Attributes:
        paper: as the paper prints it, rounded; empty where it prints nothing.
        exact: what the published architecture gives when built to its settings.
    """

    task: str
    model: str
    paper: str
    exact: int


@dataclass(frozen=True)
class Accuracy:
    """A cell of Table 1: mean and standard deviation over `seeds` seeds."""

    mean: float
    deviation: float
    seeds: int


@dataclass(frozen=True)
class Band:
    """A point of a curve with its band: median and quartiles over the seeds."""

    median: float
    lower_quartile: float
    upper_quartile: float


@dataclass(frozen=True)
class QM9Row:
    """A row of Table 2.

    Attributes:
        model: as `lietransformer models` names it, where this package has it.
        augmentation: of its training data: "none" or "SO3".
        section: the part of the table that it stands in.
        errors: mean absolute errors by property; None is a dash in the paper.
    """

    model: str
    augmentation: str
    section: str
    errors: dict[str, float | None]


def parameter_counts() -> dict[tuple[str, str], ParameterCount]:
    """The published parameter counts by task and model."""
    counts = (
        ParameterCount(row["task"], row["model"], row["paper_says"], int(row["exact"]))
        for row in _rows("parameter_counts.csv")
    )
    return {(count.task, count.model): count for count in counts}


def table1() -> dict[tuple[str, str, str], Accuracy]:
    """Table 1 by model, augmentation of the training set and transformation of the test set."""
    return {
        (row["model"], row["train_augmentation"], row["test_transform"]): Accuracy(
            float(row["accuracy_mean"]), float(row["accuracy_std"]), int(row["n_seeds"])
        )
        for row in _rows("table1_constellations.csv")
    }


def table2() -> tuple[QM9Row, ...]:
    """The rows of Table 2, in its order."""
    rows: dict[str, QM9Row] = {}
    for row in _rows("table2_qm9.csv"):
        name = row["model"]
        model = name.removesuffix(_AUGMENTED)
        augmentation = "SO3" if name.endswith(_AUGMENTED) else "none"
        own = rows.setdefault(name, QM9Row(model, augmentation, row["section"], {}))
        own.errors[row["task"]] = float(row["mae"]) if row["mae"] else None
    return tuple(rows.values())


def data_efficiency() -> dict[str, dict[int, Band]]:
    """Figure 4, 5-step error over 10 seeds, by model and number of training systems (±1 %).

    The quartiles of the fully-connected network at n ≤ 50 are read to ±3 %.
    """
    return _curves("fig4_data_efficiency.csv", "n_train")


def rollout_error() -> dict[str, dict[int, Band]]:
    """Figure 5, error over 10 seeds at n = 10,000, by model and time step (±1.5 %).

    The first two steps are read to ±5 %.
    """
    return _curves("fig5_rollout_n10000.csv", "time_step")


def qm9_uncharacterized() -> frozenset[int]:
    """The numbers of the 3,054 molecules of QM9 that failed its authors' consistency check."""
    return frozenset(int(row["index"]) for row in _rows("qm9_uncharacterized.csv"))


def _curves(name: str, along: str) -> dict[str, dict[int, Band]]:
    curves: dict[str, dict[int, Band]] = {}
    for row in _rows(name):
        model = _MODEL_NAMES.get(row["model"], row["model"])
        band = Band(*(float(row[name]) for name in ("median", "lower_quartile", "upper_quartile")))
        curves.setdefault(model, {})[int(row[along])] = band
    return curves


def _rows(name: str) -> Iterator[dict[str, str]]:
    text = files(__name__).joinpath(name).read_text(encoding="utf-8")
    return csv.DictReader(text.splitlines())
