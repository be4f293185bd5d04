"""The measured costs of layers and training steps."""

import logging
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, get_args

import numpy as np

from lietransformer.files import read_json
from lietransformer.report.runs import Sweep

log = logging.getLogger(__name__)

Read = TypeVar("Read")

Cost = Literal["seconds", "megabytes"]
Size = Literal["set_size", "neighbourhood"]
OTHER: dict[Size, Size] = {"set_size": "neighbourhood", "neighbourhood": "set_size"}
StepSize = Literal["set_size", "neighbourhood", "lift_samples", "layers", "batch"]
_SCHEMA_VERSION = 2
_FEWEST_SIZES = 3


@dataclass(frozen=True)
class Curve:
    """Costs along one size, the others held fixed.

    Attributes:
        sizes: in rising order.
        costs: at each of them.
        fixed: the other size, where there is one.
    """

    sizes: tuple[float, ...]
    costs: tuple[float, ...]
    fixed: float | None = None

    @property
    def exponent(self) -> float | None:
        """The exponent of the best-fitting power law (least squares on logarithms)."""
        if len(self.sizes) < _FEWEST_SIZES:
            return None
        exponent = float(np.polyfit(np.log(self.sizes), np.log(self.costs), 1)[0])
        return exponent if math.isfinite(exponent) else None

    @property
    def end(self) -> "Curve":
        """The largest sizes, where constant costs matter least."""
        return Curve(self.sizes[-_FEWEST_SIZES:], self.costs[-_FEWEST_SIZES:], self.fixed)


@dataclass(frozen=True)
class Costs:
    """All measurements: a mapping for each layer and size.

    Attributes:
        points: "layer", "set_size", "neighbourhood", "seconds" and "megabytes" of each.
        commit: the code that measured it; None if unknown.
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


@dataclass(frozen=True)
class StepCosts:
    """All measurements of training steps: a mapping for each model and its sizes.

    Attributes:
        points: "model", the five sizes, "seconds" and "megabytes" of each.
        held: the sizes that were held while another was changed.
        commit: the code that measured it; None if unknown.
        machine: on which it was measured.
    """

    points: list[dict[str, Any]]
    held: dict[StepSize, float]
    commit: str | None
    machine: str

    @property
    def models(self) -> list[str]:
        return list(dict.fromkeys(str(point["model"]) for point in self.points))

    def curve(self, model: str, cost: Cost, along: StepSize) -> Curve:
        """Costs of a model along one size."""
        others = [(name, value) for name, value in self.held.items() if name != along]
        found = {
            point[along]: point[cost]
            for point in self.points
            if point["model"] == model and all(point[name] == value for name, value in others)
        }
        sizes = sorted(found)
        return Curve(tuple(sizes), tuple(found[size] for size in sizes))


def read_costs(sweep: Sweep) -> Costs | None:
    """The measurements of layers; None where there are none, or none that can be read."""
    return _read(sweep, _costs)


def read_step_costs(sweep: Sweep) -> StepCosts | None:
    """The measurements of training steps; None where there are none, or none that can be read."""
    return _read(sweep, _step_costs)


def parse(content: dict[str, Any]) -> tuple[Costs, StepCosts]:
    """A measurement as `lietransformer complexity` writes it."""
    _require_version(content)
    return _costs(content), _step_costs(content)


def _require_version(content: dict[str, Any]) -> None:
    version = content.get("schema_version")
    if version != _SCHEMA_VERSION:
        raise ValueError(
            f"schema version must be {_SCHEMA_VERSION}, got {version}. Measure again with "
            "`snakemake --cores all complexity`"
        )


def _costs(content: Any) -> Costs:
    points = _points(content["measurements"], "layer", get_args(Size))
    return Costs(points, content.get("git_commit"), _machine(content))


def _step_costs(content: Any) -> StepCosts:
    names = get_args(StepSize)
    points = _points(content["steps"], "model", names)
    held = {name: _positive(content["settings"]["steps"]["held"][name]) for name in names}
    return StepCosts(points, held, content.get("git_commit"), _machine(content))


def _read(sweep: Sweep, read: Callable[[Any], Read]) -> Read | None:
    path = sweep.measurements.get("complexity")
    content = read_json(path) if path is not None and path.exists() else None
    if content is None:
        return None
    try:
        _require_version(content)
        return read(content)
    except (KeyError, TypeError, ValueError) as error:
        log.warning("%s is left out: it cannot be read (%s)", path, error)
        return None


def _points(points: Any, label: str, sizes: Iterable[str]) -> list[dict[str, Any]]:
    numbers = (*sizes, "seconds", "megabytes")
    return [
        {label: str(point[label]), **{name: _positive(point[name]) for name in numbers}}
        for point in points
    ]


def _machine(content: Any) -> str:
    return str((content.get("machine") or {}).get("processor", "unknown"))


def _positive(value: Any) -> float:
    number = float(value)
    if not 0 < number < math.inf:
        raise ValueError(f"{value} is not a cost")
    return number
