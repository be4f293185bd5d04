"""Claim 4: Figure 3."""

from itertools import pairwise

import numpy as np

from lietransformer.analysis.claims.verdict import Claim, Condition, Finding, all_hold
from lietransformer.analysis.invariance import read_invariance
from lietransformer.analysis.runs import Sweep
from lietransformer.analysis.statistics import bootstrap_interval, summarise


def _falls(sweep: Sweep) -> Finding:
    invariance = read_invariance(sweep)
    if invariance is None or len(invariance.errors) < 2:
        return all_hold([Condition(None, "there is no measurement of `lietransformer invariance`")])
    errors = dict(sorted(invariance.errors.items()))
    intervals = {count: bootstrap_interval(values, "median") for count, values in errors.items()}

    def compare(before: int, after: int, *, has_to_fall: bool) -> Condition:
        earlier, later = intervals[before], intervals[after]
        text = f"from {_shown(errors, before)} to {_shown(errors, after)}"
        if earlier is None or later is None:
            return Condition(None, f"{text}: too few runs")
        if has_to_fall:
            return Condition(later[1] < earlier[0], text)
        has_risen = later[0] > earlier[1]
        if not has_risen and np.median(errors[after]) > np.median(errors[before]):
            text += " (a rise within the uncertainty)"
        return Condition(not has_risen, text)

    steps = [compare(before, after, has_to_fall=False) for before, after in pairwise(errors)]
    return all_hold([compare(min(errors), max(errors), has_to_fall=True), *steps])


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
