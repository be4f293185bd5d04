"""Rules that turn comparisons into the state of a claim, with the reason."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from lietransformer.report.claims.samples import Comparison, over_all

State = Literal["holds", "fails", "undecided", "not run"]
OPPOSITE = "the runs say the opposite"
NOT_SEPARATED = "the runs do not separate the two"
GONE = "all pairs of runs diverged"
_FEWEST_FOR_NEAR_TIES = 3
_WORST_FIRST: tuple[State, ...] = ("fails", "not run", "undecided", "holds")


@dataclass(frozen=True)
class Ruling:
    """What a rule says: whether the claim holds, and why not."""

    state: State
    reason: str = ""


HOLDS, NOT_RUN = Ruling("holds"), Ruling("not run")


def every(comparisons: Iterable[Comparison]) -> Ruling:
    """All are wins; one in ten (rounded up, of three or more) may be a near-tie; none is a loss."""
    known = [own for own in comparisons if own.outcome is not None]
    if not known:
        return NOT_RUN
    counts = Counter(own.outcome for own in known)
    if counts["loss"]:
        return Ruling("fails", OPPOSITE if counts["loss"] == len(known) else _count("worse", known))
    few = [own for own in known if not own.is_enough]
    if few:
        return too_few_seeds(few[0], few[0].place if len(few) < len(known) else "")
    forgiven = math.ceil(len(known) / 10) if len(known) >= _FEWEST_FOR_NEAR_TIES else 0
    near = sum(own.outcome == "tie" and own.gap > -own.scale.margin for own in known)
    if counts["win"] + min(near, forgiven) == len(known):
        return HOLDS
    if len(known) == 1:
        return Ruling("undecided", NOT_SEPARATED)
    return Ruling("undecided", _count("not separated", known))


def every_one(comparisons: Sequence[Comparison]) -> Ruling:
    """As `every`, where all are needed: it does not hold while one of them was not run."""
    ruling = every(comparisons)
    missing = sum(own.outcome is None for own in comparisons)
    if ruling.state != "holds" or not missing:
        return ruling
    return Ruling("not run", f"{missing} of {len(comparisons)} comparisons were not run")


def most(comparisons: Iterable[Comparison]) -> Ruling:
    """More than half are wins; or more than half are better, and the means over them by seed.

    Fails likewise, if half or more are losses.
    """
    known = [own for own in comparisons if own.outcome is not None]
    if len(known) < _FEWEST_FOR_NEAR_TIES:
        return every(known)
    counts = Counter(own.outcome for own in known)
    better = sum(own.gap > 0 for own in known)
    whole, half = over_all(known).outcome, len(known) / 2
    if counts["win"] > half or (better > half and whole == "win"):
        return HOLDS
    if counts["loss"] >= half or (better <= half and whole == "loss"):
        worse = counts["loss"] == len(known)
        return Ruling("fails", OPPOSITE if worse else f"better in {better} of {len(known)}")
    few = [own for own in known if not own.is_enough]
    if few:
        return too_few_seeds(few[0])
    return Ruling("undecided", _count("not separated", known))


def not_worse(comparison: Comparison, margin: float) -> Ruling:
    """The interval of the gap lies above −margin."""
    low, high = comparison.low, comparison.high
    return _bounded(
        comparison,
        low > -margin or (comparison.has_diverged and comparison.outcome == "win"),
        high < -margin or (comparison.has_diverged and comparison.outcome == "loss"),
        f"worse by more than {_shown(comparison, margin)}",
    )


def equivalent(comparison: Comparison, margin: float) -> Ruling:
    """The interval of the gap lies within ±margin."""
    low, high = comparison.low, comparison.high
    return _bounded(
        comparison,
        -margin < low and high < margin,
        high < -margin or low > margin or (comparison.has_diverged and comparison.outcome != "tie"),
        f"the difference is larger than {_shown(comparison, margin)}",
    )


def _bounded(comparison: Comparison, is_inside: bool, is_outside: bool, outside: str) -> Ruling:
    if comparison.outcome is None:
        return NOT_RUN
    if not comparison.is_enough:
        return too_few_seeds(comparison)
    if is_inside:
        return HOLDS
    if is_outside:
        return Ruling("fails", f"{comparison.place}: {outside}")
    return Ruling("undecided", f"{comparison.place}: the interval exceeds the margin")


def all_of(rulings: Sequence[Ruling]) -> Ruling:
    """That of a claim which is made of several parts: the worst, with its reasons."""
    states = {own.state for own in rulings}
    state: State = next((own for own in _WORST_FIRST if own in states), "not run")
    reasons = dict.fromkeys(own.reason for own in rulings if own.state == state and own.reason)
    return Ruling(state, "; ".join(reasons))


def too_few_seeds(comparison: Comparison, where: str = "") -> Ruling:
    """A comparison with fewer than three pairs decides nothing."""
    seeds = (GONE, "one seed", "two seeds")[len(comparison.by_seed)]
    at = f" ({where})" if where else ""
    needed = "; three are needed" if comparison.by_seed else ""
    return Ruling("undecided", f"{seeds}{at}{needed}")


def _shown(comparison: Comparison, margin: float) -> str:
    return f"a factor of {math.exp(margin):.2g}" if comparison.scale.is_error else f"±{margin:g}"


def _count(outcome: str, known: Sequence[Comparison]) -> str:
    """Of several comparisons, in how many."""
    wanted = {"worse": "loss", "not separated": "tie"}[outcome]
    found = sum(own.outcome == wanted for own in known)
    return f"{outcome} in {found} of {len(known)} comparisons"


def tally(comparisons: Sequence[Comparison]) -> str:
    """How many comparisons have each outcome, in words."""
    counts = Counter(own.outcome for own in comparisons)
    known = len(comparisons) - counts[None]
    parts = [f"better in {counts['win']} of {known}"]
    parts += [f"worse in {counts['loss']}"] if counts["loss"] else []
    parts += [f"not separated in {counts['tie']}"] if counts["tie"] else []
    return ", ".join(parts)
