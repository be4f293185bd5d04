"""Figures 5 and 9: test error against the step of the roll-out."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lietransformer.analysis.figures.curves import (
    by_step,
    draw_median,
    draw_published,
    over_seeds,
)
from lietransformer.analysis.figures.drawing import Drawing
from lietransformer.analysis.figures.legend import add_legend
from lietransformer.analysis.figures.style import (
    COLUMN,
    LOOKS,
    PAGE,
    new_figure,
    say_nothing_to_draw,
)
from lietransformer.analysis.rollouts import CONVOLUTION, TRANSFORMER, error_per_step
from lietransformer.analysis.runs import Sweep
from lietransformer.analysis.sizes import (
    PAPER_ROLLOUT_SIZE,
    PAPER_SIZES,
    not_planned,
    shared_sizes,
    shown_sizes,
)
from lietransformer.reference import rollout_error

_MODELS = (TRANSFORMER, CONVOLUTION)
_MOST_COLUMNS = 3


def draw_figure5(sweep: Sweep) -> Drawing:
    """The paper's size, or the largest there is."""
    sizes = shared_sizes(sweep)
    has_paper_size = PAPER_ROLLOUT_SIZE in sizes or not sizes
    size = PAPER_ROLLOUT_SIZE if has_paper_size else max(sizes)
    figure = new_figure(COLUMN, 2.9)
    axis = figure.subplots()
    missing = _draw_panel(axis, sweep, size)
    axis.set_ylabel("test MSE")
    _add_legend(figure, published=size == PAPER_ROLLOUT_SIZE)
    runs = _runs(sweep, [size])
    instead = "" if has_paper_size else f" (the paper: {PAPER_ROLLOUT_SIZE:,})"
    return Drawing(
        figure,
        f"Test error against the step of the roll-out, trained on {size:,} examples{instead}: "
        f"median and interquartile range {over_seeds(runs, 'model')}, final weights."
        + (" Dashed and faint: the paper's medians." if size == PAPER_ROLLOUT_SIZE else ""),
        runs,
        missing,
    )


def draw_figure9(sweep: Sweep) -> Drawing:
    """A panel for each of the paper's sizes that was planned."""
    planned = shared_sizes(sweep, finished_only=False)
    sizes = shown_sizes(PAPER_SIZES["figure9"], planned)
    columns = min(_MOST_COLUMNS, len(sizes))
    rows = -(-len(sizes) // columns)
    figure = new_figure(PAGE, 2.0 * rows + 0.8)
    axes = figure.subplots(rows, columns, squeeze=False)
    missing = not_planned(PAPER_SIZES["figure9"], planned)
    for axis, size in zip(axes.flat, sizes, strict=False):
        missing += _draw_panel(axis, sweep, size)
    for axis in axes.flat[len(sizes) :]:
        axis.set_axis_off()
    for line in axes:
        line[0].set_ylabel("test MSE")
    for axis in axes.flat[: len(sizes) - columns]:
        axis.set_xlabel("")
    _add_legend(figure, published=PAPER_ROLLOUT_SIZE in sizes)
    runs = _runs(sweep, sizes)
    return Drawing(
        figure,
        "Test error against the step of the roll-out for several numbers of training examples: "
        f"median and interquartile range {over_seeds(runs, 'model', 'n_train')}, final weights."
        + (
            f" Dashed and faint: the paper's medians, which are known for {PAPER_ROLLOUT_SIZE:,} "
            "examples."
            if PAPER_ROLLOUT_SIZE in sizes
            else ""
        ),
        runs,
        missing,
    )


def _add_legend(figure: Figure, *, published: bool) -> None:
    add_legend(figure, [LOOKS[model] for model in _MODELS], marked=False, published=published)


def _runs(sweep: Sweep, sizes: list[int]) -> pd.DataFrame:
    runs = sweep.select("data_efficiency")
    return runs[runs["n_train"].isin(sizes) & runs["model"].isin(_MODELS)]


def _draw_panel(axis: Axes, sweep: Sweep, size: int) -> list[str]:
    """Both models at a size; returns those that are missing."""
    missing = []
    axis.set(xlabel="time step", yscale="log", title=f"n = {size:,}")
    for model in _MODELS:
        look = LOOKS[model]
        if size == PAPER_ROLLOUT_SIZE:
            draw_published(axis, rollout_error()[model], look)
        runs = sweep.select("data_efficiency", model=model, n_train=size)
        errors = error_per_step(sweep, runs)
        if not draw_median(axis, by_step(errors), look, marked=False):
            missing.append(f"{model} at n = {size:,}")
        lost = int(np.isinf(errors).any(axis=1).sum())
        if lost:
            missing.append(f"finite errors to the end of {lost} runs of {model} at n = {size:,}")
    if len(missing) == len(_MODELS):
        say_nothing_to_draw(axis, "both models")
    return missing
