"""Claim 18: appendix G, how time and memory grow."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from lietransformer.analysis.claims.verdict import Claim, Condition, Finding, all_hold
from lietransformer.analysis.runs import Sweep, read_json

FILE = "complexity.json"
_LAYERS = ("LieSelfAttention", "LieConv")
_COSTS = ("seconds", "megabytes")
_SIZES = {"set_size": "neighbourhood", "neighbourhood": "set_size"}  # and what is held fixed
_EXPONENT = 1.15  # linear, and some room for what a machine adds
_FEWEST_POINTS = 3


def _orders(sweep: Sweep) -> Finding:
    content = read_json(sweep.results / FILE) or {}
    measurements = content.get("measurements")
    if not isinstance(measurements, list) or not measurements:
        return all_hold([Condition(None, f"there is no measurement of the layers in {FILE}")])
    return all_hold(list(_conditions(measurements)))


def _conditions(measurements: list[dict[str, Any]]) -> Iterator[Condition]:
    for layer in _LAYERS:
        own = [point for point in measurements if point.get("layer") == layer]
        for cost in _COSTS:
            for along, fixed in _SIZES.items():
                where = f"{layer}, {cost} against {along.replace('_', ' ')}"
                exponent = _steepest(own, cost, along, fixed)
                if exponent is None:
                    yield Condition(None, f"{where}: fewer than {_FEWEST_POINTS} sizes measured")
                else:
                    text = f"{where}: grows with the power {exponent:.2f}"
                    yield Condition(exponent <= _EXPONENT, text)


def _steepest(points: list[dict[str, Any]], cost: str, along: str, fixed: str) -> float | None:
    """The largest exponent of a power law, over all that is held fixed."""
    slopes = []
    for value in {point.get(fixed) for point in points}:
        own = {
            float(point[along]): float(point[cost])
            for point in points
            if point.get(fixed) == value and point.get(along) and point.get(cost)
        }
        if len(own) >= _FEWEST_POINTS:
            x, y = (np.log(list(numbers)) for numbers in (own.keys(), own.values()))
            slopes.append(float(np.polyfit(x, y, 1)[0]))
    return max(slopes) if slopes and all(map(math.isfinite, slopes)) else None


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
