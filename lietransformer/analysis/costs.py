"""What layers were measured to cost."""

import logging
import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from lietransformer.analysis.runs import Sweep, read_json

log = logging.getLogger(__name__)

Cost = Literal["seconds", "megabytes"]
Size = Literal["set_size", "neighbourhood"]
OTHER: dict[Size, Size] = {"set_size": "neighbourhood", "neighbourhood": "set_size"}
_FEWEST_SIZES = 3


@dataclass(frozen=True)
class Curve:
    """Costs of a layer along one size, the other held fixed.

    Attributes:
        sizes: in rising order.
        costs: at each of them.
        fixed: the other size.
    """

    sizes: tuple[float, ...]
    costs: tuple[float, ...]
    fixed: float

    @property
    def exponent(self) -> float | None:
        """Of the power law that fits best (least squares on logarithms)."""
        if len(self.sizes) < _FEWEST_SIZES:
            return None
        exponent = float(np.polyfit(np.log(self.sizes), np.log(self.costs), 1)[0])
        return exponent if math.isfinite(exponent) else None


@dataclass(frozen=True)
class Costs:
    """All measurements: a mapping for each layer and size.

    Attributes:
        points: "layer", "set_size", "neighbourhood", "seconds" and "megabytes" of each.
        commit: what measured it; None if that is not known.
        machine: on which it was measured.
    """

    points: list[dict[str, Any]]
    commit: str | None
    machine: str

    @property
    def layers(self) -> list[str]:
        return list(dict.fromkeys(str(point["layer"]) for point in self.points))

    def curves(self, layer: str, cost: Cost, along: Size) -> list[Curve]:
        """One for each value of the other size; the one with the most points first."""
        own = [point for point in self.points if point["layer"] == layer]
        curves = []
        for fixed in {point[OTHER[along]] for point in own}:
            found = {p[along]: p[cost] for p in own if p[OTHER[along]] == fixed}
            sizes, costs = zip(*sorted(found.items()), strict=True)
            curves.append(Curve(sizes, costs, fixed))
        return sorted(curves, key=lambda curve: -len(curve.sizes))


def read_costs(sweep: Sweep) -> Costs | None:
    """The measurements of a sweep; None where there are none, or none that can be read."""
    path = sweep.measurements.get("complexity")
    content = read_json(path) if path is not None and path.exists() else None
    if content is None:
        return None
    try:
        points = [
            {
                "layer": str(point["layer"]),
                **{name: _positive(point[name]) for name in (*OTHER, "seconds", "megabytes")},
            }
            for point in content["measurements"]
        ]
        machine = content.get("machine") or {}
        return Costs(points, content.get("git_commit"), str(machine.get("processor", "unknown")))
    except (KeyError, TypeError, ValueError) as error:
        log.warning("%s is left out: it cannot be read (%s)", path, error)
        return None


def _positive(value: Any) -> float:
    number = float(value)
    if not 0 < number < math.inf:
        raise ValueError(f"{value} is no cost")
    return number
