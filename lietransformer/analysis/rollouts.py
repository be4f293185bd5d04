"""The roll-outs of a run, trajectory by trajectory, and the truth that they are compared with."""

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from lietransformer.analysis.runs import Sweep, finished
from lietransformer.data.reader import DatasetFile
from lietransformer.errors import UserError, explain

log = logging.getLogger(__name__)

TRANSFORMER, CONVOLUTION = "LieTransformer-T2", "LieConv-T2"
_WEIGHTS_AND_SET = "final/test_long"  # what Figures 5 to 11 show


def squared_errors(sweep: Sweep, run: Any) -> np.ndarray | None:
    """Squared errors over 100 steps, (trajectories, steps); None where they cannot be read.

    A roll-out that has left the range of numbers is infinitely wrong from there on.
    """
    errors = _read(sweep, run, "squared")
    return None if errors is None else np.nan_to_num(errors, nan=np.inf, posinf=np.inf)


def predicted_positions(sweep: Sweep, run: Any) -> np.ndarray | None:
    """Predicted positions over 100 steps, (trajectories, steps, particles, space)."""
    return _read(sweep, run, "positions")


def error_per_step(sweep: Sweep, runs: pd.DataFrame) -> np.ndarray:
    """The mean over the trajectories at each step, (runs, steps), of those that can be read."""
    arrays = [squared_errors(sweep, run) for run in finished(runs).itertuples()]
    means = [array.mean(axis=0) for array in arrays if array is not None]
    if not means:
        return np.empty((0, 0))
    shortest = min(len(mean) for mean in means)
    return np.stack([mean[:shortest] for mean in means])


def error_per_trajectory(squared: np.ndarray) -> np.ndarray:
    """The geometric mean over the steps, (trajectories,)."""
    with np.errstate(divide="ignore", invalid="ignore"):  # errors of zero and infinity
        return np.asarray(np.exp(np.log(squared).mean(axis=1)))


def true_positions(sweep: Sweep, run: Any, trajectories: int) -> np.ndarray | None:
    """The first test trajectories from the initial state on, (trajectories, states, …)."""
    try:
        file = DatasetFile(_dataset_path(sweep, Path(run.data)), kind="springs", verify=False)
        if not pd.isna(run.dataset_hash) and run.dataset_hash != file.content_hash:
            raise UserError(
                explain(
                    expected=f"the dataset that {run.folder} was trained on at {file.path}",
                    found="another one",
                    remedy="generate the dataset again with the settings of the sweep",
                )
            )
        return np.array(file.array("test/long_states")[:trajectories, :, 0])
    except UserError as error:
        log.warning("the true trajectories are missing: %s", error)
        return None


def _dataset_path(sweep: Sweep, stored: Path) -> Path:
    """Where the dataset is now: results may have been copied from another machine."""
    places = (stored, sweep.results / stored, sweep.results / "data" / stored.name)
    return next((place for place in places if place.exists()), stored)


def _read(sweep: Sweep, run: Any, name: str) -> np.ndarray | None:
    path = sweep.results / run.folder / "evaluation.h5"
    try:
        file = DatasetFile(path, kind="evaluation", verify=False)
        return np.array(file.array(f"{_WEIGHTS_AND_SET}/{name}"), dtype=float)
    except UserError as error:
        log.warning("the roll-outs of a run are left out: %s", error)
        return None
