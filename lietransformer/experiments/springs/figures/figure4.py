"""Figure 4: test error against the number of training examples."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lietransformer.reference import data_efficiency
from lietransformer.report.figures.curves import (
    comparison_note,
    draw_comparison,
    draw_median,
    draw_paper,
    not_finite,
    over_seeds,
)
from lietransformer.report.figures.drawing import Drawing
from lietransformer.report.figures.legend import add_legend
from lietransformer.report.figures.style import LOOKS, PAGE, new_figure, say_nothing_to_draw
from lietransformer.report.runs import Sweep, numbers
from lietransformer.report.sizes import sizes_not_run

_PANELS = {"test": "5-step roll-outs", "test_long": "100-step roll-outs"}
_ERROR = "test MSE, geometric mean over steps"


def draw(sweep: Sweep) -> Drawing:
    """Median and interquartile range over seeds, of the weights with the best validation."""
    runs = sweep.select("data_efficiency")
    figure = new_figure(PAGE, 3.1)
    axes = figure.subplots(1, 2, sharex=True)
    for axis, test_set in zip(axes, _PANELS, strict=True):
        _draw_panel(axis, sweep, test_set)
    axes[0].set_ylabel(_ERROR)
    add_legend(figure, LOOKS.values(), paper=True, comparison=sweep.comparison is not None)
    return Drawing(
        figure,
        "Data efficiency on springs: median test error and interquartile range "
        f"{over_seeds(runs, 'model', 'n_train')} after 5 steps (left) and 100 steps (right), "
        "against the number of training examples. All models are trained on 5 steps. Dashed and "
        "hatched: the paper's medians and interquartile ranges, known for 5 steps only."
        + comparison_note(sweep),
        runs,
        [
            *_not_run(sweep),
            *not_finite(runs, [f"best/{name}/mse_geometric" for name in _PANELS]),
        ],
    )


def draw_overview(sweep: Sweep) -> Figure:
    """The panel of 5 steps alone, ours beside the paper's bands, for the top of the report."""
    figure = new_figure(4.1, 3.6)
    axis = figure.subplots()
    _draw_panel(axis, sweep, "test")
    axis.set_ylabel(_ERROR)
    add_legend(figure, LOOKS.values(), paper=True, comparison=sweep.comparison is not None)
    return figure


def _draw_panel(axis: Axes, sweep: Sweep, test_set: str) -> None:
    axis.set(xscale="log", yscale="log", xlabel="training examples", title=_PANELS[test_set])
    paper = data_efficiency() if test_set == "test" else {}
    is_drawn = False
    for model, look in LOOKS.items():
        if model in paper:
            draw_paper(axis, paper[model], look)
        if sweep.comparison is not None:
            draw_comparison(axis, _values(sweep.comparison, model, test_set), look)
        is_drawn |= draw_median(axis, _values(sweep, model, test_set), look)
    if not is_drawn:
        say_nothing_to_draw(axis, "all springs runs")


def _values(sweep: Sweep, model: str, test_set: str) -> dict[int, list[float]]:
    """Errors of a model's runs by the number of training examples."""
    runs = sweep.select("data_efficiency", model=model)
    metric = f"best/{test_set}/mse_geometric"
    return {int(n): list(numbers(own, metric).values()) for n, own in runs.groupby("n_train")}


def _not_run(sweep: Sweep) -> list[str]:
    """Which points of the paper, or of the sweep, have no finished run, and what they cost."""
    missing = []
    for model in LOOKS:
        runs = sweep.select("data_efficiency", model=model)
        is_done = (runs["status"] == "finished").groupby(runs["n_train"]).any()
        sizes = {*data_efficiency()[model], *map(int, is_done.index)}
        missing += sizes_not_run(
            sweep, sorted(n for n in sizes if not is_done.get(n, False)), model
        )
    return missing
