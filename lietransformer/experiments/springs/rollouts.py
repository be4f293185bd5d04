"""The roll-outs of a run, trajectory by trajectory, and the true trajectories.

A local run has the squared error of every trajectory at every step, and the predicted positions.
A published run has the errors of `step_error` and `trajectory_error` only; the paths that figures
draw are in the archive's trajectories/.
"""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from lietransformer.data.reader import DatasetFile
from lietransformer.errors import UserError
from lietransformer.report.runs import Sweep, finished

log = logging.getLogger(__name__)

TRANSFORMER, CONVOLUTION = "LieTransformer-T2", "LieConv-T2"
_WEIGHTS_AND_SET = "final/test_long"  # what Figures 5 to 11 show
_LEFT_OUT = "the roll-outs of a run are left out: %s"


# ---- reductions of the squared errors, (trajectories, steps)


def step_error(squared: np.ndarray) -> np.ndarray:
    """The mean over the trajectories at each step, (steps,)."""
    return np.asarray(_infinite_if_lost(squared).mean(axis=0))


def trajectory_error(squared: np.ndarray) -> np.ndarray:
    """The geometric mean over the steps of each trajectory, (trajectories,)."""
    with np.errstate(divide="ignore", invalid="ignore"):  # errors of zero and infinity
        return np.asarray(np.exp(np.log(_infinite_if_lost(squared)).mean(axis=1)))


def _infinite_if_lost(squared: np.ndarray) -> np.ndarray:
    """A roll-out that overflows counts as infinitely wrong from that step."""
    return np.nan_to_num(np.asarray(squared, dtype=float), nan=np.inf, posinf=np.inf)


# ---- of full or compact evaluations


def step_errors(sweep: Sweep, run: Any) -> np.ndarray | None:
    """The mean over the trajectories at each step, (steps,); None where it cannot be read."""
    return _reduced(sweep, run, "step_error", step_error)


def trajectory_errors(sweep: Sweep, run: Any) -> np.ndarray | None:
    """The error of each trajectory, (trajectories,); None where it cannot be read."""
    return _reduced(sweep, run, "trajectory_error", trajectory_error)


def error_per_step(sweep: Sweep, runs: pd.DataFrame) -> np.ndarray:
    """The step errors of the finished runs that can be read, (runs, steps)."""
    arrays = [step_errors(sweep, run) for run in finished(runs).itertuples()]
    known = [array for array in arrays if array is not None]
    if not known:
        return np.empty((0, 0))
    shortest = min(len(array) for array in known)
    return np.stack([array[:shortest] for array in known])


# ---- of full evaluations only


def squared_errors(sweep: Sweep, run: Any) -> np.ndarray | None:
    """Squared errors over 100 steps, (trajectories, steps); None where they cannot be read."""
    errors = _read(sweep, run, "squared")
    return None if errors is None else _infinite_if_lost(errors)


def predicted_positions(sweep: Sweep, run: Any) -> np.ndarray | None:
    """Predicted positions over 100 steps, (trajectories, steps, particles, space)."""
    return _read(sweep, run, "positions")


def true_positions(sweep: Sweep, run: Any, trajectories: int) -> np.ndarray | None:
    """The first test trajectories from the initial state on, (trajectories, states, …)."""
    try:
        file = DatasetFile(_dataset_path(sweep, Path(run.data)), kind="springs", verify=False)
        if not pd.isna(run.dataset_hash) and run.dataset_hash != file.content_hash:
            raise UserError(
                f"{file.path} is not the dataset that {run.folder} was trained on. Generate it "
                "again with the settings of the sweep."
            )
        return np.array(file.array("test/long_states")[:trajectories, :, 0])
    except UserError as error:
        log.warning("the true trajectories are missing: %s", error)
        return None


def _dataset_path(sweep: Sweep, stored: Path) -> Path:
    """Where the dataset is now: results may have been copied from another machine."""
    places = (stored, sweep.results / stored, sweep.results / "data" / stored.name)
    return next((place for place in places if place.exists()), stored)


def _reduced(
    sweep: Sweep, run: Any, name: str, reduce: Callable[[np.ndarray], np.ndarray]
) -> np.ndarray | None:
    """The errors of a compact evaluation, or the same reduced from a full one."""
    file = _evaluation(sweep, run)
    if file is not None and f"{_WEIGHTS_AND_SET}/{name}" in file.names:
        return _array(file, name)
    squared = None if file is None else _array(file, "squared")
    return None if squared is None else reduce(squared)


def _read(sweep: Sweep, run: Any, name: str) -> np.ndarray | None:
    file = _evaluation(sweep, run)
    return None if file is None else _array(file, name)


def _evaluation(sweep: Sweep, run: Any) -> DatasetFile | None:
    try:
        path = sweep.results / run.folder / "evaluation.h5"
        return DatasetFile(path, kind="evaluation", verify=False)
    except UserError as error:
        log.warning(_LEFT_OUT, error)
        return None


def _array(file: DatasetFile, name: str) -> np.ndarray | None:
    try:
        return np.array(file.array(f"{_WEIGHTS_AND_SET}/{name}"), dtype=float)
    except UserError as error:
        log.warning(_LEFT_OUT, error)
        return None
