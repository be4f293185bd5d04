"""The measurements of Figure 3."""

import logging
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lietransformer.files import read_json
from lietransformer.report.runs import Sweep

log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Invariance:
    """Invariance errors, and a training example of the constellations.

    Attributes:
        settings: of the measurement.
        errors: of each run, by number of lift samples.
        training_index: which example of D_train it is; None in measurements of older versions,
            whose example is not from D_train.
        positions: (points, 2) of the example.
        instances: (points,) which instance a point belongs to.
        patterns: the name of each point's pattern.
        commit: what measured it; None if that is not known.
    """

    settings: dict[str, Any]
    errors: dict[int, list[float]]
    training_index: int | None
    positions: np.ndarray
    instances: np.ndarray
    patterns: list[str]
    commit: str | None

    @property
    def runs(self) -> int:
        """How many runs each error is known from, at least."""
        return min((len(values) for values in self.errors.values()), default=0)


def read_invariance(sweep: Sweep) -> Invariance | None:
    """The measurements of a sweep; None where there are none, or none that can be read."""
    path = sweep.measurements.get("invariance")
    if path is None or not path.exists():
        return None
    return _read(path)


def _read(path: Path) -> Invariance | None:
    content = read_json(path)
    try:
        if content is None:
            raise ValueError("not a JSON object")
        return parse(content)
    except (KeyError, TypeError, ValueError) as error:
        log.warning("%s is left out: it cannot be read (%s)", path, error)
        return None


def _error(value: Any) -> float:
    number = float(value)
    if not 0 <= number < math.inf:
        raise ValueError(f"{value} is not an error")
    return number


def parse(content: dict[str, Any]) -> Invariance:
    """A measurement as `lietransformer invariance` writes it."""
    example = dict(content["example"])
    samples, errors = content["lift_samples"], content["errors"]
    return Invariance(
        dict(content["settings"]),
        {int(n): [_error(e) for e in own] for n, own in zip(samples, errors, strict=True)},
        example.get("training_index"),
        np.array(example["positions"], dtype=float).reshape(-1, 2),
        np.array(example["instance"], dtype=int),
        [str(name) for name in example["pattern"]],
        content.get("git_commit"),
    )
