"""Does an evaluation belong to its run? Test numbers are computed again from its arrays."""

import math
from typing import Any

import numpy as np

from lietransformer.data.reader import DatasetFile
from lietransformer.errors import UserError
from lietransformer.experiments.springs.rollouts import step_error
from lietransformer.training.run_folder import RunFolder

_ROUNDING = 1e-4  # relative; arrays are in single precision


def require_own_evaluation(folder: RunFolder, result: dict[str, Any]) -> None:
    """Refuse an evaluation of another run, or one that test numbers do not follow from."""
    if not folder.evaluation_file.exists():
        return
    file, config = DatasetFile(folder.evaluation_file, kind="evaluation"), folder.config()
    if file.config != config.identity or file.seed != config.seed:
        raise UserError(
            f"{folder.evaluation_file} is the evaluation of a run with other settings. Copy the "
            "right one, or train the run again."
        )
    if config.task != "springs":
        return
    for weights, tests in (result["test"] or {}).items():
        for test, numbers in tests.items():
            name = f"{weights}/{test}"
            if f"{name}/squared" not in file.names:
                raise UserError(
                    f"{folder.evaluation_file} has no errors of {name}. Train the run again."
                )
            for metric, value in _metrics(file, name).items():
                if not _agree(numbers.get(metric), value):
                    raise UserError(
                        f"{metric} of {name} in {folder.result_file} does not follow from "
                        f"{folder.evaluation_file.name}: {numbers.get(metric)} there, {value:.6g} "
                        "computed from its errors. Train the run again."
                    )


def _metrics(file: DatasetFile, name: str) -> dict[str, float]:
    """As `RolloutErrors.metrics` computes them."""
    errors = step_error(np.asarray(file.array(f"{name}/squared"), dtype=np.float64))
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        return {
            "mse_geometric": float(np.exp(np.log(errors).mean())),
            "mse_arithmetic": float(errors.mean()),
            "mse_last": float(errors[-1]),
        }


def _agree(stored: float | None, computed: float) -> bool:
    if not math.isfinite(computed):
        return True  # beyond single precision: nothing can be said
    return stored is not None and math.isclose(stored, computed, rel_tol=_ROUNDING, abs_tol=1e-30)
