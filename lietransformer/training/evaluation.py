"""Testing: metrics of weights on test sets, and numbers for each example in a file."""

import logging
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lietransformer.data.writer import create_dataset
from lietransformer.errors import UserError
from lietransformer.experiments.task import Evaluation
from lietransformer.settings import validated
from lietransformer.training.config import RunConfig, best_device
from lietransformer.training.experiment import Experiment, prepare_process
from lietransformer.training.run_folder import SCHEMA_VERSION, RunFolder, write_json

log = logging.getLogger(__name__)


def run_tests(
    experiment: Experiment,
    weights: Mapping[str, dict[str, Tensor]],
    path: Path,
    *,
    finished: dict[str, Evaluation] | None = None,
    one_test: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> dict[str, Any]:
    """Metrics of each set of weights on each test set.

    Args:
        experiment: the task, the model and the test sets.
        weights: by name.
        path: file for the numbers of each example, if the task has any.
        finished: tests that need not be done again, by weights and test set; others are added.
        one_test: what each test is done in.
    """
    finished = {} if finished is None else finished
    for which, state in weights.items():
        twin = next((other for other in weights if _are_equal(weights[other], state)), which)
        experiment.model.load_state_dict(state)
        for name in experiment.tests:
            if f"{which}/{name}" in finished:
                continue
            if f"{twin}/{name}" in finished:  # often the final weights are the best ones
                finished[f"{which}/{name}"] = finished[f"{twin}/{name}"]
                continue
            log.info("testing the %s weights on %s", which, name)
            with one_test():
                finished[f"{which}/{name}"] = experiment.test(name)
    arrays = {
        f"{test}/{name}": array
        for test, evaluation in finished.items()
        for name, array in evaluation.arrays.items()
    }
    if arrays:
        config = experiment.config
        with create_dataset(
            path, kind="evaluation", config=config.identity, seed=config.seed
        ) as file:
            for name, array in arrays.items():
                file.write(name, array)
    return {
        which: {name: finished[f"{which}/{name}"].metrics for name in experiment.tests}
        for which in weights
    }


def _are_equal(left: dict[str, Tensor], right: dict[str, Tensor]) -> bool:
    return all(torch.equal(left[name], right[name]) for name in left)


def evaluate_run(
    folder: RunFolder,
    *,
    data: Path | None = None,
    out: Path | None = None,
    device: str | None = None,
    threads: int | None = None,
) -> dict[str, Any]:
    """Test the weights of a run again, on its own dataset or on another of the same kind.

    Args:
        folder: of the run.
        data: another dataset.
        out: where the numbers go; into the run's folder, if not given.
        device: cpu, cuda or auto, where the run was trained on another.
        threads: CPU threads, if not as many as it was trained with.
    """
    stored = folder.config()
    if data is not None:
        stored = stored.model_copy(update={"data": data})
    config = _computed_with(stored, device, threads)
    prepare_process(config)
    experiment = Experiment(config)
    experiment.task.constants = folder.read_config_json().get("constants", {})
    # From the run's own settings, wherever it is tested.
    own_hash = stored.identity_hash(experiment.file.content_hash)
    if out is None and own_hash != folder.read_config_json()["hash"]:
        raise UserError(
            f"{config.data} is not the dataset that {folder.path} was trained on. Say with --out "
            "where to write the results."
        )
    target = RunFolder(out or folder.path)
    started = time.perf_counter()
    weights = {str(name): folder.weights(name) for name in config.test_weights}
    evaluation = {
        "schema_version": SCHEMA_VERSION,
        "run": folder.read_config_json()["hash"],
        "dataset_hash": experiment.file.content_hash,
        "test": run_tests(experiment, weights, target.evaluation_file),
        "seconds": time.perf_counter() - started,
    }
    write_json(target.path / "evaluation.json", evaluation)
    return evaluation


def _computed_with(stored: RunConfig, device: str | None, threads: int | None) -> RunConfig:
    """The settings of a run, for another machine than the one that it was trained on."""
    given = stored.model_dump()
    if threads is not None:
        given["threads"] = threads
    if device is not None:
        device = best_device() if device == "auto" else device
        # Compiling takes longer than a test, and was decided for the run's own device.
        given |= {"device": device, "compile": stored.compile and device == stored.device}
        given["graphs"] = False  # of steps of training
        if stored.precision == "tf32" and device != "cuda":
            log.info("tf32 exists on cuda only: testing in float32, the precision of the weights")
            given["precision"] = "float32"
    return validated(RunConfig, given)
