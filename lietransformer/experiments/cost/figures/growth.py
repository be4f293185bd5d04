"""Time and memory of a training step against each size that it depends on."""

from typing import get_args

from matplotlib.axes import Axes

from lietransformer.experiments.cost.figures.complexity import COSTS, WHAT, draw_slope, origin
from lietransformer.experiments.cost.read import Cost, StepCosts, StepSize, read_step_costs
from lietransformer.report.figures.drawing import Drawing
from lietransformer.report.figures.style import PAGE, Look, new_figure, say_nothing_to_draw
from lietransformer.report.runs import Sweep

_LOOKS = {
    "LieTransformer": Look("#0072B2", "o", "LieTransformer"),
    "LieConv": Look("#D55E00", "s", "LieConv"),
    "neighbours": Look("#009E73", "^", "of it, finding neighbours"),
}
_OTHER_LOOK = Look("#777777", "x", "")
_MANY_SIZES = 5  # whose labels would meet
_SIZES: dict[StepSize, str] = {
    "set_size": "points",
    "neighbourhood": "neighbourhood",
    "lift_samples": r"lift samples $|\hat{H}|$",
    "layers": "layers",
    "batch": "batch",
}
_WORDS: dict[StepSize, str] = {
    "set_size": "points",
    "neighbourhood": "neighbours",
    "lift_samples": "lift samples",
    "layers": "layers",
    "batch": "examples",
}


def draw(sweep: Sweep) -> Drawing:
    """Time above, memory below; a column for each size."""
    figure = new_figure(PAGE, 3.9)
    costs = read_step_costs(sweep)
    nothing = sweep.runs.iloc[:0]
    if costs is None:
        say_nothing_to_draw(figure.subplots(), WHAT)
        return Drawing(figure, _caption(), nothing, [WHAT.replace("\n", " ")])
    axes = figure.subplots(2, len(_SIZES), sharex="col", sharey="row")
    for cost, row in zip(get_args(Cost), axes, strict=True):
        for along, axis in zip(_SIZES, row, strict=True):
            _draw_curves(axis, costs, cost, along)
        row[0].set_ylabel(COSTS[cost])
    for along, axis in zip(_SIZES, axes[-1], strict=True):
        axis.set_xlabel(_SIZES[along])
    figure.legend(
        *axes[0, 0].get_legend_handles_labels(),
        loc="outside upper center",
        ncols=4,
        title="above each panel: the power that each curve grows with at its end",
        title_fontsize=7,
    )
    return Drawing(figure, _caption(costs), nothing, origin=origin(sweep, costs))


def _caption(costs: StepCosts | None = None) -> str:
    held = "the others held"
    if costs is not None:
        values = ", ".join(f"{costs.held[name]:g} {_WORDS[name]}" for name in _SIZES)
        held = f"the others held at {values}"
    return (
        "What a training step costs (forward, loss, backward, Adam) on SE(2) with a sampled ball, "
        f"measured: one size changes, {held}. Grey: slope 1. The exponent of the power law that "
        "fits the three largest sizes best stands above the panel, in the colour of its curve. "
        "Neighbours are found among all elements, whose number is points times lift samples."
    )


def _draw_curves(axis: Axes, costs: StepCosts, cost: Cost, along: StepSize) -> None:
    axis.set(xscale="log", yscale="log")
    curves = {model: costs.curve(model, cost, along) for model in costs.models}
    for number, (model, curve) in enumerate(curves.items()):
        look = _LOOKS.get(model, _OTHER_LOOK)
        label = look.label or model
        axis.plot(curve.sizes, curve.costs, color=look.colour, marker=look.marker, label=label)
        if curve.end.exponent is not None:
            _write_exponent(axis, curve.end.exponent, look.colour, number)
    sizes = sorted({size for curve in curves.values() for size in curve.sizes})
    draw_slope(axis, sizes, min(curve.costs[0] for curve in curves.values()) / 2)
    ticks = sizes if len(sizes) < _MANY_SIZES else sizes[::2]
    axis.set_xticks(ticks, labels=[f"{size:g}" for size in ticks])
    axis.minorticks_off()


def _write_exponent(axis: Axes, exponent: float, colour: str, number: int) -> None:
    """Write an exponent above the panel, beside those of `number` other curves."""
    axis.annotate(
        f"{round(exponent, 2) + 0.0:.2f}",  # without a sign where it is zero
        (0.02 + 0.33 * number, 1.03),
        xycoords="axes fraction",
        color=colour,
        fontsize=7,
    )
