"""LieTransformer-T2 and LieConv-T2 on the same test trajectories (Figures 6, 10 and 11)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from lietransformer.experiments.springs.paths import Paths, paths_name, read_paths
from lietransformer.experiments.springs.rollouts import (
    CONVOLUTION,
    TRANSFORMER,
    predicted_positions,
    trajectory_errors,
    true_positions,
)
from lietransformer.report.runs import Sweep, finished
from lietransformer.report.sizes import PAPER_TRAJECTORY_SIZE, nearest, shared_sizes

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

    @property
    def remedy(self) -> str:
        """How the paths of published runs that were trained elsewhere get into the archive."""
        if all(run.source == "local" for run in self.runs.values()):
            return ""
        names = " ".join(f"springs/{model}/n{self.size}/seed-{self.seed}" for model in self.runs)
        return f" (`lietransformer verify {names}`, then `lietransformer publish`)"

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

    Pairs whose paths are known come first.
    """
    runs = {model: _by_seed(sweep, model, size) for model in MODELS}
    seeds = set.intersection(*(set(own) for own in runs.values()))
    pairs = {seed: {model: own[seed] for model, own in runs.items()} for seed in sorted(seeds)}
    for seed in sorted(pairs, key=lambda seed: not _has_paths(sweep, pairs[seed], size, seed)):
        chosen = pairs[seed]
        found = {model: trajectory_errors(sweep, run) for model, run in chosen.items()}
        errors = {model: own for model, own in found.items() if own is not None}
        if len(errors) == len(MODELS) and len({len(own) for own in errors.values()}) == 1:
            return Pair(size, chosen, errors)
    return None


def _has_paths(sweep: Sweep, runs: Mapping[str, Any], size: int, seed: int) -> bool:
    """Whether positions of both are known: of local runs, or from the archive."""
    if all(run.source == "local" for run in runs.values()):
        return True
    is_published = _published_folders(sweep, runs) is not None
    return is_published and paths_name(size, seed) in sweep.archive.files


def find_paths(sweep: Sweep, pair: Pair, trajectories: Iterable[int]) -> dict[int, Paths]:
    """The paths of some trajectories; those of published runs are in the archive."""
    published = _published_folders(sweep, pair.runs)
    if published is not None:
        name = paths_name(pair.size, pair.seed)
        has_them = name in sweep.archive.files
        return read_paths(sweep.archive.path / name, published) if has_them else {}
    truth = true_positions(sweep, pair.runs[TRANSFORMER], len(pair.errors[TRANSFORMER]))
    positions = {model: predicted_positions(sweep, run) for model, run in pair.runs.items()}
    return {
        trajectory: Paths(
            None if truth is None else truth[trajectory],
            {model: own[trajectory] for model, own in positions.items() if own is not None},
        )
        for trajectory in trajectories
    }


def _published_folders(sweep: Sweep, runs: Mapping[str, Any]) -> dict[str, str] | None:
    """Folders of a pair within the archive, by model; None if one is not published."""
    names = {
        model: sweep.archive.name_of(sweep.results / run.folder)
        for model, run in runs.items()
        if run.source == "published"
    }
    found = {model: name for model, name in names.items() if name is not None}
    return found if len(found) == len(MODELS) else None


def pair_runs(sweep: Sweep, sizes: list[int]) -> pd.DataFrame:
    """All runs of both models at these sizes."""
    runs = sweep.select("data_efficiency")
    return runs[runs["n_train"].isin(sizes) & runs["model"].isin(MODELS)]


def _by_seed(sweep: Sweep, model: str, size: int) -> dict[int, Any]:
    runs = finished(sweep.select("data_efficiency", model=model, n_train=size))
    return {int(run.seed): run for run in runs.itertuples()}
