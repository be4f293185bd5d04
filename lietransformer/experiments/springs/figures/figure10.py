"""Figure 10: the error of each test trajectory under LieTransformer-T2 and LieConv-T2."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import NullFormatter

from lietransformer.experiments.springs.figures.pairs import (
    MODELS,
    Pair,
    find_pair,
    pair_runs,
    trajectory_size,
)
from lietransformer.experiments.springs.rollouts import CONVOLUTION, TRANSFORMER
from lietransformer.report.figures.drawing import Drawing
from lietransformer.report.figures.style import PAGE, TRUTH, new_figure, say_nothing_to_draw
from lietransformer.report.runs import Sweep
from lietransformer.report.sizes import PAPER_SIZES, shared_sizes, shown_sizes, sizes_not_run

_HIGHLIGHTS = (("o", "#D55E00"), ("^", "#009E73"), ("s", "#CC79A7"))


def draw(sweep: Sweep) -> Drawing:
    """A panel for each of the paper's sizes that was planned."""
    planned = shared_sizes(sweep, finished_only=False)
    sizes = shown_sizes(PAPER_SIZES["figure10"], planned)
    figure = new_figure(PAGE, 3.1)
    axes = figure.subplots(1, len(sizes), squeeze=False)[0]
    wanted = PAPER_SIZES["figure10"]
    missing = sizes_not_run(sweep, [n for n in wanted if n not in {*planned, *sizes}], *MODELS)
    for axis, size in zip(axes, sizes, strict=True):
        axis.set(xlabel="MSE of LieTransformer-T2", title=f"n = {size:,}\n")
        pair = find_pair(sweep, size)
        if pair is None:
            say_nothing_to_draw(axis, "roll-outs of both\nwith the same seed")
            missing.append(f"roll-outs of both models with the same seed at n = {size:,}")
        else:
            _draw_panel(axis, pair, is_highlighted=size == trajectory_size(sweep))
            missing += _without_end(pair)
    axes[0].set_ylabel("MSE of LieConv-T2")
    handles, labels = next(
        (found for axis in axes if (found := axis.get_legend_handles_labels())[0]), ([], [])
    )
    if handles:
        figure.legend(handles, labels, loc="outside upper center", ncols=4)
    return Drawing(
        figure,
        "The error of each 100-step test trajectory under both models, trained with the same "
        "seed: geometric mean over the steps, final weights. Above the line LieTransformer-T2 is "
        "better. The trajectories of Figures 6 and 11 are highlighted.",
        pair_runs(sweep, sizes),
        missing,
    )


def _without_end(pair: Pair) -> list[str]:
    """Trajectories that a model has no finite error for, in words."""
    return [
        f"a finite error of {model} at n = {pair.size:,} for {count} trajectories, which are drawn "
        "at the end of the axis"
        for model, own in pair.errors.items()
        if (count := int(np.isinf(own).sum()))
    ]


def _draw_panel(axis: Axes, pair: Pair, *, is_highlighted: bool) -> None:
    x, y = pair.errors[TRANSFORMER], pair.errors[CONVOLUTION]
    share = f"{100 * np.mean(x < y):.0f} %"
    both = np.concatenate([x, y])
    shown = both[np.isfinite(both) & (both > 0)]
    logarithms = np.log10(shown) if shown.size else np.array([0.5])
    # Whole decades, and room for the marks of what lies at their ends.
    ends = [10 ** np.floor(logarithms.min() - 0.1), 10 ** (np.floor(logarithms.max() + 0.1) + 1)]
    # What has left the range of numbers is drawn at the end of the axis.
    x, y = np.clip(x, *ends), np.clip(y, *ends)
    axis.scatter(
        x,
        y,
        s=4,
        color="#0072B2",
        alpha=0.5,
        linewidths=0,
        rasterized=len(x) > 5000,
        clip_on=False,
    )
    axis.plot(ends, ends, color=TRUTH, linewidth=0.7, linestyle=":")
    axis.set(xscale="log", yscale="log", xlim=ends, ylim=ends)
    for direction in (axis.xaxis, axis.yaxis):
        direction.set_minor_formatter(NullFormatter())  # these would overlap
    axis.set_aspect("equal")
    axis.set_title(f"n = {pair.size:,}\nLieTransformer is better on {share}")
    if is_highlighted:
        marks = zip(pair.highlighted.items(), _HIGHLIGHTS, strict=True)
        for (label, trajectory), (marker, colour) in marks:
            axis.scatter(
                x[trajectory],
                y[trajectory],
                s=32,
                marker=marker,
                facecolor="none",
                edgecolor=colour,
                linewidths=1.3,
                label=label,
                zorder=3,
                clip_on=False,
            )
