"""Figure 3: how the invariance error falls with the lift samples, and a training example."""

import numpy as np
from matplotlib.axes import Axes

from lietransformer.experiments.symmetry.read import Invariance, read_invariance
from lietransformer.report.figures.curves import draw_median
from lietransformer.report.figures.drawing import Drawing
from lietransformer.report.figures.style import (
    PAGE,
    PARTICLES,
    TRUTH,
    Look,
    new_figure,
    say_nothing_to_draw,
)
from lietransformer.report.provenance import short_commit
from lietransformer.report.runs import Sweep

_LOOK = Look("#0072B2", "o", "LieTransformer-SE2, one layer")
_PAPER_RUNS = 100
# An example has up to eight instances.
_INSTANCES = (*PARTICLES, "#999933", TRUTH)


def draw(sweep: Sweep) -> Drawing:
    """Left: median and interquartile range of the error. Right: one example of D_train."""
    figure = new_figure(PAGE, 3.2)
    left, right = figure.subplots(1, 2, width_ratios=(1.25, 1))
    invariance = read_invariance(sweep)
    nothing = sweep.runs.iloc[:0]
    caption = (
        "Left: SE(2) invariance error of the logits against the number of lift samples, one "
        "layer, not trained; median and interquartile range over model seed, example and "
        "transformation. Right: an example, a colour for each instance of a pattern"
    )
    _label(left)
    if invariance is None:
        for axis in (left, right):
            say_nothing_to_draw(axis, "the measurement of\n`lietransformer invariance`")
        missing = ["the measurement of `lietransformer invariance`"]
        return Drawing(figure, f"{caption}.", nothing, missing)
    draw_median(left, invariance.errors, _LOOK)
    left.set(xscale="log", yscale="log")
    left.set_title(f"median and IQR of {invariance.runs} runs")
    _draw_example(right, invariance)
    if invariance.training_index is not None:
        caption += (
            f"; it is example {invariance.training_index} of D_train, the first with all four "
            "patterns"
        )
    return Drawing(figure, f"{caption}.", nothing, origin=_origin(sweep, invariance))


def _origin(sweep: Sweep, invariance: Invariance) -> list[str]:
    paper = "" if invariance.runs == _PAPER_RUNS else f"; the paper has {_PAPER_RUNS}"
    return [
        f"Measurement: {sweep.measurements['invariance'].name}, {invariance.runs} runs{paper}.",
        f"Commit: {short_commit(invariance.commit) if invariance.commit else 'unknown'}.",
    ]


def _label(axis: Axes) -> None:
    axis.set(xlabel=r"lift samples $|\hat{H}|$", ylabel="invariance error of the logits")


def _draw_example(axis: Axes, invariance: Invariance) -> None:
    """Each instance in its colour, with the name of its pattern: patterns are tiny."""
    for instance, colour in zip(np.unique(invariance.instances), _INSTANCES * 5, strict=False):
        own = invariance.instances == instance
        pattern = invariance.patterns[int(np.argmax(own))]
        x, y = invariance.positions[own].T
        axis.scatter(x, y, color=colour, s=3, linewidths=0, label=pattern)
        axis.annotate(
            pattern,
            (float(x.mean()), float(y.max())),
            xytext=(0, 2),
            textcoords="offset points",
            ha="center",
            color=colour,
            fontsize=6,
        )
    axis.set_aspect("equal")
    ticks = (-1, -0.5, 0, 0.5, 1)
    axis.set(xlim=(-1.15, 1.15), ylim=(-1.15, 1.15), xticks=ticks, yticks=ticks)
    axis.set(xlabel="$x$", ylabel="$y$")
    index = invariance.training_index
    rule = f"training example {index},\nthe first with all four patterns"
    axis.set_title("an example" if index is None else rule)
