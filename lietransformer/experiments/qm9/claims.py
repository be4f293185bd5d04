"""Claims 5 to 9, 21 and 22: Table 2.

The paper has one run for each task, so that the tasks are the evidence: a sign test counts them.
Where fewer than six comparisons were run, the seeds are.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache

import numpy as np

from lietransformer.experiments.qm9.tables import METRIC, TASKS, configuration
from lietransformer.reference import table2
from lietransformer.report.claims.protocol import collect
from lietransformer.report.claims.rules import (
    HOLDS,
    OPPOSITE,
    Ruling,
    all_of,
    equivalent,
    most,
    tally,
    too_few_seeds,
)
from lietransformer.report.claims.samples import (
    QM9,
    Comparison,
    Pair,
    Sample,
    compare,
    shown,
    squares,
)
from lietransformer.report.claims.verdict import Claim, Evidence, Judgement, Needs
from lietransformer.report.runs import Sweep
from lietransformer.report.statistics import (
    SIGN_LEVEL,
    mean_interval,
    sign_test,
    student_half_width,
)

Variant = tuple[str, str]  # model, augmentation
Cells = Mapping[tuple[str, str, str], Sample]  # model, augmentation, task

ARCHITECTURES = ("LieTransformer", "LieConv")
VARIANTS = [
    (f"{name}-{group}", augmentation)
    for name in ARCHITECTURES
    for group in ("T3", "SE3")
    for augmentation in ("none", "SO3")
]
_INVARIANT = tuple(f"{name}-SE3" for name in ARCHITECTURES)
PAPER_SEEDS = 1
BEST_OF = 8  # tasks of 12 on which the paper's LieTransformer is the best
RIVALS = ("TFN", "SE3-Transformer")
_FEWEST_TASKS = 6  # below that no sign test decides


def _gather(variants: Sequence[Variant], *, needs_all: bool = False) -> Callable[[Sweep], Evidence]:
    def gather(sweep: Sweep) -> Evidence:
        chosen = {
            (model, augmentation, task): (
                model if augmentation == "none" else f"{model} + {augmentation}",
                sweep.select("qm9", model=model, augmentation=augmentation, target=task),
                METRIC,
            )
            for model, augmentation in variants
            for task in TASKS
        }
        evidence = collect(sweep, chosen, QM9, PAPER_SEEDS)
        if needs_all and evidence.reductions:
            note = f"quoted errors are those of full training; here: {evidence.reductions[0]}"
            return Evidence({}, evidence.rests_on, note=note)
        return evidence

    return gather


def _pair(cells: Cells, variants: tuple[Variant, Variant], task: str) -> Pair:
    first, second = (cells.get((*own, task), Sample(own[0], {})) for own in variants)
    return task, first, second


def _tasks(cells: Cells) -> tuple[str, ...]:
    """What is left out of the paper's tasks, in words."""
    known = len({task for _, _, task in cells})
    return () if known == len(TASKS) else (f"{known} of the paper's {len(TASKS)} tasks",)


def _task_by_task(
    cells: Cells, pair: Callable[[str], tuple[Variant, Variant]], *, at_least: float = 0.0
) -> Judgement:
    """One variant beats another on most tasks, both architectures taken together."""
    compared = compare(
        QM9,
        [_pair(cells, pair(name), task) for name in ARCHITECTURES for task in TASKS],
        at_least=at_least,
    )
    by_name = (compared[: len(TASKS)], compared[len(TASKS) :])
    if not all(any(own.outcome is not None for own in part) for part in by_name):
        return Judgement(Ruling("not run", "both architectures have to be run"))
    known = [own for own in compared if own.outcome is not None]
    ours = ", ".join(
        f"{name} {_ahead(part)}" for name, part in zip(ARCHITECTURES, by_name, strict=True)
    )
    if len(known) < _FEWEST_TASKS:
        ours += f" ({_named(known)})"
        return Judgement(most(known), ours, compared, _tasks(cells))
    ruling, text = _sign_test(known)
    return Judgement(ruling, f"{ours}, {text}", compared, _tasks(cells))


