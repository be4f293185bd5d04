"""Claims 5 to 9: Table 2."""

from collections.abc import Callable

from lietransformer.analysis.claims.verdict import (
    Claim,
    Condition,
    Finding,
    all_hold,
    at_least,
    most,
)
from lietransformer.analysis.runs import Sweep, numbers, without_number
from lietransformer.analysis.statistics import summarise
from lietransformer.analysis.tables.table2 import METRIC, TASKS
from lietransformer.reference import table2

_ARCHITECTURES = ("LieTransformer", "LieConv")
_GENERAL = "invariant, general purpose"
_SAME = 0.1  # relative difference up to which two errors are the same
_PAPER_BEST = 8  # tasks of 12 on which the paper's LieTransformer is the best

Variant = tuple[str, str]  # model and augmentation
_VARIANTS = [(group, augmentation) for group in ("T3", "SE3") for augmentation in ("none", "SO3")]


def _error(sweep: Sweep, variant: Variant, task: str) -> float | None:
    """The mean over the seeds that there are, of which the paper has one; None if one is lost."""
    model, augmentation = variant
    runs = sweep.select("qm9", model=model, augmentation=augmentation, target=task)
    if without_number(runs, METRIC):
        return None
    return summarise(list(numbers(runs, METRIC).values())).mean


def _compare(
    sweep: Sweep,
    task: str,
    first: Variant,
    second: Variant,
    test: Callable[[float, float], bool],
) -> Condition:
    one, other = _error(sweep, first, task), _error(sweep, second, task)
    text = f"{task}: {_name(first)} {_shown(one)}, {_name(second)} {_shown(other)}"
    return Condition(None if one is None or other is None else test(one, other), text)


def _on_most_tasks(
    sweep: Sweep,
    what: str,
    variants: Callable[[str], tuple[Variant, Variant]],
    test: Callable[[float, float], bool],
) -> Finding:
    """The same comparison of two variants, for both architectures, on more than half the tasks."""
    conditions, details = [], []
    for architecture in _ARCHITECTURES:
        pair = variants(architecture)
        tasks = [_compare(sweep, task, *pair, test) for task in TASKS]
        conditions.append(most(tasks, f"{architecture}, tasks on which {what}"))
        details += tasks
    return all_hold(conditions, details)


def _rotations_help(sweep: Sweep) -> Finding:
    return _on_most_tasks(
        sweep,
        "-SE3 has the lower error",
        lambda name: ((f"{name}-SE3", "none"), (f"{name}-T3", "none")),
        lambda se3, t3: se3 < t3,
    )


def _augmentation_changes_nothing(sweep: Sweep) -> Finding:
    return _on_most_tasks(
        sweep,
        "-SE3 is the same with augmentation",
        lambda name: ((f"{name}-SE3", "none"), (f"{name}-SE3", "SO3")),
        lambda without, augmented: abs(augmented - without) <= _SAME * without,
    )


def _augmentation_helps(sweep: Sweep) -> Finding:
    return _on_most_tasks(
        sweep,
        "-T3 gains from augmentation",
        lambda name: ((f"{name}-T3", "none"), (f"{name}-T3", "SO3")),
        lambda without, augmented: augmented < (1 - _SAME) * without,
    )


def _best(sweep: Sweep, architecture: str, task: str) -> float | None:
    """The lowest error of an architecture; None unless all its variants are known."""
    errors = [_error(sweep, (f"{architecture}-{group}", own), task) for group, own in _VARIANTS]
    known = [error for error in errors if error is not None]
    return min(known) if len(known) == len(errors) else None


def _is_best(sweep: Sweep, task: str, quoted: float | None) -> Condition:
    ours, theirs = _best(sweep, "LieTransformer", task), _best(sweep, "LieConv", task)
    text = f"{task}: LieTransformer {_shown(ours)}, LieConv {_shown(theirs)}"
    if quoted is not None:
        text += f", quoted {_shown(quoted)}"
    if ours is None or theirs is None:
        return Condition(None, text)
    return Condition(ours < min(theirs, quoted if quoted is not None else theirs), text)


def _best_general_model(sweep: Sweep) -> Finding:
    quoted: dict[str, list[float]] = {task: [] for task in TASKS}
    for row in table2():
        if row.section == _GENERAL and not row.model.startswith(_ARCHITECTURES):
            for task, error in row.errors.items():
                quoted[task] += [] if error is None else [error]
    tasks = [_is_best(sweep, task, min(quoted[task], default=None)) for task in TASKS]
    counted = at_least(_PAPER_BEST, tasks, "tasks on which LieTransformer is the best")
    return all_hold([counted], tasks)


def _beats_lie_conv(sweep: Sweep) -> Finding:
    tasks = [_is_best(sweep, task, None) for task in TASKS]
    return all_hold([most(tasks, "tasks on which LieTransformer beats LieConv")], tasks)


def _name(variant: Variant) -> str:
    model, augmentation = variant
    return model if augmentation == "none" else f"{model} + {augmentation} Aug"


def _shown(error: float | None) -> str:
    return "missing or diverged" if error is None else f"{error:.3g}"


CLAIMS = (
    Claim(
        5,
        "Without augmentation the SE(3) models beat the T(3) models (in the paper on 10 of 12 "
        "tasks for LieTransformer, 7 of 12 for LieConv).",
        "§4.2, Table 2",
        "For both architectures the error of -SE3 is lower on more than half of the 12 tasks.",
        _rotations_help,
    ),
    Claim(
        6,
        "The SE(3) models perform the same with and without augmentation.",
        "§4.2, Table 2",
        f"For both architectures the errors differ by {_SAME:.0%} at most on more than half of "
        "the 12 tasks.",
        _augmentation_changes_nothing,
    ),
    Claim(
        7,
        "The T(3) models gain much from augmentation.",
        "§4.2, Table 2",
        f"For both architectures augmentation lowers the error by more than {_SAME:.0%} on more "
        "than half of the 12 tasks.",
        _augmentation_helps,
    ),
    Claim(
        8,
        "LieTransformer is the best general-purpose model on 8 of 12 tasks.",
        "§4.2, Table 2",
        f"On at least {_PAPER_BEST} tasks its best variant has a lower error than every variant "
        "of LieConv and than the quoted general-purpose models.",
        _best_general_model,
    ),
    Claim(
        9,
        "LieTransformer beats LieConv on most tasks.",
        "§4.2, Table 2",
        "The best of its four variants has a lower error than the best of LieConv's on more than "
        "half of the 12 tasks.",
        _beats_lie_conv,
    ),
)
