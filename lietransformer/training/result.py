"""What a run says of itself when it is done."""

import time
from typing import Any

from lietransformer.machine import describe_machine, git_commit, peak_memory_gb
from lietransformer.training.checkpoint import Progress
from lietransformer.training.config import RunConfig
from lietransformer.training.experiment import Experiment
from lietransformer.training.run_folder import SCHEMA_VERSION


def describe_result(
    config: RunConfig, experiment: Experiment, progress: Progress, tests: dict[str, Any]
) -> dict[str, Any]:
    """The final numbers, and what they were computed from, with and on."""
    preset = config.preset()
    by_step = {record["step"]: record for record in progress.records}
    return {
        "schema_version": SCHEMA_VERSION,
        "status": "diverged" if progress.diverged else "finished",
        "diverged": progress.diverged or None,
        "task": config.task,
        "model": config.model,
        "group": preset.group,
        "size": preset.size,
        "parameters": experiment.parameters,
        "n_train": experiment.n_train,
        "target": config.target,
        "augmentation": config.augmentation,
        "seed": config.seed,
        "steps": progress.step,
        "epochs": progress.step / experiment.steps_per_epoch,
        "stopped_early": progress.stopped_early,
        "selection": experiment.task.selection,
        "best": by_step.get(progress.best_step),
        "final": progress.records[-1] if progress.records else None,
        "test": tests,
        "started": progress.started,
        "ended": time.time(),
        "seconds": progress.seconds,
        "cpu_seconds": progress.cpu_seconds,
        "sessions": progress.sessions,
        "peak_memory_gb": peak_memory_gb(),
        "dataset_hash": experiment.file.content_hash,
        "git_commit": git_commit(),
        "machine": describe_machine(experiment.device),
    }