def _sign_test(compared: Sequence[Comparison]) -> tuple[Ruling, str]:
    """Whether more tasks are better than chance would have it."""
    wins, losses = (sum(sign * own.gap > 0 for own in compared) for sign in (1, -1))
    chance = sign_test(wins, losses)
    text = f"sign test p = {chance:.2g}"
    if chance <= SIGN_LEVEL:
        return HOLDS, text
    ahead = f"better in {wins} of {len(compared)} comparisons"
    if sign_test(losses, wins) <= SIGN_LEVEL:
        return Ruling("fails", OPPOSITE if not wins else ahead), text
    return Ruling("undecided", f"{ahead}, which chance explains"), text


def _named(compared: Iterable[Comparison]) -> str:
    return ", ".join(f"{own.first.name} on {own.named}" for own in compared)


def _ahead(compared: Sequence[Comparison]) -> str:
    known = [own for own in compared if len(own.gaps)]
    return f"{sum(own.gap > 0 for own in known)} of {len(known)}"


def _rotations_help(cells: Cells) -> Judgement:
    return _task_by_task(cells, lambda name: ((f"{name}-SE3", "none"), (f"{name}-T3", "none")))


def _augmentation_helps(cells: Cells) -> Judgement:
    return _task_by_task(
        cells, lambda name: ((f"{name}-T3", "SO3"), (f"{name}-T3", "none")), at_least=QM9.margin
    )


def _augmented_translation_wins(cells: Cells) -> Judgement:
    return _task_by_task(cells, lambda name: ((f"{name}-T3", "SO3"), (f"{name}-SE3", "none")))


def _augmentation_changes_nothing(cells: Cells) -> Judgement:
    compared: list[Comparison] = []
    rulings: list[Ruling] = []
    texts: list[str] = []
    for name in ARCHITECTURES:
        model = f"{name}-SE3"
        own = compare(
            QM9,
            [_pair(cells, ((model, "SO3"), (model, "none")), task) for task in TASKS],
        )
        known = [each for each in own if each.outcome is not None]
        compared += own
        if len(known) < _FEWEST_TASKS:
            parts = [equivalent(each, QM9.margin) for each in known]
            rulings.append(all_of(parts))
            texts += [f"{name} {', '.join(each.named for each in known)}"] if known else []
            continue
        gaps = {k: each.gap for k, each in enumerate(known) if each.gaps}
        if not gaps:
            rulings.append(too_few_seeds(known[0]))
            continue
        values = [*gaps.values()]
        low, high = mean_interval(values) or (math.nan, math.nan)
        gap = float(np.mean(values))
        whole = replace(known[0], where=name, gap=gap, low=low, high=high, by_seed=gaps)
        rulings.append(equivalent(whole, QM9.margin))
        texts.append(f"{name} {whole.interval}")
    return Judgement(all_of(rulings), "; ".join(texts), tuple(compared), _tasks(cells))


def _best(cells: Cells, architecture: str, task: str) -> Sample | None:
    """The variant with the lowest error; None unless all four were run."""
    own = [cells.get((*variant, task)) for variant in VARIANTS if architecture in variant[0]]
    known = [sample for sample in own if sample is not None]
    return min(known, key=_log_error) if len(known) == len(own) else None


def _log_error(sample: Sample) -> float:
    values = sample.values.values()
    return sum(math.log(error) for error in values) / len(values)


def run_variance(cells: Cells) -> tuple[float, int]:
    """Variance of the log-error of one run, and its degrees of freedom.

    From the seeds or, with one seed, from the SE(3) models with and without augmentation, which
    are invariant to it and differ by training noise alone.
    """
    logs = [[math.log(error) for error in own.values.values()] for own in cells.values()]
    finite = [own for own in logs if len(own) > 1 and math.isfinite(sum(own))]
    freedom = sum(len(own) - 1 for own in finite)
    if freedom >= _FEWEST_TASKS:
        return sum(squares(own) for own in finite) / freedom, freedom
    differences = [
        _log_error(cells[model, "SO3", task]) - _log_error(cells[model, "none", task])
        for model in _INVARIANT
        for task in TASKS
        if (model, "SO3", task) in cells and (model, "none", task) in cells
    ]
    known = [own**2 for own in differences if math.isfinite(own)]
    return (sum(known) / len(known) / 2 if known else math.nan), len(known)


