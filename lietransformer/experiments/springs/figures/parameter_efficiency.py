"""Figures 7 and 8: test error by group and number of parameters."""

import pandas as pd
from matplotlib.axes import Axes

from lietransformer.reference import parameter_counts
from lietransformer.report.figures.curves import comparison_note, not_finite, over_seeds
from lietransformer.report.figures.drawing import Drawing
from lietransformer.report.figures.legend import add_legend
from lietransformer.report.figures.style import (
    COLUMN,
    COMPARISON,
    LOOKS,
    Look,
    new_figure,
    say_nothing_to_draw,
)
from lietransformer.report.prices import not_run
from lietransformer.report.runs import Sweep, numbers
from lietransformer.report.sizes import (
    PAPER_PARAMETER_SIZE,
    PARAMETER_SEEDS,
    springs_configurations,
)
from lietransformer.report.statistics import summarise
from lietransformer.report.variants import (
    ARCHITECTURES,
    VARIANTS,
    comparison_size,
    variant_runs,
)

_TICKS = {"T2 small": "T(2)\nsmall", "T2": "T(2)", "SE2 small": "SE(2)\nsmall"}
_OFFSET = 0.13  # between the two models of a variant


def draw_figure7(sweep: Sweep) -> Drawing:
    """5 steps."""
    return _draw(sweep, "test", 5)


def draw_figure8(sweep: Sweep) -> Drawing:
    """100 steps."""
    return _draw(sweep, "test_long", 100)


def _draw(sweep: Sweep, test_set: str, steps: int) -> Drawing:
    figure = new_figure(COLUMN, 3.1)
    axis = figure.subplots()
    looks = {name: LOOKS[f"{name}-T2"] for name in ARCHITECTURES}
    metric = f"final/{test_set}/mse_geometric"
    missing: list[str] = []
    drawn: list[pd.DataFrame] = []
    for side, architecture in zip((-_OFFSET, _OFFSET), ARCHITECTURES, strict=True):
        for place, variant in enumerate(VARIANTS):
            runs = variant_runs(sweep, architecture, variant)
            drawn.append(runs)
            values = list(numbers(runs, metric).values())
            if sweep.comparison is not None:
                published = variant_runs(sweep.comparison, architecture, variant)
                _draw_published(axis, place + side, published, metric, looks[architecture])
            if not values:
                missing.append(f"{architecture}-{variant}")
                continue
            _draw_point(axis, place + side, values, looks[architecture])
            _label_point(axis, place + side, values, _parameters(f"{architecture}-{variant}", runs))
    axis.set_xticks(range(len(VARIANTS)), [_TICKS[variant] for variant in VARIANTS])
    axis.set(
        yscale="log", ylabel="test MSE, geometric mean over steps", xlim=(-0.8, len(VARIANTS) - 0.2)
    )
    axis.grid(visible=False, axis="x")
    axis.grid(which="both", axis="y")
    if len(missing) == len(ARCHITECTURES) * len(VARIANTS):
        say_nothing_to_draw(axis, "all runs of small\nand large models")
    size = comparison_size(sweep)
    axis.set_title(f"{steps}-step roll-outs, n = {size:,}")
    shown = pd.concat(drawn)
    named = [Look(look.colour, look.marker, name) for name, look in looks.items()]
    add_legend(figure, named, comparison=sweep.comparison is not None)
    return Drawing(
        figure,
        f"Models by group and number of parameters: test error over {steps} steps, median and "
        f"interquartile range {over_seeds(shown, 'model')}, {size:,} training examples, final "
        "weights. The numbers of parameters stand beside the points." + comparison_note(sweep),
        shown,
        [*_not_run(sweep, missing, size), *not_finite(shown, [metric])],
    )


def _not_run(sweep: Sweep, models: list[str], size: int) -> list[str]:
    """Models without a finished run, and the paper's size, with their price."""
    if size != PAPER_PARAMETER_SIZE:
        own = [f"{', '.join(models)}, not run"] if models else []
        everything = [f"{name}-{variant}" for name in ARCHITECTURES for variant in VARIANTS]
        return [*own, f"n = {PAPER_PARAMETER_SIZE:,}, {not_run(_price(sweep, everything))}"]
    return [f"{', '.join(models)}, {not_run(_price(sweep, models))}"] if models else []


def _price(sweep: Sweep, models: list[str]) -> float | None:
    configurations = springs_configurations(models, [PAPER_PARAMETER_SIZE])
    return sweep.prices.total(configurations, PARAMETER_SEEDS)


def _draw_published(axis: Axes, x: float, runs: pd.DataFrame, metric: str, look: Look) -> None:
    median = summarise(list(numbers(runs, metric).values())).median
    if median is not None:
        axis.plot(x, median, color=look.colour, marker=look.marker, markersize=8, **COMPARISON)


def _draw_point(axis: Axes, x: float, values: list[float], look: Look) -> None:
    summary = summarise(values)
    axis.plot(x, summary.median or 0.0, color=look.colour, marker=look.marker, markersize=6)
    if summary.lower_quartile is not None and summary.upper_quartile is not None:
        axis.vlines(x, summary.lower_quartile, summary.upper_quartile, color=look.colour, lw=1.6)


def _label_point(axis: Axes, x: float, values: list[float], text: str) -> None:
    is_left = x < round(x)
    axis.annotate(
        text,
        (x, summarise(values).median or 0.0),
        xytext=(-5 if is_left else 5, 0),
        textcoords="offset points",
        ha="right" if is_left else "left",
        va="center",
        fontsize=6,
        color="#444444",
    )


def _parameters(model: str, runs: pd.DataFrame) -> str:
    """In thousands, as the runs have them or, before there are any, as the paper does."""
    known = runs["parameters"].dropna()
    if len(known):
        return f"{round(int(known.iloc[0]) / 1000)}k"
    count = parameter_counts().get(("springs", model))
    return count.paper if count else ""
