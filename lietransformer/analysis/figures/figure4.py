"""Figure 4: test error against the number of training examples."""

from matplotlib.axes import Axes

from lietransformer.analysis.figures.curves import (
    draw_median,
    draw_published,
    not_finite,
    over_seeds,
)
from lietransformer.analysis.figures.drawing import Drawing
from lietransformer.analysis.figures.legend import add_legend
from lietransformer.analysis.figures.style import LOOKS, PAGE, new_figure, say_nothing_to_draw
from lietransformer.analysis.runs import Sweep, numbers
from lietransformer.reference import data_efficiency

_PANELS = {"test": "5-step roll-outs", "test_long": "100-step roll-outs"}


def draw(sweep: Sweep) -> Drawing:
    """Median and interquartile range over seeds, of the weights with the best validation."""
    runs = sweep.select("data_efficiency")
    figure = new_figure(PAGE, 3.1)
    axes = figure.subplots(1, 2, sharex=True)
    for axis, (test_set, title) in zip(axes, _PANELS.items(), strict=True):
        axis.set(xscale="log", yscale="log", xlabel="training examples", title=title)
        _draw_panel(axis, sweep, test_set)
    axes[0].set_ylabel("test MSE, geometric mean over steps")
    add_legend(figure, LOOKS.values(), published=True)
    return Drawing(
        figure,
        "Data efficiency on springs: median test error and interquartile range "
        f"{over_seeds(runs, 'model', 'n_train')} after 5 steps (left) and 100 steps (right), "
        "against the number of training examples. All models are trained on 5 steps. Dashed and "
        "faint: the paper's medians, which are known for 5 steps.",
        runs,
        [
            *missing_sizes(sweep),
            *not_finite(runs, [f"best/{name}/mse_geometric" for name in _PANELS]),
        ],
    )


def _draw_panel(axis: Axes, sweep: Sweep, test_set: str) -> None:
    published = data_efficiency() if test_set == "test" else {}
    is_drawn = False
    for model, look in LOOKS.items():
        if model in published:
            draw_published(axis, published[model], look)
        runs = sweep.select("data_efficiency", model=model)
        metric = f"best/{test_set}/mse_geometric"
        values = {int(n): list(numbers(own, metric).values()) for n, own in runs.groupby("n_train")}
        is_drawn |= draw_median(axis, values, look)
    if not is_drawn:
        say_nothing_to_draw(axis, "all runs of data_efficiency")


def missing_sizes(sweep: Sweep) -> list[str]:
    """Which points have no finished run."""
    missing = []
    for model, look in LOOKS.items():
        runs = sweep.select("data_efficiency", model=model)
        is_there = (runs["status"] == "finished").groupby(runs["n_train"]).any()
        sizes = [f"{n:,}" for n, there in is_there.items() if not there]
        if runs.empty:
            missing.append(f"{look.label} (no run planned)")
        elif sizes:
            missing.append(f"{look.label} at n = {', '.join(sizes)}")
    return missing
