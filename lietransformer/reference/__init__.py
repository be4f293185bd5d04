"""Published numbers: the paper's, for comparison with our own, and QM9's list of exclusions."""

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files


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


def parameter_counts() -> dict[tuple[str, str], ParameterCount]:
    """The published parameter counts by task and model."""
    counts = (
        ParameterCount(row["task"], row["model"], row["paper_says"], int(row["exact"]))
        for row in _rows("parameter_counts.csv")
    )
    return {(count.task, count.model): count for count in counts}


def qm9_uncharacterized() -> frozenset[int]:
    """The numbers of the 3,054 molecules of QM9 that failed its authors' consistency check."""
    return frozenset(int(row["index"]) for row in _rows("qm9_uncharacterized.csv"))


def _rows(name: str) -> Iterator[dict[str, str]]:
    text = files(__name__).joinpath(name).read_text(encoding="utf-8")
    return csv.DictReader(text.splitlines())
