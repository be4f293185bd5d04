"""A run trained again beside the published one. No torch here."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from lietransformer.files import read_json, read_lines
from lietransformer.layout import Archive, run_name
from lietransformer.machine import describe_machine

Verdict = Literal["identical", "agrees", "differs", "not compared"]
MOST_SPREADS = 3.0  # further apart than this many standard deviations over seeds: differs
# Where no configuration has two seeds: the most that errors may differ by, as a factor, and
# accuracies.
MOST_RATIO, MOST_DIFFERENCE = 1.5, 0.02
ROUNDING = 1.01, 0.002  # likewise what is too small to matter, however small the spread
_BOUNDED = "accuracy"  # compared as it is; errors are compared by their logarithms
_SMALLEST = 1e-300
# What is compared of a run that was trained to its end: the number in tables and figures.
TESTED = {
    "constellations": "best/test/accuracy",
    "springs": "best/test/mse_geometric",
    "qm9": "best/test/mae",
}


@dataclass(frozen=True)
class RunCheck:
    """A run trained again beside the published one.

    Attributes:
        run: its name, such as springs/LieTransformer-T2/n10/seed-0.
        folder: in the archive.
        published_commit: that trained the published run.
        published_machine: processor and torch of it.
        trained_epochs: how far it was trained here.
        epochs: of the published run.
        is_complete: whether it was trained to its end and tested.
        metric: what is compared.
        published: its value there.
        here: its value here.
        spread: standard deviation over seeds, on a logarithmic scale for errors.
        spread_of: the runs that it is of.
        difference_in_spreads: None where no configuration has two seeds.
        verdict: the outcome.
        seconds: that training took here.
        reason: what explains the verdict, where the numbers do not.
    """

    run: str
    folder: str
    published_commit: str
    published_machine: str
    trained_epochs: float
    epochs: float
    is_complete: bool
    metric: str
    published: float | None
    here: float | None
    spread: float | None
    spread_of: str
    difference_in_spreads: float | None
    verdict: Verdict
    seconds: float
    reason: str = ""


def compare(
    archive: Archive, folder: str, here: Path, seconds: float, failure: str = ""
) -> RunCheck:
    """A run trained here beside the published one.

    Args:
        archive: of published runs.
        folder: of the run, in the archive.
        here: folder of the run trained here.
        seconds: that training took here.
        failure: why there is nothing to compare.
    """
    run, there = archive.runs[folder], archive.path / folder
    result = json.loads((there / "result.json").read_text("utf-8"))
    ours = read_json(here / "result.json") or {}
    ours = ours if ours.get("hash") == run["hash"] else {}
    published, new = _records(there), _records(here)
    shared = [step for step in new if step in published]
    if ours:
        metric = TESTED[run["task"]]
        theirs, value = _test(result, metric), _test(ours, metric)
        is_equal = have_same_numbers(here, there)
        others = _others(
            archive, folder, lambda there: _test(read_json(there / "result.json"), metric)
        )
    else:
        metric = f"validation/{result['selection']}"
        theirs, value = (
            records[shared[-1]].get(metric) if shared else None for records in (published, new)
        )
        is_equal = bool(shared) and all(published[step] == new[step] for step in shared)
        progress = shared[-1] / max(published) if shared else 0.0
        others = _others(archive, folder, lambda there: _value_at(there, metric, progress))
    spread, spread_of = _spread(metric, run, others)
    difference = _difference(metric, theirs, value, spread)
    verdict: Verdict
    if failure:
        verdict, reason = "differs", failure
    elif is_equal:
        verdict, reason = "identical", ""
    elif not shared and ours:
        verdict, reason = "differs", "its evaluations are at other steps than the published ones"
    elif not shared:
        verdict, reason = "not compared", "no evaluation was reached within the time"
    elif theirs is None or value is None:
        # A number that is not finite is stored as null.
        verdict, reason = "agrees" if theirs is value else "differs", "a number is not finite"
    else:
        is_close = _are_near(metric, theirs, value, *ROUNDING)
        verdict, reason = _judged(
            difference,
            is_close=is_close,
            is_near=is_close or _are_near(metric, theirs, value, MOST_RATIO, MOST_DIFFERENCE),
            is_same_machine=_versions(run["machine"]) == _versions(describe_machine()),
        )
    return RunCheck(
        run=f"{run_name(run)}/seed-{run['seed']}",
        folder=folder,
        published_commit=run["git_commit"],
        published_machine=f"{run['machine']['processor']}, torch {run['machine']['torch']}",
        trained_epochs=epochs_of(here),
        epochs=result["epochs"],
        is_complete=bool(ours),
        metric=metric,
        published=theirs,
        here=value,
        spread=spread,
        spread_of=spread_of,
        difference_in_spreads=difference,
        verdict=verdict,
        seconds=round(seconds, 1),
        reason=reason,
    )


def have_same_numbers(one: Path, other: Path) -> bool:
    """Whether two runs that have ended have the same curves and test numbers to the bit."""
    results = [read_json(folder / "result.json") or {} for folder in (one, other)]
    ours, theirs = ({name: own.get(name) for name in ("hash", "status", "test")} for own in results)
    return bool(ours["hash"]) and ours == theirs and _records(one) == _records(other)


def _judged(
    difference: float | None, *, is_close: bool, is_near: bool, is_same_machine: bool
) -> tuple[Verdict, str]:
    """The verdict on numbers that are not equal, and its reason.

    Args:
        difference: in spreads over seeds, where they are known.
        is_close: as close as rounding explains.
        is_near: near enough where no spread is known.
        is_same_machine: processor and versions are those of the published run.
    """
    if is_close:
        return "agrees", f"not equal to the bit, but within ×{ROUNDING[0]:g} or {ROUNDING[1]:g}"
    if is_same_machine:
        return "differs", "processor and versions are the same: it should be equal to the bit"
    if difference is None:
        reason = f"no spread over seeds yet: within ×{MOST_RATIO:g} or {MOST_DIFFERENCE:g} agrees"
        return "agrees" if is_near else "differs", reason
    return "agrees" if abs(difference) <= MOST_SPREADS else "differs", ""


def _versions(machine: Mapping[str, Any]) -> dict[str, Any]:
    """What decides whether numbers are equal to the bit."""
    return {name: value for name, value in machine.items() if name not in ("host", "cores")}


def _others(
    archive: Archive, folder: str, value_of: Callable[[Path], float | None]
) -> list[tuple[dict[str, Any], float]]:
    """All other runs of the task with a number of each."""
    task = archive.runs[folder]["task"]
    runs = {name: run for name, run in archive.runs.items() if run["task"] == task}
    found = ((run, value_of(archive.path / name)) for name, run in runs.items() if name != folder)
    return [(run, value) for run, value in found if value is not None]


def _spread(
    metric: str, run: Mapping[str, Any], others: Sequence[tuple[dict[str, Any], float]]
) -> tuple[float | None, str]:
    """The spread over the run's other seeds, or else over those of more and more other runs."""
    kinds: tuple[tuple[str, Callable[[Mapping[str, Any]], object]], ...] = (
        ("its other seeds", run_name),
        (f"all {run['model']} runs", lambda own: own["model"]),
        (f"all {run['task']} runs", lambda own: own["task"]),
    )
    for name, kind in kinds:
        groups: dict[str, list[float]] = {}
        for other, value in others:
            if kind(other) == kind(run):
                groups.setdefault(run_name(other), []).append(value)
        spread = pooled_spread(metric, groups)
        if spread:
            return spread, name
    return None, ""


