"""How conditions that hold, fail or are not known become a verdict."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from lietransformer.analysis.runs import Sweep

Verdict = Literal["reproduced", "not reproduced", "not decided by these runs"]
REPRODUCED: Verdict = "reproduced"
NOT_REPRODUCED: Verdict = "not reproduced"
NOT_DECIDED: Verdict = "not decided by these runs"


@dataclass(frozen=True)
class Condition:
    """Something that a claim implies about the runs.

    Attributes:
        holds: None if the runs that there are do not tell.
        evidence: the numbers that were compared, or what is missing.
    """

    holds: bool | None
    evidence: str


@dataclass(frozen=True)
class Finding:
    """What the runs say about a claim.

    Attributes:
        verdict: whether it is reproduced.
        reason: why the verdict is what it is.
        evidence: a line for each number or comparison behind it.
    """

    verdict: Verdict
    reason: str
    evidence: tuple[str, ...]


@dataclass(frozen=True)
class Claim:
    """A claim of the paper.

    Attributes:
        number: in the list of the project's specification.
        meaning: what the paper says.
        place: where it says so.
        rule: what decides, stated before any run is seen.
        decide: applies the rule.
    """

    number: int
    meaning: str
    place: str
    rule: str
    decide: Callable[[Sweep], Finding]


def at_least(wanted: int, conditions: Sequence[Condition], what: str) -> Condition:
    """Whether so many of them hold, however those that are not known would turn out."""
    if not conditions:
        return Condition(None, f"{what}: nothing to count")
    held = sum(condition.holds is True for condition in conditions)
    unknown = sum(condition.holds is None for condition in conditions)
    holds = True if held >= wanted else False if held + unknown < wanted else None
    not_known = f", {unknown} not known" if unknown else ""
    of = f"{held} of {len(conditions)}{not_known}; {wanted} needed"
    return Condition(holds, f"{what}: {of}")


def most(conditions: Sequence[Condition], what: str) -> Condition:
    """Whether more than half of them hold."""
    return at_least(len(conditions) // 2 + 1, conditions, what)


def all_hold(conditions: Sequence[Condition], details: Sequence[Condition] = ()) -> Finding:
    """The verdict on a claim that implies all these conditions; details are shown as well."""
    failed = [condition for condition in conditions if condition.holds is False]
    unknown = [condition for condition in conditions if condition.holds is None]
    evidence = tuple(_line(condition) for condition in (*conditions, *details))
    if failed:
        return Finding(NOT_REPRODUCED, f"Does not hold: {failed[0].evidence}.", evidence)
    if unknown or not conditions:
        missing = unknown[0].evidence if unknown else "no such runs are planned"
        return Finding(NOT_DECIDED, f"Not known: {missing}.", evidence)
    return Finding(REPRODUCED, "All that the rule asks for holds.", evidence)


def _line(condition: Condition) -> str:
    mark = {True: "holds", False: "does not hold", None: "not known"}[condition.holds]
    return f"{mark}: {condition.evidence}"
