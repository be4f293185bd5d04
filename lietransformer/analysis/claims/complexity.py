"""Claim 18: appendix G, how time and memory grow."""

from collections.abc import Iterator
from typing import get_args

from lietransformer.analysis.claims.verdict import Claim, Condition, Finding, all_hold
from lietransformer.analysis.costs import Cost, Costs, Size, read_costs
from lietransformer.analysis.runs import Sweep

_LAYERS = ("LieSelfAttention", "LieConv")
_EXPONENT = 1.15  # linear, and some room for what a machine adds


def _orders(sweep: Sweep) -> Finding:
    costs = read_costs(sweep)
    if costs is None or not costs.points:
        return all_hold([Condition(None, "there is no measurement of `lietransformer complexity`")])
    return all_hold(list(_conditions(costs)))


def _conditions(costs: Costs) -> Iterator[Condition]:
    for layer in _LAYERS:
        for cost in get_args(Cost):
            for along in get_args(Size):
                where = f"{layer}, {cost} against {along.replace('_', ' ')}"
                known = [
                    curve.exponent
                    for curve in costs.curves(layer, cost, along)
                    if curve.exponent is not None
                ]
                if known:
                    text = f"{where}: grows with the power {max(known):.2f}"
                    yield Condition(max(known) <= _EXPONENT, text)
                else:
                    yield Condition(None, f"{where}: too few sizes measured")


CLAIMS = (
    Claim(
        18,
        "Time and memory of LieSelfAttention and of LieConv grow in proportion to the number of "
        "group elements and to the size of the neighbourhood.",
        "Appendix G",
        "For both layers, time and memory against each of the two, the other held fixed, grow with "
        f"a power of {_EXPONENT} at most (least squares on logarithms).",
        _orders,
    ),
)