def _ahead_on(cells: Cells, wanted: int, quoted: Mapping[str, float]) -> Judgement:
    """LieTransformer's best variant is ahead on `wanted` tasks or more, and on average."""
    compared = []
    for task in TASKS:
        own, other = (_best(cells, name, task) for name in ARCHITECTURES)
        if own is None or other is None:
            continue
        if quoted.get(task, math.inf) < math.exp(_log_error(other)):
            other = Sample("quoted", dict.fromkeys(own.values, quoted[task]))
        compared.append((task, own, other))
    if not compared:
        return Judgement(Ruling("not run", "all four variants of both have to be run"))
    comparisons = compare(QM9, compared)
    if len(compared) < _FEWEST_TASKS:
        ours = f"{tally(comparisons)} ({_named(comparisons)})"
        return Judgement(most(comparisons), ours, comparisons, _tasks(cells))
    gaps = np.array(
        [QM9.gap(math.exp(_log_error(a)), math.exp(_log_error(b))) for _, a, b in compared]
    )
    variance, freedom = run_variance(cells)
    spreads = np.array(
        [math.sqrt(variance * (1 / len(a.values) + 1 / len(b.values))) for _, a, b in compared]
    )
    ahead = int((gaps > 0).sum())
    if freedom < _FEWEST_TASKS or not np.isfinite(gaps).all():
        why = "runs diverged" if freedom >= _FEWEST_TASKS else "the noise of one run is not known"
        ours = f"{ahead} of {len(gaps)}"
        return Judgement(Ruling("undecided", why), ours, comparisons, _tasks(cells))
    mean = float(gaps.mean())
    half = student_half_width(float(np.sqrt((spreads**2).sum())) / len(gaps), 1, freedom)
    behind = int((gaps < -student_half_width(spreads, 1, freedom)).sum())
    ours = f"{ahead} of {len(gaps)}; {shown(QM9, mean, mean - half, mean + half)} on average"
    ruling = Ruling("undecided", f"ahead on {ahead} of {len(gaps)} tasks, but not on average")
    if ahead < wanted:
        ruling = Ruling("undecided", f"ahead on {ahead} of {len(gaps)} tasks; {wanted} are needed")
    if ahead >= wanted and mean - half > 0:
        ruling = HOLDS
    elif mean + half < 0:
        ruling = Ruling("fails", "worse on average")
    elif behind > len(TASKS) - wanted:
        ruling = Ruling("fails", f"clearly worse on {behind} tasks")
    return Judgement(ruling, ours, comparisons, _tasks(cells))


def _best_general_model(cells: Cells) -> Judgement:
    if {task for _, _, task in cells} != set(TASKS):
        return Judgement(Ruling("not run", "a count of 8 of 12 takes all tasks"))
    quoted = {task: min(errors) for task, errors in _quoted().items() if errors}
    return _ahead_on(cells, BEST_OF, quoted)


