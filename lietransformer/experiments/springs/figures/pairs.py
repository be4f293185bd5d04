"""LieTransformer-T2 and LieConv-T2 on the same test trajectories (Figures 6, 10 and 11)."""

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from lietransformer.data.reader import DatasetFile
from lietransformer.errors import UserError
from lietransformer.experiments.springs.rollouts import (
    CONVOLUTION,
    TRANSFORMER,
    predicted_positions,
    trajectory_errors,
    true_positions,
)
from lietransformer.report.runs import Sweep, finished
from lietransformer.report.sizes import PAPER_TRAJECTORY_SIZE, nearest, shared_sizes

log = logging.getLogger(__name__)

MODELS = (TRANSFORMER, CONVOLUTION)


@dataclass(frozen=True, eq=False)
class Pair:
    """Two runs of the same size and seed, and the error of each test trajectory under both.

    Attributes:
        size: number of training examples.
        runs: by model.
        errors: by model, (trajectories,).
    """

    size: int
    runs: dict[str, Any]
    errors: dict[str, np.ndarray]

    @property
    def seed(self) -> int:
        """The one that both runs have."""
        return int(self.runs[TRANSFORMER].seed)

    @cached_property
    def median_ratio(self) -> int:
        """The trajectory whose ratio of LieTransformer's to LieConv's error is the median.

        The lower median where their number is even. Two errors of 0, or two of infinity, tie.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = self.errors[TRANSFORMER] / self.errors[CONVOLUTION]
        ratios = np.nan_to_num(ratios, nan=1.0, posinf=np.inf)
        return int(np.argsort(ratios, kind="stable")[(len(ratios) - 1) // 2])

    def worst(self, model: str) -> int:
        """The trajectory with the highest error of a model."""
        return int(np.argmax(self.errors[model]))

    @property
    def highlighted(self) -> dict[str, int]:
        """The trajectories of Figures 6 and 11."""
        return {
            "Figure 6, median ratio": self.median_ratio,
            "Figure 11, worst for LieTransformer": self.worst(TRANSFORMER),
            "Figure 11, worst for LieConv": self.worst(CONVOLUTION),
        }


def trajectory_size(sweep: Sweep) -> int:
    """The size of Figures 6 and 11, or the nearest there is."""
    return nearest(PAPER_TRAJECTORY_SIZE, shared_sizes(sweep))


def find_pair(sweep: Sweep, size: int) -> Pair | None:
    """The runs of the lowest seed that both models have roll-outs of.

    Pairs of a published and a local run come last: their paths are not in the archive.
    """
    runs = {model: _by_seed(sweep, model, size) for model in MODELS}
    seeds = set.intersection(*(set(own) for own in runs.values()))
    for seed in sorted(seeds, key=lambda seed: (_is_mixed(runs, seed), seed)):
        chosen = {model: own[seed] for model, own in runs.items()}
        found = {model: trajectory_errors(sweep, run) for model, run in chosen.items()}
        errors = {model: own for model, own in found.items() if own is not None}
        if len(errors) == len(MODELS) and len({len(own) for own in errors.values()}) == 1:
            return Pair(size, chosen, errors)
    return None


def _is_mixed(runs: dict[str, dict[int, Any]], seed: int) -> bool:
    return len({own[seed].source for own in runs.values()}) > 1


@dataclass(frozen=True, eq=False)
class Paths:
    """One test trajectory, true and as both models predict it.

    Attributes:
        truth: (states, particles, space), from the initial state on; None if not known.
        predicted: by model, (steps, particles, space); without those that are not known.
    """

    truth: np.ndarray | None
    predicted: dict[str, np.ndarray]


def find_paths(sweep: Sweep, pair: Pair, trajectories: Iterable[int]) -> dict[int, Paths]:
    """The paths of some trajectories; those of published runs are in the archive."""
    if pair.runs[TRANSFORMER].source == pair.runs[CONVOLUTION].source == "published":
        return _published_paths(sweep, pair)
    truth = true_positions(sweep, pair.runs[TRANSFORMER], len(pair.errors[TRANSFORMER]))
    positions = {model: predicted_positions(sweep, run) for model, run in pair.runs.items()}
    return {
        trajectory: Paths(
            None if truth is None else truth[trajectory],
            {model: own[trajectory] for model, own in positions.items() if own is not None},
        )
        for trajectory in trajectories
    }


def _published_paths(sweep: Sweep, pair: Pair) -> dict[int, Paths]:
    path = sweep.archive.path / "trajectories" / f"n{pair.size}-seed-{pair.seed}.h5"
    try:
        file = DatasetFile(path, kind="trajectories", verify=False)
        truth, *predicted = (np.array(file.array(name)) for name in ("truth", *MODELS))
        return {
            int(trajectory): Paths(
                truth[row], {m: own[row] for m, own in zip(MODELS, predicted, strict=True)}
            )
            for row, trajectory in enumerate(file.array("drawn"))
        }
    except UserError as error:
        log.warning("the trajectories of published runs are left out: %s", error)
        return {}


def pair_runs(sweep: Sweep, sizes: list[int]) -> pd.DataFrame:
    """All runs of both models at these sizes."""
    runs = sweep.select("data_efficiency")
    return runs[runs["n_train"].isin(sizes) & runs["model"].isin(MODELS)]


def _by_seed(sweep: Sweep, model: str, size: int) -> dict[int, Any]:
    runs = finished(sweep.select("data_efficiency", model=model, n_train=size))
    return {int(run.seed): run for run in runs.itertuples()}
