"""The numbers of a model over its seeds, and comparisons of two models."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import pandas as pd

from lietransformer.analysis.claims.verdict import Condition
from lietransformer.analysis.runs import numbers
from lietransformer.analysis.statistics import compare_pairs, summarise

FEWEST_SEEDS = 3  # with fewer, whose median is lower says little about the next seed
AT_PAR = 1.5  # ratio of errors up to which two models are at par, on the log axes of the figures


@dataclass(frozen=True)
class Sample:
    """A number of a model, by seed.

    Attributes:
        name: of the model, as evidence shows it.
        values: by seed, of finished runs.
        diverged: runs that diverged and have no value.
    """

    name: str
    values: Mapping[int, float]
    diverged: int = 0

    @classmethod
    def of(cls, name: str, runs: pd.DataFrame, metric: str) -> "Sample":
        """A metric of some runs."""
        return cls(name, numbers(runs, metric), int((runs["status"] == "diverged").sum()))

    def centre(self, statistic: Literal["mean", "median"]) -> float | None:
        """Mean or median; None if there are too few seeds."""
        if len(self.values) < FEWEST_SEEDS:
            return None
        summary = summarise(list(self.values.values()))
        return summary.mean if statistic == "mean" else summary.median

    def describe(self, statistic: Literal["mean", "median"]) -> str:
        """The number and what it rests on."""
        summary = summarise(list(self.values.values()))
        centre = summary.mean if statistic == "mean" else summary.median
        seeds = f"{summary.count} seed{'s' if summary.count != 1 else ''}"
        diverged = f", {self.diverged} diverged" if self.diverged else ""
        shown = "no number" if centre is None else f"{centre:.3g}"
        return f"{self.name} {shown} ({seeds}{diverged})"


def is_higher(first: Sample, second: Sample, where: str) -> Condition:
    """Whether the mean of the first is above that of the second: for accuracies."""
    one, other = first.centre("mean"), second.centre("mean")
    text = f"{where}: {first.describe('mean')} above {second.describe('mean')}"
    return Condition(None if one is None or other is None else one > other, text)


def is_lower(first: Sample, second: Sample, where: str, *, factor: float = 1.0) -> Condition:
    """Whether the median of the first is below the second's by this factor: for errors.

    A factor of 10 asks for a tenth at most; one of 1/1.5 forgives being 1.5 times as large.
    """
    one, other = first.centre("median"), second.centre("median")
    pairs = compare_pairs(first.values, second.values)
    by_seed = f"; lower in {pairs.lower} of {pairs.pairs} shared seeds" if pairs.pairs else ""
    chance = "" if pairs.chance is None else f", sign test p = {pairs.chance:.2g}"
    relation = "below" if factor == 1 else f"at most {1 / factor:.3g} ×"
    text = f"{where}: {first.describe('median')} {relation} {second.describe('median')}"
    holds = None if one is None or other is None else one * factor < other
    return Condition(holds, f"{text}{by_seed}{chance}")
