"""Claims 12, 13 and 24: Figures 5 and 9, errors along a roll-out of 100 steps."""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from statistics import median_low

import numpy as np
import pandas as pd

from lietransformer.experiments.springs.claims.data_efficiency import (
    FEWEST_SIZES,
    enough,
    in_words,
    missing_sizes,
    shared_sizes,
)
from lietransformer.experiments.springs.rollouts import CONVOLUTION, TRANSFORMER, error_per_step
from lietransformer.report.claims.protocol import collect, evidence_of, springs_needs
from lietransformer.report.claims.rules import (
    HOLDS,
    NOT_RUN,
    OPPOSITE,
    Ruling,
    all_of,
    every,
    most,
    too_few_seeds,
)
from lietransformer.report.claims.samples import (
    FEWEST_SEEDS,
    SPRINGS,
    Comparison,
    Outcome,
    Pair,
    Sample,
    centre,
    compare,
    compare_gaps,
    outcome_of,
    paired_seeds,
)
from lietransformer.report.claims.verdict import Claim, Evidence, Judgement
from lietransformer.report.runs import Sweep
from lietransformer.report.sizes import PAPER_ROLLOUT_SIZE, PAPER_SIZES, SPRINGS_SEEDS
from lietransformer.report.statistics import (
    FEWEST_FOR_BOOTSTRAP,
    bootstrap_interval,
    student_half_width,
)

Cells = Mapping[tuple[str, int], Sample]  # model, training systems; values are errors by step

LOW_ERROR = 1e-3
OVER_STEPS, LAST_STEP = "100 steps", "last step"
FORGIVEN = 0.1  # share of the steps that may be near-ties
_METRICS = {OVER_STEPS: "final/test_long/mse_geometric", LAST_STEP: "final/test_long/mse_last"}


def _gather_low_error(sweep: Sweep) -> Evidence:
    runs = sweep.select("data_efficiency", model=TRANSFORMER, n_train=PAPER_ROLLOUT_SIZE)
    chosen = {name: (f"error, {name}", runs, metric) for name, metric in _METRICS.items()}
    return collect(sweep, chosen, SPRINGS, SPRINGS_SEEDS)


def _low_error(cells: Mapping[str, Sample]) -> Judgement:
    known = {name: cells.get(name, Sample(name, {})) for name in _METRICS}
    bound = {
        name: Sample(f"{LOW_ERROR:g}", dict.fromkeys(own.values, LOW_ERROR))
        for name, own in known.items()
    }
    # Apart, since errors over all steps and at the last one do not spread alike.
    (over,) = compare(SPRINGS, [(OVER_STEPS, known[OVER_STEPS], bound[OVER_STEPS])])
    (last,) = compare(SPRINGS, [(LAST_STEP, known[LAST_STEP], bound[LAST_STEP])])
    ours = " and ".join(f"{_error(own)} ({own.where})" for own in (over, last) if own.gaps)
    return Judgement(all_of([every([over]), _median_below(last)]), ours, (over, last))


def _error(comparison: Comparison) -> str:
    """An error with its interval, from its ratio to the bound."""
    if math.isnan(comparison.low):
        return centre(comparison.first, SPRINGS)
    gaps = (comparison.gap, comparison.high, comparison.low)
    error, low, high = (LOW_ERROR * math.exp(-gap) for gap in gaps)
    return f"{error:.2g} [{low:.2g}, {high:.2g}]"


def _median_below(comparison: Comparison) -> Ruling:
    """The median is below; the paper's own quartiles at the last step are on both sides."""
    if comparison.outcome is None:
        return NOT_RUN
    if comparison.outcome == "loss":
        return Ruling("fails", OPPOSITE)
    if not comparison.is_enough:
        return too_few_seeds(comparison)
    if median_low(comparison.gaps) > 0:
        return HOLDS
    return Ruling("undecided", f"the median at the last step is not below {LOW_ERROR:g}")


def _curves(sweep: Sweep, runs: pd.DataFrame) -> dict[int, np.ndarray]:
    """Errors by step, by seed; infinite for a run that diverged."""
    curves: dict[int, np.ndarray] = {}
    for position, run in enumerate(runs.itertuples()):
        if run.status == "finished":
            errors = error_per_step(sweep, runs.iloc[[position]])
            if len(errors):
                curves[int(run.seed)] = errors[0]
    lost = runs.loc[runs["status"] == "diverged", "seed"]
    return curves | {int(seed): np.array([np.inf]) for seed in lost}


