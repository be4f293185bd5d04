"""Claim 18: appendix G, how time and memory grow."""

from collections.abc import Mapping
from typing import Any, get_args

import numpy as np

from lietransformer.experiments.cost.read import Cost, Costs, Curve, Size, read_costs
from lietransformer.report.claims.rules import HOLDS, Ruling, all_of
from lietransformer.report.claims.verdict import Claim, Evidence, Judgement, Needs
from lietransformer.report.runs import Sweep
from lietransformer.report.statistics import mean_interval, slope_interval

LAYERS = ("LieSelfAttention", "LieConv")
NAIVE = "LieConv without the PointConv trick"
EXPONENT = 1.25  # linear is 1, quadratic is 2
SAVING = 2.0  # factor in memory
# The paper has no sizes. Smaller sets than these say little about how costs grow.
_LARGEST: Mapping[Size, tuple[int, str]] = {
    "set_size": (4096, "group elements"),
    "neighbourhood": (128, "neighbours"),
}
SAVINGS = "saving"  # cell of log-ratios of memory, naive over trick, by size
Cells = Mapping[Any, Any]


def _gather(sweep: Sweep) -> Evidence:
    costs = read_costs(sweep)
    if costs is None or not costs.points:
        return Evidence({})
    cells: dict[Any, Any] = {}
    for layer in LAYERS:
        for cost in get_args(Cost):
            for along in get_args(Size):
                curves = costs.curves(layer, cost, along)
                if curves:
                    cells[layer, cost, along] = curves[0]
    cells[SAVINGS] = _savings(costs)
    sizes = {(point["set_size"], point["neighbourhood"]) for point in costs.points}
    found = {along: max(point[along] for point in costs.points) for along in _LARGEST}
    reductions = tuple(
        f"up to {found[along]:,.0f} {what} instead of {largest:,}"
        for along, (largest, what) in _LARGEST.items()
        if found[along] < largest
    )
    return Evidence(cells, f"{len(sizes)} sizes, measured on {costs.machine}", reductions)


def _savings(costs: Costs) -> list[float]:
    memory = {
        (point["layer"], point["set_size"], point["neighbourhood"]): point["megabytes"]
        for point in costs.points
    }
    return [
        float(np.log(naive / memory["LieConv", size, near]))
        for (layer, size, near), naive in memory.items()
        if layer == NAIVE and ("LieConv", size, near) in memory
    ]


def _orders(cells: Cells) -> Judgement:
    rulings: list[Ruling] = []
    notes: list[str] = []
    largest = -np.inf
    for layer in LAYERS:
        for cost in get_args(Cost):
            for along in get_args(Size):
                curve = cells.get((layer, cost, along))
                fit = _exponent(curve) if curve is not None else None
                where = f"{layer}, {cost} against {along.replace('_', ' ')}"
                if fit is None:
                    rulings.append(Ruling("undecided", "fewer than three sizes; three are needed"))
                    notes.append(f"{where}: fewer than three sizes measured")
                    continue
                exponent, low, high = fit
                largest = max(largest, exponent)
                rulings.append(_at_most(exponent, low, high, where))
                notes.append(f"{where}: exponent {exponent:.2f} [{low:.2f}, {high:.2f}]")
    saving, text = _saving(cells.get(SAVINGS, ()))
    ours = f"exponents up to {largest:.2f}; {text}"
    return Judgement(all_of([*rulings, saving]), ours, notes=(*notes, text))


def _at_most(exponent: float, low: float, high: float, where: str) -> Ruling:
    if high <= EXPONENT:
        return HOLDS
    if low > EXPONENT:
        return Ruling("fails", f"{where}: the exponent is {exponent:.2f}")
    return Ruling("undecided", f"{where}: the interval of the exponent reaches {high:.2f}")


def _exponent(curve: Curve) -> tuple[float, float, float] | None:
    return slope_interval([*np.log(curve.sizes)], [*np.log(curve.costs)])


def _saving(ratios: Any) -> tuple[Ruling, str]:
    """Whether the PointConv trick saves memory."""
    interval = mean_interval(list(ratios))
    if interval is None:
        text = "the PointConv trick was not measured at two sizes"
        return Ruling("undecided", text), text
    low, high = np.exp(interval)
    text = f"the PointConv trick saves ×{np.exp(np.mean(ratios)):.3g} [{low:.3g}, {high:.3g}]"
    text += " in memory"
    if low >= SAVING:
        return HOLDS, text
    reason = f"the saving is not known to reach a factor of {SAVING:g}"
    if high < SAVING:
        return Ruling("fails", f"the saving is below a factor of {SAVING:g}"), text
    return Ruling("undecided", reason), text


CLAIMS = (
    Claim(
        18,
        "Time and memory of LieSelfAttention and LieConv grow at most in proportion to the number "
        "of group elements and to the neighbourhood, and the PointConv trick saves memory.",
        "Appendix G",
        "exponents of 1; no number for the saving",
        "A measurement. For both layers, time and memory against each of the two, the other held "
        "fixed: the 95 % interval of the exponent (least squares on logarithms) lies below "
        f"{EXPONENT}. The interval of the naive layer's memory over the trick's, averaged over the "
        f"sizes, lies above {SAVING:g}.",
        Needs("`lietransformer complexity`: 30 measurements of each layer, without training"),
        _gather,
        _orders,
    ),
)
