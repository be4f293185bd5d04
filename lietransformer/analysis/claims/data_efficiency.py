"""Claims 10 to 13: Figures 4 and 5."""

import math

import numpy as np

from lietransformer.analysis.claims.samples import FEWEST_SEEDS, Sample, is_lower
from lietransformer.analysis.claims.verdict import Claim, Condition, Finding, all_hold, most
from lietransformer.analysis.rollouts import CONVOLUTION, TRANSFORMER, error_per_step
from lietransformer.analysis.runs import Sweep
from lietransformer.analysis.sizes import PAPER_ROLLOUT_SIZE

_BASELINES = ("Graph network (Hamiltonian)", "Fully-connected (Hamiltonian)")
_METRIC = "best/test/mse_geometric"
_ORDER_OF_MAGNITUDE = 10.0
_LOW_ERROR = 1e-3
_LARGEST = 96_000  # the paper's largest number of training examples
_SIMILAR = 3.0  # ratio of errors up to which they are similar; the paper's is 1.8
_FEWEST_SIZES = 3


def _sample(sweep: Sweep, model: str, size: int, metric: str = _METRIC) -> Sample:
    return Sample.of(model, sweep.select("data_efficiency", model=model, n_train=size), metric)


def _sizes(sweep: Sweep, *models: str) -> list[int]:
    """The sizes at which all these models are planned."""
    planned = (sweep.select("data_efficiency", model=model)["n_train"].dropna() for model in models)
    return sorted(set.intersection(*({int(size) for size in own} for own in planned)))


def _enough_sizes(sizes: list[int]) -> Condition:
    text = f"numbers of training examples planned: {len(sizes)}; {_FEWEST_SIZES} needed"
    return Condition(True if len(sizes) >= _FEWEST_SIZES else None, text)


def _beats_baselines(sweep: Sweep) -> Finding:
    sizes = _sizes(sweep, TRANSFORMER, *_BASELINES)
    compared = [
        (_sample(sweep, TRANSFORMER, size), _sample(sweep, model, size), f"n = {size:,}")
        for size in sizes
        for model in _BASELINES
    ]
    lower = [is_lower(*own) for own in compared]
    much_lower = [is_lower(*own, factor=_ORDER_OF_MAGNITUDE) for own in compared]
    by_far = most(much_lower, "comparisons that it wins by an order of magnitude")
    return all_hold([_enough_sizes(sizes), by_far, *lower])


def _beats_convolution(sweep: Sweep) -> Finding:
    sizes = _sizes(sweep, TRANSFORMER, CONVOLUTION)
    compared = [
        is_lower(
            _sample(sweep, TRANSFORMER, size), _sample(sweep, CONVOLUTION, size), f"n = {size:,}"
        )
        for size in sizes
    ]
    conditions = [
        _enough_sizes(sizes),
        most(compared, "sizes at which it is better"),
        _similar_at_the_largest(sweep),
    ]
    return all_hold(conditions, compared)


def _similar_at_the_largest(sweep: Sweep) -> Condition:
    ours, theirs = (_sample(sweep, model, _LARGEST) for model in (TRANSFORMER, CONVOLUTION))
    one, other = ours.centre("median"), theirs.centre("median")
    text = f"n = {_LARGEST:,}: {ours.describe('median')} similar to {theirs.describe('median')}"
    if one is None or other is None or one == other == math.inf:
        return Condition(None, text)
    return Condition(other / _SIMILAR <= one <= other * _SIMILAR, text)


def _low_error(sweep: Sweep) -> Finding:
    sample = _sample(sweep, TRANSFORMER, PAPER_ROLLOUT_SIZE, "final/test_long/mse_last")
    centre = sample.centre("median")
    text = f"n = {PAPER_ROLLOUT_SIZE:,}, last step: {sample.describe('median')}"
    return all_hold([Condition(None if centre is None else centre < _LOW_ERROR, text)])


def _errors_by_step(sweep: Sweep, model: str) -> np.ndarray:
    """Of each run; that of one that diverged is infinite at every step."""
    runs = sweep.select("data_efficiency", model=model, n_train=PAPER_ROLLOUT_SIZE)
    known = error_per_step(sweep, runs)
    lost = int((runs["status"] == "diverged").sum())
    return np.concatenate([known, np.full((lost, known.shape[1]), np.inf)])


def _better_at_every_step(sweep: Sweep) -> Finding:
    errors = {model: _errors_by_step(sweep, model) for model in (TRANSFORMER, CONVOLUTION)}
    if min(len(own) for own in errors.values()) < FEWEST_SEEDS:
        counts = ", ".join(f"{model} {len(own)}" for model, own in errors.items())
        text = f"{FEWEST_SEEDS} roll-outs of each at n = {PAPER_ROLLOUT_SIZE:,} needed ({counts})"
        return all_hold([Condition(None, text)])
    ours, theirs = (np.median(own, axis=0) for own in errors.values())
    steps = min(len(ours), len(theirs))
    better = ours[:steps] < theirs[:steps]
    text = f"n = {PAPER_ROLLOUT_SIZE:,}: lower median at {better.sum()} of {steps} steps"
    if not better.all():
        text += f", not at step {int(np.argmin(better)) + 1}"
    return all_hold([Condition(bool(better.all()), text)])


CLAIMS = (
    Claim(
        10,
        "LieTransformer beats the models without invariance at every size, typically by one to "
        "three orders of magnitude.",
        "§4.3, Figure 4",
        "Its median 5-step error is lower than that of the graph network and of the "
        "fully-connected one at every size, and at most a tenth in more than half of these "
        f"comparisons; {_FEWEST_SIZES} sizes and {FEWEST_SEEDS} seeds at least.",
        _beats_baselines,
    ),
    Claim(
        11,
        "LieTransformer beats LieConv at most sizes; at the largest the errors are similar.",
        "§4.3, Figure 4",
        "Its median 5-step error is lower at more than half of the sizes, and the two differ by a "
        f"factor of {_SIMILAR:g} at most at n = {_LARGEST:,}; {_FEWEST_SIZES} sizes and "
        f"{FEWEST_SEEDS} seeds at least.",
        _beats_convolution,
    ),
    Claim(
        12,
        "Trained on 10,000 examples, the error of LieTransformer after 100 steps is below 1e-3.",
        "§4.3, Figure 5",
        f"At n = {PAPER_ROLLOUT_SIZE:,} its median error at the last of the 100 steps is below "
        f"{_LOW_ERROR:g}; {FEWEST_SEEDS} seeds at least.",
        _low_error,
    ),
    Claim(
        13,
        "Trained on 10,000 examples, LieTransformer beats LieConv at every length of the roll-out.",
        "§4.3, Figure 5",
        f"At n = {PAPER_ROLLOUT_SIZE:,} its median error is lower at every step; "
        f"{FEWEST_SEEDS} seeds at least.",
        _better_at_every_step,
    ),
)
