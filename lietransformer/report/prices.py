"""What runs at the paper's scale cost at least, in GPU-hours."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lietransformer.errors import UserError
from lietransformer.layout import run_name

_SCHEMA_VERSION = 1


@dataclass(frozen=True)
class Prices:
    """GPU-hours of the configurations of the paper tier.

    Attributes:
        hours: of one run, by the name of its configuration; empty if no price is known.
        gpu: what the hours are of.
        measured_on: the processor that training steps were measured on.
    """

    hours: Mapping[str, float] = field(default_factory=dict)
    gpu: str = ""
    measured_on: str = ""

    def total(self, configurations: Iterable[Mapping[str, Any]], seeds: int = 1) -> float | None:
        """GPU-hours of some seeds of each configuration; None if one of them has no price."""
        hours = [self.hours.get(run_name(labels)) for labels in configurations]
        known = [own for own in hours if own is not None]
        return sum(known) * seeds if known and len(known) == len(hours) else None

    @property
    def note(self) -> list[str]:
        """What a GPU-hour is, as a sentence."""
        if not self.hours:
            return []
        steps = f" of training steps measured on {self.measured_on}" if self.measured_on else ""
        return [
            f"GPU-h: hours of a {self.gpu}, a lower bound: the arithmetic{steps}, at the rate of "
            "large matrix products. Small kernels and their launches take longer."
        ]


def read_prices(path: Path | None) -> Prices:
    """The prices in a file; none without one."""
    if path is None:
        return Prices()
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["schema_version"] != _SCHEMA_VERSION:
            raise ValueError(f"schema version {content['schema_version']}")
        hours = {str(name): float(own) for name, own in content["hours"].items()}
        return Prices(hours, str(content["gpu"]), str(content.get("measured_on") or ""))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(
            f"{path} is not a list of prices of schema version {_SCHEMA_VERSION} ({error}). "
            "Restore it with `git checkout`, or publish it again."
        ) from error


def gpu_hours(hours: float | None) -> str:
    """For example "≥ 41 GPU-h"; nothing if it is not known."""
    if hours is None:
        return ""
    if hours < 0.1:
        return "under 0.1 GPU-h of arithmetic"
    return f"≥ {hours:,.0f} GPU-h" if hours >= 10 else f"≥ {hours:.1f} GPU-h"


def not_run(hours: float | None) -> str:
    """For example "not run (≥ 41 GPU-h)"."""
    return f"not run ({gpu_hours(hours)})" if hours is not None else "not run"
