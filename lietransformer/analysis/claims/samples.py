"""The numbers of a model over its seeds, and comparisons of two models."""

import math
import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import pandas as pd

from lietransformer.analysis.claims.verdict import Condition
from lietransformer.analysis.runs import numbers, without_number
from lietransformer.analysis.statistics import bootstrap_interval, compare_pairs, summarise

FEWEST_SEEDS = 3  # with fewer, whose median is lower says little about the next seed
AT_PAR = 1.5  # ratio of errors up to which two models are at par, on the log axes of the figures


@dataclass(frozen=True)
class Sample:
    """A number of a model, by seed.

    Attributes:
        name: of the model, as evidence shows it.
        values: by seed, of finished runs.
        lost: runs that have ended without a finite value. To leave them out would be to judge a
            model by its good days: an error counts as infinite, an average is not known.
    """

    name: str
    values: Mapping[int, float]
    lost: int = 0

    @classmethod
    def of(cls, name: str, runs: pd.DataFrame, metric: str) -> "Sample":
        """A metric of some runs."""
        return cls(name, numbers(runs, metric), without_number(runs, metric))

    def centre(self, statistic: Literal["mean", "median"]) -> float | None:
        """Mean or median; None if there are too few seeds."""
        return self._centre(statistic) if len(self.values) + self.lost >= FEWEST_SEEDS else None

    def describe(self, statistic: Literal["mean", "median"]) -> str:
        """The number, where it would lie with many more seeds (95 %), and what it rests on."""
        centre, known = self._centre(statistic), list(self.values.values())
        interval = None if self.lost else bootstrap_interval(known, statistic)
        shown = "no number" if centre is None else f"{centre:.3g}"
        if interval is not None:
            shown += f" [{interval[0]:.3g}, {interval[1]:.3g}]"
        seeds = f"{len(known)} seed{'s' if len(known) != 1 else ''}"
        lost = f", {self.lost} without a finite number" if self.lost else ""
        return f"{self.name} {shown} ({seeds}{lost})"

    def _centre(self, statistic: Literal["mean", "median"]) -> float | None:
        known = list(self.values.values())
        if statistic == "mean":
            return None if self.lost else summarise(known).mean
        everything = [*known, *[math.inf] * self.lost]
        return statistics.median_high(everything) if self.lost else summarise(known).median


def is_higher(first: Sample, second: Sample, where: str) -> Condition:
    """Whether the mean of the first is above that of the second: for accuracies."""
    one, other = first.centre("mean"), second.centre("mean")
    pairs = compare_pairs(second.values, first.values)
    by_seed = f"; higher in {pairs.lower} of {pairs.pairs} shared seeds" if pairs.pairs else ""
    text = f"{where}: {first.describe('mean')} above {second.describe('mean')}{by_seed}"
    return Condition(None if one is None or other is None else one > other, text)


def is_lower(first: Sample, second: Sample, where: str, *, factor: float = 1.0) -> Condition:
    """Whether the median of the first is below the second's by this factor: for errors.

    A factor of 10 asks for a tenth at most; one of 1/1.5 forgives being 1.5 times as large.
    """
    one, other = first.centre("median"), second.centre("median")
    pairs = compare_pairs(first.values, second.values)
    by_seed = chance = ""
    if pairs.median_ratio is not None:
        by_seed = f"; by seed {pairs.median_ratio:.2g} × the other"
        by_seed += f", lower in {pairs.lower} of {pairs.pairs}"
        chance = "" if pairs.chance is None else f", sign test p = {pairs.chance:.2g}"
    relation = "below" if factor == 1 else f"at most {1 / factor:.3g} ×"
    text = f"{where}: {first.describe('median')} {relation} {second.describe('median')}"
    if one is None or other is None or one == other == math.inf:
        holds = None
    else:
        holds = one * factor < other
    return Condition(holds, text + by_seed + chance)