def _beats_lie_conv(cells: Cells) -> Judgement:
    return _ahead_on(cells, len(TASKS) // 2 + 1, {})


@cache
def _quoted() -> dict[str, list[float]]:
    """Errors of TFN and SE(3)-Transformer, by task."""
    rows = [row.errors for row in table2() if row.model in RIVALS]
    return {task: [e for row in rows if (e := row[task]) is not None] for task in TASKS}


def _quoted_tasks() -> list[str]:
    return [task for task, errors in _quoted().items() if errors]


def _beat_quoted(cells: Cells) -> Judgement:
    pairs = []
    for name in ARCHITECTURES:
        for task, errors in _quoted().items():
            ours = cells.get((f"{name}-SE3", "none", task))
            if ours is not None and errors:
                best = Sample(" and ".join(RIVALS), dict.fromkeys(ours.values, min(errors)))
                pairs.append((task, ours, best))
    compared = compare(QM9, pairs)
    if len(compared) < _FEWEST_TASKS:
        return Judgement(Ruling("not run", "fewer than six of the 12 comparisons"))
    ruling, text = _sign_test(compared)
    missing = () if len(compared) == 12 else (f"{len(compared)} of 12 comparisons",)
    return Judgement(ruling, f"{_ahead(compared)}, {text}", compared, missing)


def _needs(variants: Sequence[Variant], which: str, tasks: Iterable[str] = TASKS) -> Needs:
    listed = list(tasks)
    labels = [configuration(*variant, task) for variant in variants for task in listed]
    return Needs(
        f"{len(labels)} runs of 500 epochs on 100,000 molecules ({which} of both architectures)",
        labels,
        PAPER_SEEDS,
    )


_ALL = _needs(VARIANTS, "12 tasks × T3 and SE3 × without and with SO3 augmentation")
_PLAIN = [variant for variant in VARIANTS if variant[1] == "none"]
_SE3 = [variant for variant in VARIANTS if variant[0] in _INVARIANT]
_T3 = [variant for variant in VARIANTS if variant[0] not in _INVARIANT]
_AUGMENTED_T3 = [v for v in VARIANTS if (v[0] in _INVARIANT) == (v[1] == "none")]
_PLAIN_SE3 = [variant for variant in _SE3 if variant[1] == "none"]
_BY_SEED = "With fewer than six comparisons, separated over seeds (95 % interval, paired by seed)."
_NOISE = (
    "The 95 % interval of the mean log-ratio over the tasks excludes zero, with the noise of one "
    "run from the seeds or, with one seed, from the SE3 models with and without augmentation."
)

CLAIMS = (
    Claim(
        5,
        "Without augmentation the SE(3) models beat the T(3) models.",
        "§4.2, Table 2",
        "LieTransformer 10 of 12, LieConv 7 of 12 (sign test p = 0.032)",
        "The error of -SE3 is lower on more tasks than chance explains, both architectures "
        f"together (sign test, 5 %, one-sided). {_BY_SEED}",
        _needs(_PLAIN, "12 tasks × T3 and SE3 without augmentation"),
        _gather(_PLAIN),
        _rotations_help,
    ),
    Claim(
        6,
        "The SE(3) models perform the same with and without augmentation.",
        "§4.2, Table 2",
        "LieTransformer ×1.01, LieConv ×1.01 on average",
        "For both architectures the 95 % interval of the mean log-ratio over the tasks lies within "
        "±10 %. With fewer than six tasks, over the seeds of each.",
        _needs(_SE3, "12 tasks × SE3 without and with SO3 augmentation"),
        _gather(_SE3),
        _augmentation_changes_nothing,
    ),
    Claim(
        7,
        "The T(3) models gain much from augmentation.",
        "§4.2, Table 2",
        "LieTransformer 12 of 12, LieConv 12 of 12, by ×1.2 to ×2.2",
        "Augmentation lowers the error by a factor above 1.1 on more tasks than chance explains, "
        f"both architectures together (sign test, 5 %, one-sided). {_BY_SEED}",
        _needs(_T3, "12 tasks × T3 without and with SO3 augmentation"),
        _gather(_T3),
        _augmentation_helps,
    ),
    Claim(
        8,
        "LieTransformer is the best general-purpose model on 8 of 12 tasks.",
        "§4.2, Table 2",
        "8 of 12",
        f"On at least {BEST_OF} tasks its best variant has a lower error than every variant of "
        f"LieConv and than the quoted TFN and SE(3)-Transformer. {_NOISE}",
        _ALL,
        _gather(VARIANTS, needs_all=True),
        _best_general_model,
    ),
    Claim(
        9,
        "LieTransformer beats LieConv on most tasks.",
        "§4.2, Table 2",
        "8 of 12, ×1.08 on average",
        "The best of its four variants has a lower error than the best of LieConv's on more than "
        f"half of the tasks. {_NOISE} With fewer than six tasks, separated over seeds.",
        _ALL,
        _gather(VARIANTS),
        _beats_lie_conv,
    ),
    Claim(
        21,
        "The T(3) models with augmentation beat the SE(3) models on most tasks.",
        "§4.2, Table 2",
        "LieTransformer 11 of 12, LieConv 9 of 12",
        "The error of -T3 with augmentation is lower than that of -SE3 on more tasks than chance "
        f"explains, both architectures together (sign test, 5 %, one-sided). {_BY_SEED}",
        _needs(_AUGMENTED_T3, "12 tasks × T3 with SO3 augmentation and SE3"),
        _gather(_AUGMENTED_T3),
        _augmented_translation_wins,
    ),
    Claim(
        22,
        "The SE(3) models beat TFN and SE(3)-Transformer on most of their six tasks.",
        "§4.2, Table 2",
        "LieTransformer 5 of 6, LieConv 6 of 6",
        "The error of -SE3 is lower than both quoted ones on more tasks than chance explains, both "
        "architectures together (sign test, 5 %, one-sided). Only runs of full training compare "
        "with quoted errors.",
        _needs(_PLAIN_SE3, "6 tasks × SE3 without augmentation", _quoted_tasks()),
        _gather(_PLAIN_SE3, needs_all=True),
        _beat_quoted,
    ),
)
