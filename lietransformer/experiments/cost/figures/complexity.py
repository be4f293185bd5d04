"""Time and memory of the layers against set size and neighbourhood: appendix G, measured."""

from collections.abc import Sequence
from typing import get_args

from matplotlib.axes import Axes

from lietransformer.experiments.cost.read import Cost, Costs, Curve, Size, StepCosts, read_costs
from lietransformer.report.figures.drawing import Drawing
from lietransformer.report.figures.style import PAGE, Look, new_figure, say_nothing_to_draw
from lietransformer.report.provenance import short_commit
from lietransformer.report.runs import Sweep

_LOOKS = {
    "LieSelfAttention": Look("#0072B2", "o", "LieSelfAttention"),
    "LieConv": Look("#D55E00", "s", "LieConv"),
    "LieConv without the PointConv trick": Look("#CC79A7", "D", "LieConv, a matrix for each pair"),
}
_OTHER_LOOK = Look("#777777", "x", "")
_SIZES: dict[Size, str] = {
    "set_size": r"group elements $|G_f|$",
    "neighbourhood": r"neighbourhood $n$",
}
COSTS: dict[Cost, str] = {"seconds": "seconds", "megabytes": "peak memory, MB"}
WHAT = "the measurement of\n`lietransformer complexity`"


def draw(sweep: Sweep) -> Drawing:
    """Time above, memory below; along the set on the left, along the neighbourhood right."""
    figure = new_figure(PAGE, 4.2)
    axes = figure.subplots(2, 2, sharey="row")
    costs = read_costs(sweep)
    caption = (
        "What a layer costs, forward and backward, measured; the paper gives orders only "
        "(appendix G), which for both layers are linear in the number of group elements and in "
        "the size of the neighbourhood (grey: slope 1). The exponent of the power law that fits "
        "best stands in the corner, in the colour of its curve."
    )
    for cost, row in zip(get_args(Cost), axes, strict=True):
        for along, axis in zip(get_args(Size), row, strict=True):
            axis.set(xlabel=_SIZES[along])
            if costs is None:
                say_nothing_to_draw(axis, WHAT)
            else:
                _draw_curves(axis, costs, cost, along)
        row[0].set_ylabel(COSTS[cost])
    nothing = sweep.runs.iloc[:0]
    if costs is None:
        return Drawing(figure, caption, nothing, [WHAT.replace("\n", " ")])
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=4)
    return Drawing(figure, caption, nothing, origin=origin(sweep, costs))


def _draw_curves(axis: Axes, costs: Costs, cost: Cost, along: Size) -> None:
    axis.set(xscale="log", yscale="log")
    longest: Curve | None = None
    exponents = 0
    for layer in costs.layers:
        curve = costs.curves(layer, cost, along)[0]
        if len(curve.sizes) == 1:
            continue
        look = _LOOKS.get(layer, _OTHER_LOOK)
        label = look.label or layer
        axis.plot(curve.sizes, curve.costs, color=look.colour, marker=look.marker, label=label)
        if curve.exponent is not None:
            place = (0.98, 0.04 + 0.09 * exponents)
            text = f"power {curve.exponent:.2f}"
            axis.annotate(
                text, place, xycoords="axes fraction", color=look.colour, fontsize=7, ha="right"
            )
            exponents += 1
        if longest is None or len(curve.sizes) > len(longest.sizes):
            longest = curve
    if longest is not None:
        draw_slope(axis, longest.sizes, longest.costs[0] / 6)
        other = "neighbourhoods of" if along == "set_size" else "among"
        axis.set_xticks(longest.sizes, labels=[f"{size:g}" for size in longest.sizes])
        axis.minorticks_off()
        axis.set_title(f"{other} {longest.fixed:g} elements")


def draw_slope(axis: Axes, sizes: Sequence[float], low: float) -> None:
    """A grey line of slope 1 from a cost at the first size."""
    ends = [low, low * sizes[-1] / sizes[0]]
    axis.plot([sizes[0], sizes[-1]], ends, color="#aaaaaa", linewidth=0.8, label="slope 1")


def origin(sweep: Sweep, costs: Costs | StepCosts) -> list[str]:
    """Where the numbers come from."""
    return [
        f"Measurement: {sweep.measurements['complexity'].name}, one thread of {costs.machine}.",
        f"Commit: {short_commit(costs.commit) if costs.commit else 'unknown'}.",
    ]
