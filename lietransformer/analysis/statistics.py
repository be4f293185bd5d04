"""What many seeds say together, and no more than they say.

The paper has mean and standard deviation in Table 1, median and interquartile range in its
figures. A spread needs two values, an interval five: with fewer, no choice among the values
covers the median in nine of ten cases (1 − 2·2⁻ⁿ). What is not known is None.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

_FEWEST_FOR_INTERVAL = 5
_RESAMPLES = 10_000
_SEED = 0


@dataclass(frozen=True)
class Summary:
    """Statistics of the finite ones among some values.

    Attributes:
        count: how many values there are.
        mean: their average.
        deviation: the standard deviation of one value, estimated from these (n − 1).
        median: half of them are below it.
        lower_quartile, upper_quartile: between them lies the middle half.
    """

    count: int
    mean: float | None = None
    deviation: float | None = None
    median: float | None = None
    lower_quartile: float | None = None
    upper_quartile: float | None = None


def summarise(values: Sequence[float]) -> Summary:
    """All that is known from these values; infinite ones and NaN are left out."""
    known = _finite(values)
    if len(known) == 0:
        return Summary(0)
    if len(known) == 1:
        return Summary(1, mean=float(known[0]), median=float(known[0]))
    lower, median, upper = np.quantile(known, [0.25, 0.5, 0.75])
    return Summary(
        len(known),
        mean=float(known.mean()),
        deviation=float(known.std(ddof=1)),
        median=float(median),
        lower_quartile=float(lower),
        upper_quartile=float(upper),
    )


def bootstrap_interval(
    values: Sequence[float], statistic: Literal["mean", "median"], *, level: float = 0.95
) -> tuple[float, float] | None:
    """Where the mean or median of many such values would lie, by resampling; always the same."""
    known = _finite(values)
    if len(known) < _FEWEST_FOR_INTERVAL:
        return None
    drawn = np.random.default_rng(_SEED).choice(known, (_RESAMPLES, len(known)))
    centres = drawn.mean(axis=1) if statistic == "mean" else np.median(drawn, axis=1)
    low, high = np.quantile(centres, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


@dataclass(frozen=True)
class PairedComparison:
    """One value against another of the same seed.

    Attributes:
        pairs: seeds that both have.
        lower: pairs in which the first is below the second.
        median_ratio: the median of first over second; None without pairs.
        chance: how often a fair coin would decide at least as one-sidedly (two-sided sign test,
            ties left out); None without a pair that differs.
    """

    pairs: int
    lower: int
    median_ratio: float | None
    chance: float | None


def compare_pairs(first: Mapping[int, float], second: Mapping[int, float]) -> PairedComparison:
    """Compare positive numbers by seed."""
    pairs = [
        (first[seed], second[seed])
        for seed in sorted(first.keys() & second.keys())
        if math.isfinite(first[seed]) and math.isfinite(second[seed])
    ]
    lower = sum(one < other for one, other in pairs)
    higher = sum(one > other for one, other in pairs)
    ratios = [one / other for one, other in pairs if other]
    median = float(np.median(ratios)) if ratios else None
    return PairedComparison(len(pairs), lower, median, _sign_test(lower, higher))


def _sign_test(lower: int, higher: int) -> float | None:
    total, fewer = lower + higher, min(lower, higher)
    if total == 0:
        return None
    tail = sum(math.comb(total, count) for count in range(fewer + 1)) / 2**total
    return min(1.0, 2 * tail)


def _finite(values: Sequence[float]) -> np.ndarray:
    array = np.asarray(values, dtype=float)
    return array[np.isfinite(array)]
