"""LieTransformer-T2 and LieConv-T2 on the same test trajectories (Figures 6, 10 and 11)."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from lietransformer.analysis.rollouts import (
    CONVOLUTION,
    TRANSFORMER,
    error_per_trajectory,
    squared_errors,
)
from lietransformer.analysis.runs import Sweep, finished
from lietransformer.analysis.sizes import PAPER_TRAJECTORY_SIZE, nearest, shared_sizes


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
    def good_for_both(self) -> int:
        """The trajectory that ranks well under both: whose worse rank is the best."""
        ranks = [np.argsort(np.argsort(own)) for own in self.errors.values()]
        return int(np.argmin(np.maximum(*ranks)))

    def worst(self, model: str) -> int:
        """The trajectory with the highest error of a model."""
        return int(np.argmax(self.errors[model]))

    @property
    def highlighted(self) -> dict[str, int]:
        """The trajectories of Figures 6 and 11."""
        return {
            "Figure 6": self.good_for_both,
            "Figure 11, worst for LieTransformer": self.worst(TRANSFORMER),
            "Figure 11, worst for LieConv": self.worst(CONVOLUTION),
        }


def trajectory_size(sweep: Sweep) -> int:
    """The size of Figures 6 and 11, or the nearest there is."""
    return nearest(PAPER_TRAJECTORY_SIZE, shared_sizes(sweep))


def find_pair(sweep: Sweep, size: int) -> Pair | None:
    """The runs of the lowest seed that both models have roll-outs of."""
    runs = {model: _by_seed(sweep, model, size) for model in (TRANSFORMER, CONVOLUTION)}
    for seed in sorted(set.intersection(*(set(own) for own in runs.values()))):
        chosen = {model: own[seed] for model, own in runs.items()}
        squared = {model: squared_errors(sweep, run) for model, run in chosen.items()}
        if all(own is not None for own in squared.values()):
            errors = {m: error_per_trajectory(own) for m, own in squared.items() if own is not None}
            if len({len(own) for own in errors.values()}) == 1:
                return Pair(size, chosen, errors)
    return None


def pair_runs(sweep: Sweep, sizes: list[int]) -> pd.DataFrame:
    """All runs of both models at these sizes."""
    runs = sweep.select("data_efficiency")
    return runs[runs["n_train"].isin(sizes) & runs["model"].isin([TRANSFORMER, CONVOLUTION])]


def _by_seed(sweep: Sweep, model: str, size: int) -> dict[int, Any]:
    runs = finished(sweep.select("data_efficiency", model=model, n_train=size))
    return {int(run.seed): run for run in runs.itertuples()}
