"""Claims of the paper, and how the state of a claim becomes a verdict."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from lietransformer.report.claims.rules import Ruling, State
from lietransformer.report.claims.samples import Comparison
from lietransformer.report.prices import gpu_hours
from lietransformer.report.runs import Sweep

Verdict = Literal[
    "reproduced", "reproduced at reduced scale", "not reproduced", "inconclusive", "not run"
]
REPRODUCED: Verdict = "reproduced"
REDUCED: Verdict = "reproduced at reduced scale"
NOT_REPRODUCED: Verdict = "not reproduced"
INCONCLUSIVE: Verdict = "inconclusive"
NOT_RUN: Verdict = "not run"


@dataclass(frozen=True)
class Evidence:
    """What the runs of a sweep have to say about a claim.

    Attributes:
        cells: numbers by cell of the table or point of the figure; empty if nothing was run.
        rests_on: the runs behind them, in words.
        reductions: in what these runs are smaller than the paper's, or otherwise different.
        note: why runs that exist cannot be used.
    """

    cells: Mapping[Any, Any]
    rests_on: str = ""
    reductions: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class Judgement:
    """What a rule says about some cells, whatever their scale.

    Attributes:
        ruling: whether the claim holds there, and why not.
        ours: the number that corresponds to the paper's, with its interval.
        comparisons: what was compared.
        reductions: what the claim is about and the cells do not cover.
        notes: further lines of evidence.
    """

    ruling: Ruling
    ours: str = ""
    comparisons: tuple[Comparison, ...] = ()
    reductions: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def state(self) -> State:
        """Whether the claim holds."""
        return self.ruling.state


@dataclass(frozen=True)
class Finding:
    """What the runs say about a claim.

    Attributes:
        verdict: one of the five.
        reason: why the verdict is what it is.
        ours: our number with its interval; empty if there is none.
        rests_on: runs, seeds and sizes behind it.
        reductions: in what the evidence is smaller than the paper's.
        evidence: a line for each number or comparison.
    """

    verdict: Verdict
    reason: str
    ours: str = ""
    rests_on: str = ""
    reductions: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True)
class Needs:
    """What a claim takes at the paper's scale.

    Attributes:
        words: the runs, such as "96 runs of 500 epochs on 100,000 molecules".
        configurations: labels of what is trained; none where nothing is.
        seeds: of each.
    """

    words: str
    configurations: Sequence[Mapping[str, Any]] = ()
    seeds: int = 1

    def hours(self, sweep: Sweep) -> float | None:
        """GPU-hours, if they are known."""
        return sweep.prices.total(self.configurations, self.seeds)

    def describe(self, sweep: Sweep) -> str:
        """The words, and the price if it is known."""
        price = gpu_hours(self.hours(sweep))
        return f"{self.words}: {price}" if price else self.words


@dataclass(frozen=True)
class Claim:
    """A claim of the paper.

    Attributes:
        number: in the list of the project's specification.
        meaning: what the paper says.
        place: where it says so.
        paper: its number.
        rule: what decides, stated before any run is seen.
        needs: the runs that it takes at the paper's scale.
        gather: reads the numbers from a sweep.
        judge: applies the rule to them; a pure function.
    """

    number: int
    meaning: str
    place: str
    paper: str
    rule: str
    needs: Needs
    gather: Callable[[Sweep], Evidence]
    judge: Callable[[Any], Judgement]

    def decide(self, sweep: Sweep) -> Finding:
        """The verdict, and what it rests on."""
        evidence = self.gather(sweep)
        if not evidence.cells:
            return self._undecided(sweep, evidence)
        judged = self.judge(evidence.cells)
        if judged.state == "not run":
            return self._not_run(sweep, judged.ruling.reason)
        reductions = (*judged.reductions, *evidence.reductions)
        return Finding(
            *_verdict(judged.ruling, reductions),
            judged.ours,
            evidence.rests_on,
            reductions,
            tuple(_lines(judged)),
        )

    def _undecided(self, sweep: Sweep, evidence: Evidence) -> Finding:
        """No run at all, or none that can be used."""
        missing = self._not_run(sweep, evidence.note)
        if not evidence.note:
            return missing
        return Finding(INCONCLUSIVE, missing.reason, rests_on=evidence.rests_on)

    def _not_run(self, sweep: Sweep, note: str) -> Finding:
        because = f"{_capitalised(note)}. " if note else ""
        return Finding(NOT_RUN, f"{because}Needs {self.needs.describe(sweep)}.")


def _verdict(ruling: Ruling, reductions: tuple[str, ...]) -> tuple[Verdict, str]:
    smaller = f" Differs from the paper: {'; '.join(reductions)}." if reductions else ""
    if ruling.state == "holds":
        return (REDUCED if reductions else REPRODUCED), f"The rule holds.{smaller}"
    verdict = NOT_REPRODUCED if ruling.state == "fails" else INCONCLUSIVE
    return verdict, f"{_capitalised(ruling.reason)}.{smaller}"


def _capitalised(text: str) -> str:
    """As the beginning of a sentence; names of models stay as they are."""
    return f"{text[:1].upper()}{text[1:]}" if text[1:2].isalpha() else text


def _lines(judged: Judgement) -> list[str]:
    """A line for each comparison, and one for all that were not run."""
    known = [own.describe() for own in judged.comparisons if own.outcome is not None]
    missing = len(judged.comparisons) - len(known)
    not_run = [f"not run: {missing} of {len(judged.comparisons)} comparisons"] if missing else []
    return [*judged.notes, *known, *not_run]
