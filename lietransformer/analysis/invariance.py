"""The measurements of Figure 3."""

import logging
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lietransformer.analysis.runs import Sweep, read_json

log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Invariance:
    """Invariance errors, and one of the examples that they were measured with.

    Attributes:
        errors: of each run, by number of lift samples.
        positions: (points, 2) of the example.
        instances: (points,) which instance a point belongs to.
        patterns: the name of each point's pattern.
        commit: what measured it; None if that is not known.
    """

    errors: dict[int, list[float]]
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
        example = content["example"]
        samples, errors = content["lift_samples"], content["errors"]
        return Invariance(
            {int(n): [float(e) for e in own] for n, own in zip(samples, errors, strict=True)},
            np.array(example["positions"], dtype=float).reshape(-1, 2),
            np.array(example["instance"], dtype=int),
            [str(name) for name in example["pattern"]],
            content.get("git_commit"),
        )
    except (KeyError, TypeError, ValueError) as error:
        log.warning("%s is left out: it cannot be read (%s)", path, error)
        return None