def _gather_rollouts(sweep: Sweep) -> Evidence:
    """Errors by step of both models, at every size."""
    cells, frames = {}, []
    for model in (TRANSFORMER, CONVOLUTION):
        runs = sweep.select("data_efficiency", model=model)
        for size, own in runs.groupby("n_train"):
            curves = _curves(sweep, own)
            if curves:
                cells[model, int(size)] = Sample(model, curves)
                frames.append(own)
    return evidence_of(sweep, cells, frames, SPRINGS_SEEDS)


def _gather_one_size(sweep: Sweep) -> Evidence:
    """At the paper's size, or the largest that both models have."""
    size = _size_of_figure5(sweep)
    frames = [
        sweep.select("data_efficiency", model=model, n_train=size)
        for model in (TRANSFORMER, CONVOLUTION)
    ]
    curves = [_curves(sweep, own) for own in frames]
    if not all(curves):
        return Evidence({})
    cells = {
        (model, size): Sample(model, own)
        for model, own in zip((TRANSFORMER, CONVOLUTION), curves, strict=True)
    }
    is_smaller = size != PAPER_ROLLOUT_SIZE
    reductions = [f"n = {size:,} instead of {PAPER_ROLLOUT_SIZE:,}"] if is_smaller else []
    return evidence_of(sweep, cells, frames, SPRINGS_SEEDS, reductions)


def _size_of_figure5(sweep: Sweep) -> int:
    ended = sweep.runs["status"].isin(["finished", "diverged"])
    both: list[set[int]] = []
    for model in (TRANSFORMER, CONVOLUTION):
        runs = sweep.select("data_efficiency", model=model)
        both.append({int(size) for size in runs.loc[ended.loc[runs.index], "n_train"].dropna()})
    shared = set.intersection(*both)
    return PAPER_ROLLOUT_SIZE if PAPER_ROLLOUT_SIZE in shared else max(shared, default=0)


def gaps_by_step(first: Sample, second: Sample) -> dict[int, np.ndarray]:
    """Log-ratios at each step, by seed: infinite if one overflowed, NaN if both did.

    Without the pairs in which both did at every step.
    """
    lengths = {len(own) for each in (first, second) for own in each.values.values()} - {1}
    steps = min(lengths, default=1)  # a run that diverged has one infinite error
    gaps = {}
    for one, other in paired_seeds(first, second):
        errors = (
            np.broadcast_to(own[:steps], steps) for own in (first.values[one], second.values[other])
        )
        with np.errstate(divide="ignore", invalid="ignore"):  # log 0, ∞ − ∞
            ours, theirs = (np.log(own) for own in errors)
            gap = theirs - ours
        if not np.isnan(gap).all():
            gaps[one] = gap
    return gaps


def _separated_steps(gaps: np.ndarray) -> list[Outcome]:
    """Whether LieTransformer is better at each step; `gaps` are (pairs, steps)."""
    count, steps = gaps.shape
    low, high = np.full((2, steps), np.nan)
    known = np.isfinite(gaps).all(axis=0)
    if count >= FEWEST_FOR_BOOTSTRAP and known.any():
        low[known], high[known] = bootstrap_interval(gaps[:, known])
    elif count >= FEWEST_SEEDS:
        half = student_half_width(gaps[:, known].std(axis=0, ddof=1), count, count - 1)
        mean = gaps[:, known].mean(axis=0)
        low[known], high[known] = mean - half, mean + half
    columns = ([gap for gap in column if not math.isnan(gap)] for column in gaps.T.tolist())
    bounds = zip(columns, low.tolist(), high.tolist(), strict=True)
    return [outcome_of(SPRINGS, *own) for own in bounds]


