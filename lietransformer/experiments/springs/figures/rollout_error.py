"""Figures 5 and 9: test error against the step of the roll-out."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lietransformer.experiments.springs.figures.pairs import MODELS, pair_runs
from lietransformer.experiments.springs.rollouts import error_per_step
from lietransformer.reference import rollout_error
from lietransformer.report.figures.curves import (
    by_step,
    comparison_note,
    draw_comparison,
    draw_median,
    draw_paper,
    over_seeds,
)
from lietransformer.report.figures.drawing import Drawing
from lietransformer.report.figures.legend import add_legend
from lietransformer.report.figures.style import (
    COLUMN,
    LOOKS,
    PAGE,
    new_figure,
    say_nothing_to_draw,
)
from lietransformer.report.runs import Sweep
from lietransformer.report.sizes import (
    PAPER_ROLLOUT_SIZE,
    PAPER_SIZES,
    shared_sizes,
    shown_sizes,
    sizes_not_run,
)

_MOST_COLUMNS = 3
_PAPER = "Dashed and hatched: the paper's medians and interquartile ranges"


def draw_figure5(sweep: Sweep) -> Drawing:
    """The paper's size, or the largest there is."""
    sizes = shared_sizes(sweep)
    has_paper_size = PAPER_ROLLOUT_SIZE in sizes or not sizes
    size = PAPER_ROLLOUT_SIZE if has_paper_size else max(sizes)
    figure = new_figure(COLUMN, 2.9)
    axis = figure.subplots()
    missing = _draw_panel(axis, sweep, size)
    if not has_paper_size:
        missing += sizes_not_run(sweep, [PAPER_ROLLOUT_SIZE], *MODELS)
    axis.set_ylabel("test MSE")
    _add_legend(figure, sweep, paper=size == PAPER_ROLLOUT_SIZE)
    runs = pair_runs(sweep, [size])
    instead = "" if has_paper_size else f" (the paper: {PAPER_ROLLOUT_SIZE:,})"
    return Drawing(
        figure,
        f"Test error against the step of the roll-out, trained on {size:,} examples{instead}: "
        f"median and interquartile range {over_seeds(runs, 'model')}, final weights."
        + (f" {_PAPER}." if size == PAPER_ROLLOUT_SIZE else "")
        + comparison_note(sweep),
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
    wanted = PAPER_SIZES["figure9"]
    missing = sizes_not_run(sweep, [n for n in wanted if n not in {*planned, *sizes}], *MODELS)
    for axis, size in zip(axes.flat, sizes, strict=False):
        missing += _draw_panel(axis, sweep, size)
    for axis in axes.flat[len(sizes) :]:
        axis.set_axis_off()
    for line in axes:
        line[0].set_ylabel("test MSE")
    for axis in axes.flat[: len(sizes) - columns]:
        axis.set_xlabel("")
    _add_legend(figure, sweep, paper=PAPER_ROLLOUT_SIZE in sizes)
    runs = pair_runs(sweep, sizes)
    return Drawing(
        figure,
        "Test error against the step of the roll-out for several numbers of training examples: "
        f"median and interquartile range {over_seeds(runs, 'model', 'n_train')}, final weights."
        + (
            f" {_PAPER}, known for {PAPER_ROLLOUT_SIZE:,} examples."
            if PAPER_ROLLOUT_SIZE in sizes
            else ""
        )
        + comparison_note(sweep),
        runs,
        missing,
    )


def _add_legend(figure: Figure, sweep: Sweep, *, paper: bool) -> None:
    has_published = sweep.comparison is not None
    looks = [LOOKS[model] for model in MODELS]
    add_legend(figure, looks, marked=False, paper=paper, comparison=has_published)


def _draw_panel(axis: Axes, sweep: Sweep, size: int) -> list[str]:
    """Both models at a size; returns those that are missing."""
    missing = []
    axis.set(xlabel="time step", yscale="log", title=f"n = {size:,}")
    for model in MODELS:
        look = LOOKS[model]
        if size == PAPER_ROLLOUT_SIZE:
            draw_paper(axis, rollout_error()[model], look)
        errors = _errors(sweep, model, size)
        if sweep.comparison is not None:
            published = _errors(sweep.comparison, model, size)
            draw_comparison(axis, by_step(published), look, marked=False)
        if not draw_median(axis, by_step(errors), look, marked=False):
            missing += sizes_not_run(sweep, [size], model)
        lost = int(np.isinf(errors).any(axis=1).sum())
        if lost:
            missing.append(f"finite errors to the end of {lost} runs of {model} at n = {size:,}")
    if len(missing) == len(MODELS):
        say_nothing_to_draw(axis, "both models")
    return missing


def _errors(sweep: Sweep, model: str, size: int) -> np.ndarray:
    """Errors by step of a model's runs, (runs, steps)."""
    return error_per_step(sweep, sweep.select("data_efficiency", model=model, n_train=size))
