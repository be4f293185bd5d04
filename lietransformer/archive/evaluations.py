"""Does an evaluation belong to its run? Test numbers are computed again from its arrays."""

import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from lietransformer.data.reader import DatasetFile
from lietransformer.errors import UserError
from lietransformer.experiments.springs.rollouts import step_error, trajectory_error
from lietransformer.training.config import RunConfig
from lietransformer.training.run_folder import RunFolder

LONG = "final/test_long"
KEPT = ("best/test", LONG)  # what tables, figures and claims read
_ROUNDING = 1e-4  # relative; arrays are in single precision


def require_own_evaluation(
    folder: RunFolder, config: RunConfig, test: Mapping[str, Mapping[str, Mapping[str, object]]]
) -> None:
    """Refuse an evaluation of another run, or one that test numbers do not follow from.

    Args:
        folder: with a full or a compact evaluation; only springs must have one.
        config: the run's settings.
        test: the test numbers of its result.
    """
    if not folder.evaluation_file.exists():
        if config.task == "springs" and test:
            raise UserError(f"{folder.path} has not all of its tests. Train the run again.")
        return
    file = DatasetFile(folder.evaluation_file, kind="evaluation")
    if file.config != config.identity or file.seed != config.seed:
        raise UserError(
            f"{folder.evaluation_file} is the evaluation of a run with other settings. Copy the "
            "right one, or train the run again."
        )
    if config.task != "springs":
        return
    names = {
        f"{weights}/{name}": own for weights, tests in test.items() for name, own in tests.items()
    }
    is_compact = not any(name.endswith("/squared") for name in file.names)
    for name, numbers in names.items():
        if is_compact and name not in KEPT:
            continue
        for metric, value in _metrics(_errors(file, name)[0]).items():
            if not _agree(numbers.get(metric), value):
                raise UserError(
                    f"{metric} of {name} in {folder.result_file} does not follow from "
                    f"{folder.evaluation_file.name}: {numbers.get(metric)} there, {value:.6g} "
                    "computed from its errors. Train the run again."
                )


def compact(file: DatasetFile) -> dict[str, np.ndarray]:
    """The arrays of a compact evaluation, also of a full one."""
    endings = ("squared", "step_error")
    names = [name for name in KEPT if any(f"{name}/{end}" in file.names for end in endings)]
    errors = {name: _errors(file, name) for name in names}
    return {
        f"{name}/{kind}": array
        for name, own in errors.items()
        for kind, array in zip(("step_error", "trajectory_error"), own, strict=True)
    }


def have_same_errors(one: Path, other: Path) -> bool:
    """Whether two evaluations, full or compact, have the same errors to the bit."""
    ours, theirs = (compact(DatasetFile(path, kind="evaluation")) for path in (one, other))
    return ours.keys() == theirs.keys() and all(
        np.array_equal(ours[name], theirs[name]) for name in ours
    )


def _errors(file: DatasetFile, name: str) -> tuple[np.ndarray, np.ndarray]:
    """The error of each step, and of each trajectory."""
    if f"{name}/squared" in file.names:
        squared = np.asarray(file.array(f"{name}/squared"), dtype=np.float64)
        return step_error(squared), trajectory_error(squared)
    kinds = ("step_error", "trajectory_error")
    step, trajectory = (np.asarray(file.array(f"{name}/{kind}"), dtype=float) for kind in kinds)
    return step, trajectory


def _metrics(errors: np.ndarray) -> dict[str, float]:
    """As `RolloutErrors.metrics` computes them."""
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        return {
            "mse_geometric": float(np.exp(np.log(errors).mean())),
            "mse_arithmetic": float(errors.mean()),
            "mse_last": float(errors[-1]),
        }


def _agree(stored: object, computed: float) -> bool:
    if not math.isfinite(computed):
        return True  # beyond single precision: nothing can be said
    if not isinstance(stored, int | float):
        return False
    return math.isclose(stored, computed, rel_tol=_ROUNDING, abs_tol=1e-30)