def _better_at_every_step(cells: Cells) -> Judgement:
    (size,) = {size for _, size in cells}
    pair = (cells[TRANSFORMER, size], cells[CONVOLUTION, size])
    gaps = gaps_by_step(*pair)
    at_end = {seed: float(own[-1]) for seed, own in gaps.items() if not math.isnan(own[-1])}
    (last,) = compare_gaps(SPRINGS, [(_last_step(f"n = {size:,}, last step", *pair), at_end)])
    if len(gaps) < FEWEST_SEEDS:
        ruling = too_few_seeds(replace(last, by_seed=dict.fromkeys(gaps, 0.0)))
        return Judgement(ruling, f"last step {last.interval}", (last,))
    outcomes = Counter(_separated_steps(np.array([*gaps.values()])))
    better, worse, steps = outcomes["win"], outcomes["loss"], outcomes.total()
    forgiven = FORGIVEN * steps
    ruling = Ruling("undecided", f"not separated at {outcomes['tie']} of {steps} steps")
    if better >= steps - forgiven and not worse:
        ruling = HOLDS
    elif worse > forgiven:
        reason = OPPOSITE if worse == steps else f"worse at {worse} of {steps} steps"
        ruling = Ruling("fails", reason)
    ours = f"better at {better} of {steps} steps, worse at {worse}; last step {last.interval}"
    return Judgement(ruling, ours, (last,))


def _last_step(where: str, *samples: Sample) -> Pair:
    """A pair with the errors of the last step."""
    first, second = (
        Sample(own.name, {seed: float(errors[-1]) for seed, errors in own.values.items()})
        for own in samples
    )
    return where, first, second


def _better_at_most_steps(cells: Cells) -> Judgement:
    """The median over the steps of the log-ratio is positive if most steps are better."""
    sizes = shared_sizes(cells, TRANSFORMER, CONVOLUTION)
    pairs = [(cells[TRANSFORMER, size], cells[CONVOLUTION, size]) for size in sizes]
    compared = compare_gaps(
        SPRINGS,
        [
            (
                _last_step(f"n = {size:,}", *pair),
                {seed: float(np.nanmedian(own)) for seed, own in gaps_by_step(*pair).items()},
            )
            for size, pair in zip(sizes, pairs, strict=True)
        ],
    )
    return Judgement(
        all_of([enough(sizes), most(compared)]),
        in_words(compared),
        compared,
        missing_sizes(sizes, PAPER_SIZES["figure9"]),
        ("errors of the last step, ratios of the median step",),
    )


_MODELS = (TRANSFORMER, CONVOLUTION)
_SIZE = f"n = {PAPER_ROLLOUT_SIZE:,}"

CLAIMS = (
    Claim(
        12,
        "Trained on 10,000 examples, the error of LieTransformer over 100 steps is below 1e-3.",
        "§4.3, Figure 5",
        "7.5e-4 at the last step (quartiles 4.1e-4 and 1.4e-3)",
        f"At {_SIZE} the 95 % interval of its 100-step error, the geometric mean over the steps, "
        f"lies below {LOW_ERROR:g}, and the median over seeds at the last step is below it too; "
        f"{FEWEST_SEEDS} seeds at least.",
        springs_needs([TRANSFORMER], [PAPER_ROLLOUT_SIZE], SPRINGS_SEEDS, TRANSFORMER),
        _gather_low_error,
        _low_error,
    ),
    Claim(
        13,
        "Trained on 10,000 examples, LieTransformer beats LieConv at every length of the roll-out.",
        "§4.3, Figure 5",
        "×4.6 to ×7.1, ×4.6 at the last step",
        "Its error is lower at nine of ten steps or more, and higher at none. "
        f"Where {_SIZE} was not run, the largest size of both models.",
        springs_needs(
            _MODELS, [PAPER_ROLLOUT_SIZE], SPRINGS_SEEDS, "LieTransformer-T2 and LieConv-T2"
        ),
        _gather_one_size,
        _better_at_every_step,
    ),
    Claim(
        24,
        "LieTransformer beats LieConv across training set sizes, at most steps of the roll-out.",
        "Appendix I.3, Figure 9",
        "no number",
        "The median over the steps of the log-ratio of errors says whether most steps are better. "
        "It is positive at more than half of the sizes, each separated or all together by the "
        f"means over the sizes of each seed. {FEWEST_SIZES} sizes at least.",
        springs_needs(_MODELS, PAPER_SIZES["figure9"], SPRINGS_SEEDS, "2 models × 6 sizes"),
        _gather_rollouts,
        _better_at_most_steps,
    ),
)