def pooled_spread(metric: str, groups: Mapping[str, Sequence[float]]) -> float | None:
    """Standard deviation over seeds, pooled over configurations; None where none has two seeds.

    On a logarithmic scale for errors.
    """
    scaled = [[_scaled(metric, value) for value in own] for own in groups.values()]
    squares = [(x - sum(own) / len(own)) ** 2 for own in scaled for x in own]
    freedom = sum(len(own) - 1 for own in scaled)
    return math.sqrt(sum(squares) / freedom) if freedom else None


def _value_at(folder: Path, metric: str, progress: float) -> float | None:
    """A metric of a run at the evaluation nearest to this share of its steps."""
    records = list(_records(folder).values())
    if not records:
        return None
    end = records[-1]["step"]
    value = min(records, key=lambda own: abs(own["step"] / end - progress)).get(metric)
    return None if value is None else float(value)


def _test(result: Mapping[str, Any] | None, metric: str) -> float | None:
    weights, test, name = metric.split("/")
    value = ((result or {}).get("test") or {}).get(weights, {}).get(test, {}).get(name)
    return None if value is None else float(value)


def _difference(
    metric: str, published: float | None, here: float | None, spread: float | None
) -> float | None:
    if published is None or here is None or not spread:
        return None
    return (_scaled(metric, here) - _scaled(metric, published)) / spread


def _are_near(metric: str, published: float, here: float, ratio: float, gap: float) -> bool:
    most = gap if metric.endswith(_BOUNDED) else math.log(ratio)
    return abs(_scaled(metric, here) - _scaled(metric, published)) <= most


def _scaled(metric: str, value: float) -> float:
    return value if metric.endswith(_BOUNDED) else math.log(max(value, _SMALLEST))


def _records(folder: Path) -> dict[int, dict[str, Any]]:
    """The curves of a run by step, without times; a line that is not complete is left out."""
    records = read_lines(folder / "metrics.jsonl", "step", "epoch")
    return {own["step"]: {k: v for k, v in own.items() if k != "time"} for own in records}


def epochs_of(folder: Path) -> float:
    """How far a run has come, by its last evaluation."""
    records = list(_records(folder).values())
    return float(records[-1]["epoch"]) if records else 0.0
