"""Run folders as real runs leave them, made without training."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from lietransformer.data.reader import DatasetFile
from lietransformer.data.writer import create_dataset
from lietransformer.doctor.findings import Finding, Level
from lietransformer.training.checkpoint import Checkpoint, CheckpointFile, Progress
from lietransformer.training.run_folder import RunFolder, write_json
from tests.sweep.sweeps import plan
from tests.training.runs import tiny

WEIGHTS = {"weight": torch.arange(3.0)}


def begin(path: Path, data: Path, *, seed: int = 0) -> RunFolder:
    """A run that has begun."""
    config, folder = tiny(data, seed=seed), RunFolder(path)
    folder.claim(config, config.identity_hash(DatasetFile(data).content_hash))
    folder.write_records([{"step": 1, "epoch": 1.0, "time": 1.0, "train/loss": 0.5}])
    return folder


def stop(folder: RunFolder) -> Path:
    """Its checkpoint, as when it was told to stop."""
    file = CheckpointFile(folder.state_folder, folder.read_config_json()["hash"])
    file.write(Checkpoint(Progress(step=1), WEIGHTS, {}, WEIGHTS, WEIGHTS))
    return file.path


def finish(folder: RunFolder, status: str = "finished") -> RunFolder:
    """All that a run ends with."""
    folder.write_weights({"best": WEIGHTS, "final": WEIGHTS})
    with create_dataset(folder.evaluation_file, kind="evaluation", config={}, seed=0) as file:
        file.write("final/test_long/squared", np.zeros((4, 9), "f4"))
    result: dict[str, Any] = {
        **{"status": status, "hash": folder.read_config_json()["hash"], "steps": 1},
        **{"started": 1.0, "ended": 2.0, "parameters": 3, "git_commit": None},
        **{"dataset_hash": None, "test": {"final": {"test": {"mse_geometric": 0.1}}}},
    }
    write_json(folder.result_file, result)
    return folder


def finished(path: Path, data: Path, *, seed: int = 0) -> RunFolder:
    return finish(begin(path, data, seed=seed))


def write_manifest(results: Path, runs: Iterable[Path], **config: Any) -> None:
    """The list of the runs that a sweep wants."""
    labels = {"task": "springs", "model": "LieConv-T2", "seed": 0}
    listed = [{"folder": path.relative_to(results).as_posix(), **labels} for path in runs]
    write_json(results / "sweep.json", plan().manifest() | {"config": config, "runs": listed})


def cut_off(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def levels(findings: Iterable[Finding]) -> list[Level]:
    return [finding.level for finding in findings]
