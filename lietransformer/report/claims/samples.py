"""Numbers of a model over its seeds, and comparisons of two models with their uncertainty."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median_low
from typing import Any, Literal

import numpy as np
import pandas as pd

from lietransformer.report.runs import numbers
from lietransformer.report.statistics import (
    FEWEST_FOR_BOOTSTRAP,
    SIGN_LEVEL,
    bootstrap_interval,
    sign_test,
    student_half_width,
)

FEWEST_SEEDS = 3
FEW_SEEDS = 5  # below this a difference must also exceed the margin, in all pairs


@dataclass(frozen=True)
class Scale:
    """How two numbers are compared.

    Attributes:
        is_error: lower is better, and ratios count; otherwise higher is better, and differences.
        margin: the difference up to which two models are at par, in log-ratios for errors.
    """

    is_error: bool
    margin: float

    @property
    def worst(self) -> float:
        """What a run that diverged is worth."""
        return math.inf if self.is_error else -math.inf

    def gap(self, first: float, second: float) -> float:
        """How far the first is better: infinite if one diverged, NaN if both did."""
        if not self.is_error:
            return first - second
        if first == second:
            return math.nan if math.isinf(first) else 0.0
        if min(first, second) <= 0 or math.isinf(max(first, second)):
            return math.copysign(math.inf, second - first)
        return math.log(second / first)

    def show(self, gap: float) -> str:
        """A gap as a factor or as a difference of accuracies."""
        if not self.is_error:
            return f"{gap:+.3f}"
        factor = math.exp(min(gap, 700.0))
        return f"{factor:,.0f}" if 1_000 <= factor < 1e6 else f"{factor:.3g}"


SPRINGS = Scale(is_error=True, margin=math.log(1.5))
QM9 = Scale(is_error=True, margin=math.log(1.1))
ACCURACY = Scale(is_error=False, margin=0.02)


@dataclass(frozen=True)
class Sample:
    """A number of a model by seed; infinitely bad for a run that diverged.

    For roll-outs a value is an array with the error at each step.
    """

    name: str
    values: Mapping[int, Any]

    @classmethod
    def of(cls, name: str, runs: pd.DataFrame, metric: str, scale: Scale) -> "Sample":
        """A metric of the runs that have ended; without those in which it was not measured.

        Nor is an error measured that is not positive.
        """
        overflowed = np.array([metric in own for own in runs["not_finite"]], dtype=bool)
        lost = (runs["status"] == "diverged") | ((runs["status"] == "finished") & overflowed)
        worst = {int(seed): scale.worst for seed in runs.loc[lost, "seed"]}
        measured = numbers(runs, metric).items()
        known = {seed: value for seed, value in measured if value > 0 or not scale.is_error}
        return cls(name, {**known, **worst})


Outcome = Literal["win", "loss", "tie"]


@dataclass(frozen=True)
class Comparison:
    """Whether one model is better than another, as a claim says.

    Attributes:
        where: the cell of the table or the point of the figure.
        first, second: the model that the claim prefers, and the other.
        gap: mean over the pairs of how far the first is better, beyond `at_least`; the median
            where runs diverged; NaN without pairs.
        low, high: 95 % interval of the gap; NaN where runs diverged.
        by_seed: the gap of each pair of seeds, infinite if one of the two diverged. Pairs in
            which both did are left out.
        outcome: win or loss if separated, else tie; None if either did not run.
        at_least: by how much the first has to be better.
    """

    where: str
    first: Sample
    second: Sample
    scale: Scale
    gap: float
    low: float
    high: float
    by_seed: Mapping[int, float]
    outcome: Outcome | None
    at_least: float = 0.0

    @property
    def gaps(self) -> tuple[float, ...]:
        """Of all pairs."""
        return tuple(self.by_seed.values())

    @property
    def is_enough(self) -> bool:
        """Whether there are enough pairs to decide anything."""
        return len(self.by_seed) >= FEWEST_SEEDS

    @property
    def has_diverged(self) -> bool:
        """Whether one of a pair diverged."""
        return any(math.isinf(gap) for gap in self.gaps)

    @property
    def estimate(self) -> str:
        """The gap in words; of the finite pairs, where runs diverged."""
        finite = [gap + self.at_least for gap in self.gaps if math.isfinite(gap)]
        if not finite:
            is_win = bool(self.gaps) and min(self.gaps) > 0
            return "the other diverged" if is_win else "diverged"
        sign = "×" if self.scale.is_error else ""
        text = f"{sign}{self.scale.show(sum(finite) / len(finite))}"
        lost = len(self.gaps) - len(finite)
        return f"{text} ({lost} of {len(self.gaps)} diverged)" if lost else text

    @property
    def interval(self) -> str:
        """The gap and its interval in words."""
        if math.isnan(self.low):
            return self.estimate
        low, high = (self.scale.show(own + self.at_least) for own in (self.low, self.high))
        return f"{self.estimate} [{low}, {high}]"

    @property
    def place(self) -> str:
        """Where, or between which models."""
        return self.where or f"{self.first.name} against {self.second.name}"

    @property
    def named(self) -> str:
        """The same, and where."""
        return f"{self.where} {self.interval}".strip()

    def describe(self) -> str:
        """A line of evidence."""
        kind = "ratio" if self.scale.is_error else "difference"
        names = f"{self.first.name} {centre(self.first, self.scale)}"
        names += f" against {self.second.name} {centre(self.second, self.scale)}"
        count = f"{len(self.gaps)} seed{'s' if len(self.gaps) != 1 else ''}"
        outcomes = {"win": ": better", "loss": ": worse", "tie": ": not separated", None: ""}
        outcome = outcomes[self.outcome] if self.is_enough else ""
        where = f"{self.where}: " if self.where else ""
        value = f"{kind} {self.interval} ({count})" if self.gaps else "all diverged"
        return f"{where}{names}, {value}{outcome}"


Pair = tuple[str, Sample, Sample]


def compare(
    scale: Scale, pairs: Iterable[Pair], *, at_least: float = 0.0
) -> tuple[Comparison, ...]:
    """Compare pairs of models; a claim's comparisons share their estimate of the spread.

    Args:
        scale: of the numbers.
        pairs: where, the model that the claim prefers, and the other.
        at_least: by how much the first has to be better for a win.
    """
    listed = list(pairs)
    gaps = [
        {seed: gap - at_least for seed, gap in _paired_gaps(scale, first, second).items()}
        for _, first, second in listed
    ]
    compared = compare_gaps(scale, zip(listed, gaps, strict=True))
    return tuple(replace(own, at_least=at_least) for own in compared) if at_least else compared


def compare_gaps(
    scale: Scale, compared: Iterable[tuple[Pair, Mapping[int, float]]]
) -> tuple[Comparison, ...]:
    """Compare pairs of models by the gaps of their pairs of seeds."""
    listed = list(compared)
    spread, freedom = _pooled([[*gaps.values()] for _, gaps in listed])
    return tuple(_comparison(scale, *own, spread, freedom) for own in listed)


def over_all(comparisons: Sequence[Comparison]) -> Comparison:
    """One comparison of the means by seed: a seed's runs are not independent of each other.

    They share the initialisation, and at several sizes their data.
    """
    enough = [own for own in comparisons if own.is_enough] or comparisons
    seeds = sorted({seed for own in enough for seed in own.by_seed})
    gaps = {
        seed: _centre_of([own.by_seed[seed] for own in enough if seed in own.by_seed])
        for seed in seeds
    }
    one = comparisons[0]
    (whole,) = compare_gaps(one.scale, [(("", one.first, one.second), gaps)])
    return replace(whole, at_least=one.at_least)


def outcome_of(scale: Scale, gaps: Sequence[float], low: float, high: float) -> Outcome:
    """Win or loss if the interval excludes zero, else tie; by signs where runs diverged.

    With few seeds all pairs have to agree, too, and the mean has to reach the margin.
    """
    count = len(gaps)
    if count < FEWEST_SEEDS:
        return "tie"
    if any(math.isinf(gap) for gap in gaps):
        return _outcome_by_signs(scale, gaps)
    if not (low > 0 or high < 0):
        return "tie"
    sign = 1 if low > 0 else -1
    if count < FEW_SEEDS:
        is_clear = abs(sum(gaps)) >= scale.margin * count and all(sign * gap > 0 for gap in gaps)
        if not is_clear:
            return "tie"
    return "win" if sign > 0 else "loss"


def _outcome_by_signs(scale: Scale, gaps: Sequence[float]) -> Outcome:
    """All of a few pairs beyond the margin, or else a sign test."""
    outcomes: tuple[tuple[int, Outcome], ...] = ((1, "win"), (-1, "loss"))
    for sign, outcome in outcomes:
        if len(gaps) < FEW_SEEDS:
            is_clear = all(sign * gap >= scale.margin for gap in gaps)
        else:
            ahead, behind = (sum(side * gap > 0 for gap in gaps) for side in (sign, -sign))
            is_clear = sign_test(ahead, behind) <= SIGN_LEVEL
        if is_clear:
            return outcome
    return "tie"


def paired_seeds(first: Sample, second: Sample) -> list[tuple[int, int]]:
    """Seeds that both have; in their order, where too few are shared."""
    one, other = first.values, second.values
    shared = sorted(one.keys() & other.keys())
    if len(shared) >= min(FEWEST_SEEDS, len(one), len(other)):
        return [(seed, seed) for seed in shared]
    return list(zip(sorted(one), sorted(other), strict=False))


def shown(scale: Scale, gap: float, low: float, high: float) -> str:
    """An estimate with its interval."""
    sign = "×" if scale.is_error else ""
    return f"{sign}{scale.show(gap)} [{scale.show(low)}, {scale.show(high)}]"


def _paired_gaps(scale: Scale, first: Sample, second: Sample) -> dict[int, float]:
    gaps = {
        one: scale.gap(float(first.values[one]), float(second.values[other]))
        for one, other in paired_seeds(first, second)
    }
    return {seed: gap for seed, gap in gaps.items() if not math.isnan(gap)}


def _pooled(gaps: list[list[float]]) -> tuple[float, int]:
    """Spread of a pair over all comparisons without diverged runs, and its degrees of freedom."""
    usable = [own for own in gaps if len(own) > 1 and math.isfinite(sum(own))]
    freedom = sum(len(own) - 1 for own in usable)
    total = sum(squares(own) for own in usable)
    return (math.sqrt(total / freedom), freedom) if freedom else (0.0, 0)


def squares(gaps: Sequence[float]) -> float:
    """Sum of squared deviations from the mean."""
    mean = sum(gaps) / len(gaps)
    return sum((gap - mean) ** 2 for gap in gaps)


def _centre_of(gaps: Sequence[float]) -> float:
    """The mean, or the (lower) median where some are infinite."""
    if not gaps:
        return math.nan
    return median_low(gaps) if any(map(math.isinf, gaps)) else sum(gaps) / len(gaps)


def _comparison(
    scale: Scale, pair: Pair, by_seed: Mapping[int, float], spread: float, freedom: int
) -> Comparison:
    where, first, second = pair
    gaps = [*by_seed.values()]
    count, gap = len(gaps), _centre_of(gaps)
    low, high = math.nan, math.nan
    if any(map(math.isinf, gaps)):
        pass  # no interval
    elif count >= FEWEST_FOR_BOOTSTRAP:
        low, high = (float(bound) for bound in bootstrap_interval(np.array(gaps)))
    elif count >= 2:
        own = math.sqrt(squares(gaps) / (count - 1))
        # Pooled, since three pairs say little about their spread; its own where that is larger.
        half = student_half_width(max(own, spread), count, max(freedom, count - 1))
        low, high = gap - half, gap + half
    has_run = bool(first.values and second.values)
    outcome = outcome_of(scale, gaps, low, high) if has_run else None
    return Comparison(where, first, second, scale, gap, low, high, by_seed, outcome)


def centre(sample: Sample, scale: Scale) -> str:
    """Median error or mean accuracy of the runs that have one, in words."""
    values = np.array(list(sample.values.values()), dtype=float)
    if not len(values):
        return "(not run)"
    finite = values[np.isfinite(values)]
    if not len(finite):
        return "(diverged)"
    middle = np.median(finite) if scale.is_error else finite.mean()
    lost = len(values) - len(finite)
    return f"{middle:.3g}" + (f" ({lost} of {len(values)} diverged)" if lost else "")
