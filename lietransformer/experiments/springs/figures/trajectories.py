"""Figures 6 and 11: predicted paths beside the true ones."""

from collections.abc import Callable

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from lietransformer.experiments.springs.figures.pairs import (
    MODELS,
    Pair,
    find_pair,
    find_paths,
    pair_runs,
    trajectory_size,
)
from lietransformer.experiments.springs.paths import Paths
from lietransformer.report.figures.drawing import Drawing
from lietransformer.report.figures.style import (
    LOOKS,
    PAGE,
    PARTICLES,
    TRUTH,
    new_figure,
    say_nothing_to_draw,
)
from lietransformer.report.runs import Sweep

_MOST_ROOM = 2.0  # around the truth, by its own extent


def draw_figure6(sweep: Sweep) -> Drawing:
    """The trajectory whose ratio of the two models' errors is the median."""
    return _draw(
        sweep,
        {"trajectory of the median error ratio": lambda pair: pair.median_ratio},
        "An example trajectory of 100 steps: the test trajectory whose ratio of "
        "LieTransformer-T2's to LieConv-T2's error is the median over all test trajectories",
    )


def draw_figure11(sweep: Sweep) -> Drawing:
    """The trajectories that each model predicts worst."""
    return _draw(
        sweep,
        {f"worst for {model}": _worst(model) for model in MODELS},
        "The test trajectories with the highest error of LieTransformer-T2 (above) and of "
        "LieConv-T2 (below)",
    )


def _worst(model: str) -> Callable[[Pair], int]:
    return lambda pair: pair.worst(model)


def _draw(sweep: Sweep, rows: dict[str, Callable[[Pair], int]], caption: str) -> Drawing:
    size = trajectory_size(sweep)
    pair = find_pair(sweep, size)
    figure = new_figure(PAGE, 3.0 * len(rows) + 0.7)
    axes = figure.subplots(len(rows), 2, squeeze=False)
    missing = []
    if pair is None:
        missing.append(f"roll-outs of both models with the same seed at n = {size:,}")
        for axis in axes.flat:
            say_nothing_to_draw(axis, missing[0].replace(" with", "\nwith"))
    else:
        chosen = {title: choose(pair) for title, choose in rows.items()}
        paths = find_paths(sweep, pair, chosen.values())
        for line, (title, trajectory) in zip(axes, chosen.items(), strict=True):
            missing += _draw_row(line, pair, title, trajectory, paths.get(trajectory))
        _add_legend(figure)
    seed = "" if pair is None else f", seed {pair.seed}"
    return Drawing(
        figure,
        f"{caption}. Trained on {size:,} examples{seed}, final weights. A colour for each "
        "particle; broad and grey: the truth; a disc where each starts.",
        pair_runs(sweep, [size]),
        [*dict.fromkeys(missing)],
    )


def _draw_row(
    axes: np.ndarray, pair: Pair, title: str, trajectory: int, paths: Paths | None
) -> list[str]:
    """Both models; returns what is missing."""
    own = paths or Paths(None, {})
    for axis, model in zip(axes, MODELS, strict=True):
        if model in own.predicted:
            _draw_paths(axis, own.predicted[model], own.truth)
        else:
            say_nothing_to_draw(axis, f"positions of {model}", "not available")
        error = f"MSE {pair.errors[model][trajectory]:.1e}"
        axis.set_title(f"{title}\n{LOOKS[model].label}, n = {pair.size:,}, {error}")
    share_limits(axes, own.truth)
    missing = [f"positions of {model}" for model in MODELS if model not in own.predicted]
    missing = missing if own.truth is not None else ["the true trajectories", *missing]
    return [*missing[:-1], *(f"{last}{pair.remedy}" for last in missing[-1:])]


def _draw_paths(axis: Axes, predicted: np.ndarray, truth: np.ndarray | None) -> None:
    """Paths of all particles; `predicted` is (steps, particles, 2), `truth` has one state more."""
    for particle, colour in zip(range(predicted.shape[1]), PARTICLES * 9, strict=False):
        path = predicted[:, particle]
        if truth is not None:
            true_path = truth[: len(path) + 1, particle]
            axis.plot(*true_path[:, :2].T, color=TRUTH, alpha=0.25, linewidth=3.5, zorder=1)
            path = np.concatenate([true_path[:1], path])
        axis.plot(*path[:, :2].T, color=colour, linewidth=1.1, zorder=2)
        axis.plot(*path[0, :2], color=colour, marker="o", markersize=4, linestyle="", zorder=3)
    axis.set_aspect("equal")
    axis.set(xlabel="x", ylabel="y")


def share_limits(axes: np.ndarray, truth: np.ndarray | None) -> None:
    """The same square window for both models, so that paths can be compared.

    A prediction that flies far off leaves the picture: the truth has to be seen.
    """
    x = np.array([axis.get_xlim() for axis in axes])
    y = np.array([axis.get_ylim() for axis in axes])
    if truth is not None:
        x, y = _bounded(x, truth[..., 0]), _bounded(y, truth[..., 1])
    half = max(x.max() - x.min(), y.max() - y.min()) / 2
    centre_x, centre_y = (x.max() + x.min()) / 2, (y.max() + y.min()) / 2
    for axis in axes:
        axis.set_xlim(centre_x - half, centre_x + half)
        axis.set_ylim(centre_y - half, centre_y + half)


def _bounded(limits: np.ndarray, truth: np.ndarray) -> np.ndarray:
    room = _MOST_ROOM * max(float(np.ptp(truth)), 1e-6)
    return np.asarray(np.clip(limits, truth.min() - room, truth.max() + room))


def _add_legend(figure: Figure) -> None:
    handles = [
        Line2D([], [], color=TRUTH, alpha=0.25, linewidth=3.5, label="truth"),
        Line2D([], [], color=PARTICLES[0], linewidth=1.1, label="prediction"),
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=2)
