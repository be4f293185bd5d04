"""The numbers that the paper publishes, for comparison with our own."""

import csv
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
    text = files(__name__).joinpath("parameter_counts.csv").read_text(encoding="utf-8")
    counts = (
        ParameterCount(row["task"], row["model"], row["paper_says"], int(row["exact"]))
        for row in csv.DictReader(text.splitlines())
    )
    return {(count.task, count.model): count for count in counts}
