"""Figure 3: how the invariance error falls with the lift samples, and an example cloud."""

import numpy as np
from matplotlib.axes import Axes

from lietransformer.analysis.figures.curves import draw_median
from lietransformer.analysis.figures.drawing import Drawing
from lietransformer.analysis.figures.style import (
    PAGE,
    PARTICLES,
    Look,
    new_figure,
    say_nothing_to_draw,
)
from lietransformer.analysis.invariance import Invariance, read_invariance
from lietransformer.analysis.provenance import short_commit
from lietransformer.analysis.runs import Sweep

_LOOK = Look("#0072B2", "o", "LieTransformer-SE2, one layer")
_PAPER_RUNS = 100
_MARKERS = {"square": "s", "triangle": "^", "pentagon": "p", "L": "P"}


def draw(sweep: Sweep) -> Drawing:
    """Left: median and interquartile range of the error. Right: one example."""
    figure = new_figure(PAGE, 2.9)
    left, right = figure.subplots(1, 2, width_ratios=(1.25, 1))
    invariance = read_invariance(sweep)
    nothing = sweep.runs.iloc[:0]
    caption = (
        "Left: SE(2) invariance error of the logits against the number of lift samples, one "
        "layer, not trained; median and interquartile range over model seed, example and "
        "transformation. Right: an example, a colour for each pattern."
    )
    _label(left)
    if invariance is None:
        for axis in (left, right):
            say_nothing_to_draw(axis, "the measurement of\n`lietransformer invariance`")
        return Drawing(figure, caption, nothing, ["the measurement of `lietransformer invariance`"])
    draw_median(left, invariance.errors, _LOOK)
    left.set(xscale="log", yscale="log")
    left.set_title(f"median and IQR of {invariance.runs} runs")
    _draw_example(right, invariance)
    return Drawing(figure, caption, nothing, origin=_origin(sweep, invariance))


def _origin(sweep: Sweep, invariance: Invariance) -> list[str]:
    paper = "" if invariance.runs == _PAPER_RUNS else f"; the paper has {_PAPER_RUNS}"
    return [
        f"Measurement: {sweep.measurements['invariance'].name}, {invariance.runs} runs{paper}.",
        f"Commit: {short_commit(invariance.commit) if invariance.commit else 'unknown'}.",
    ]


def _label(axis: Axes) -> None:
    axis.set(xlabel=r"lift samples $|\hat{H}|$", ylabel="invariance error of the logits")


def _draw_example(axis: Axes, invariance: Invariance) -> None:
    for instance in np.unique(invariance.instances):
        own = invariance.instances == instance
        pattern = invariance.patterns[int(np.argmax(own))]
        kind = list(dict.fromkeys(invariance.patterns)).index(pattern)
        x, y = invariance.positions[own].T
        axis.scatter(
            x,
            y,
            color=PARTICLES[kind % len(PARTICLES)],
            marker=_MARKERS.get(pattern, "o"),
            s=22,
            label=pattern,
        )
    axis.set_aspect("equal", adjustable="datalim")
    axis.set(title="an example", xlabel="$x$", ylabel="$y$")
    axis.legend(loc="upper left", bbox_to_anchor=(1, 1))
