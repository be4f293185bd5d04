"""Claim 4: Figure 3."""

from itertools import pairwise

from lietransformer.analysis.claims.verdict import Claim, Condition, Finding, all_hold
from lietransformer.analysis.invariance import read_invariance
from lietransformer.analysis.runs import Sweep
from lietransformer.analysis.statistics import bootstrap_interval, summarise


def _falls(sweep: Sweep) -> Finding:
    invariance = read_invariance(sweep)
    if invariance is None or len(invariance.errors) < 2:
        return all_hold([Condition(None, "there is no measurement of `lietransformer invariance`")])
    errors = dict(sorted(invariance.errors.items()))
    steps = [_does_not_rise(errors, before, after) for before, after in pairwise(errors)]
    return all_hold([_is_below(errors, max(errors), min(errors)), *steps])


def _does_not_rise(errors: dict[int, list[float]], before: int, after: int) -> Condition:
    """Whether a median is not above the one before it, beyond what chance explains."""
    earlier, later = (bootstrap_interval(errors[count], "median") for count in (before, after))
    text = f"from {_shown(errors, before)} to {_shown(errors, after)}"
    if earlier is None or later is None:
        return Condition(None, f"{text}: too few runs")
    return Condition(later[0] <= earlier[1], text)


def _is_below(errors: dict[int, list[float]], after: int, before: int) -> Condition:
    """Whether a median is below another, beyond what chance explains."""
    earlier, later = (bootstrap_interval(errors[count], "median") for count in (before, after))
    text = f"from first to last: {_shown(errors, before)}, {_shown(errors, after)}"
    if earlier is None or later is None:
        return Condition(None, f"{text}: too few runs")
    return Condition(later[1] < earlier[0], text)


def _shown(errors: dict[int, list[float]], count: int) -> str:
    summary = summarise(errors[count])
    median = "no number" if summary.median is None else f"{summary.median:.2g}"
    return f"{median} at {count} sample{'s' if count != 1 else ''}"


CLAIMS = (
    Claim(
        4,
        "The invariance error falls monotonically with the number of lift samples.",
        "§4.1, Figure 3 (left)",
        "No median is above the one before it, and the last is below the first; medians whose "
        "95 % bootstrap intervals overlap count as equal.",
        _falls,
    ),
)
