"""Testing: metrics of weights on test sets, and numbers for each example in a file."""

import logging
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from torch import Tensor

from lietransformer.data.writer import create_dataset
from lietransformer.errors import UserError, explain
from lietransformer.tasks import Evaluation
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
        experiment.model.load_state_dict(state)
        for name in experiment.tests:
            if f"{which}/{name}" not in finished:
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


def evaluate_run(
    folder: RunFolder, *, data: Path | None = None, out: Path | None = None
) -> dict[str, Any]:
    """Test the weights of a run again, on its own dataset or on another of the same kind."""
    config = folder.config()
    if data is not None:
        config = config.model_copy(update={"data": data})
    prepare_process(config)
    experiment = Experiment(config)
    experiment.task.constants = folder.read_config_json().get("constants", {})
    own_hash = config.identity_hash(experiment.file.content_hash)
    if out is None and own_hash != folder.read_config_json()["hash"]:
        raise UserError(
            explain(
                expected=f"the dataset that {folder.path} was trained on",
                found=f"other data in {config.data}",
                remedy="say with --out where the results are to go",
            )
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
