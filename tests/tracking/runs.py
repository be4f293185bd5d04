"""Tiny runs, and what MLflow has of a run, for the tests of tracking."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from mlflow import MlflowClient
from mlflow.entities import Run as TrackedRun

from lietransformer.files import read_lines
from lietransformer.interruption import Interruption
from lietransformer.tracking.folders import HASH_TAG
from lietransformer.training.config import read_runs
from lietransformer.training.loop import Run
from lietransformer.training.run_folder import RunFolder, write_json

# MLflow uses something that newer versions of SQLAlchemy advise against.
MLFLOW_WARNINGS = pytest.mark.filterwarnings(
    "ignore:The ``noload`` loader strategy:sqlalchemy.exc.SADeprecationWarning"
)

RECORDS = 4
SETTINGS = {
    "task": "springs",
    "model": "Fully-connected (Hamiltonian)",
    "architecture": "{width: 8, layers: 1}",
    "n_train": "10",
    "epochs": "4",
    "evaluations": str(RECORDS),
    "compile": "false",
    "validation_examples": "4",
    "test_examples": "4",
    "test_weights": "[best]",
    "threads": "1",
}


def settings(data: Path, **changes: object) -> list[str]:
    changed = SETTINGS | {"data": str(data)} | {key: str(value) for key, value in changes.items()}
    return [f"{key}={value}" for key, value in changed.items()]


def train_command(out: Path, tracking: str, data: Path, **changes: object) -> list[str]:
    flags = [part for setting in settings(data, **changes) for part in ("--set", setting)]
    return ["train", "--out", str(out), "--tracking", tracking, *flags]


def make_run(
    out: Path,
    data: Path,
    *,
    on_record: Callable[[], None] = lambda: None,
    interruption: Interruption | None = None,
    **changes: object,
) -> Run:
    (config,), _ = read_runs(None, settings(data, **changes))
    return Run(config, RunFolder(out), on_record=on_record, interruption=interruption)


def settings_of_another(folder: RunFolder, out: Path, data: Path, **changes: object) -> RunFolder:
    """The files of a run with the settings of another, which would take longer to train."""
    other = RunFolder(Path(shutil.copytree(folder.path, out)))
    other.config_file.unlink()
    (config,), _ = read_runs(None, settings(data, **changes))
    identity_hash = config.identity_hash(folder.result()["dataset_hash"])
    write_json(other.result_file, other.result() | {"hash": identity_hash})
    other.claim(config, identity_hash)
    return other


def sqlite_uri(database: Path) -> str:
    return f"sqlite:///{database}"


def tracked_runs(client: MlflowClient, condition: str = "") -> list[TrackedRun]:
    experiment = client.get_experiment_by_name("springs")
    assert experiment is not None
    return list(client.search_runs([experiment.experiment_id], condition))


def tracked_run(client: MlflowClient, folder: RunFolder) -> TrackedRun:
    """The one run in MLflow that belongs to a folder."""
    its_hash = folder.read_config_json()["hash"]
    (run,) = tracked_runs(client, f"tags.`{HASH_TAG}` = '{its_hash}'")
    return run


def curve(client: MlflowClient, run: TrackedRun, name: str) -> list[tuple[int, float]]:
    """Steps and values, in the order of the steps."""
    history = client.get_metric_history(run.info.run_id, name)
    return sorted((point.step, point.value) for point in history)


def artifacts(client: MlflowClient, run: TrackedRun) -> list[str]:
    return [file.path for file in client.list_artifacts(run.info.run_id)]


def content(client: MlflowClient, folder: RunFolder) -> dict[str, Any]:
    """All that MLflow has of a run, but for its id and the time of its creation there."""
    run = tracked_run(client, folder)
    points = {
        name: sorted(
            (point.step, point.value, point.timestamp)
            for point in client.get_metric_history(run.info.run_id, name)
        )
        for name in run.data.metrics
    }
    tags = {key: value for key, value in run.data.tags.items() if not key.startswith("mlflow.")}
    return {
        "name": run.info.run_name,
        "status": run.info.status,
        "started": run.info.start_time,
        "ended": run.info.end_time,
        "params": run.data.params,
        "tags": tags,
        "points": points,
        "artifacts": artifacts(client, run),
    }


def expected_curves(folder: RunFolder) -> dict[str, list[tuple[int, float]]]:
    """What a run folder has for MLflow to show, by metric."""
    points: dict[str, list[tuple[int, float]]] = {}
    for record in folder.records():
        for name in record.keys() - {"step", "time"}:
            points.setdefault(name, []).append((record["step"], record[name]))
    for number, sample in enumerate(read_lines(folder.system_file)):
        for name in sample.keys() - {"time"}:
            points.setdefault(name, []).append((number, sample[name]))
    result = folder.result()
    for which, tests in result["test"].items():
        for test, metrics in tests.items():
            for metric, value in metrics.items():
                points[f"{which}/{test}/{metric}"] = [(result["steps"], value)]
    return points


def assert_complete(client: MlflowClient, folder: RunFolder, status: str = "finished") -> None:
    """MLflow has one run for the folder, and in it all that the folder has, once."""
    run = tracked_run(client, folder)
    result = folder.result()
    assert run.data.tags["status"] == result["status"] == status
    assert run.info.status == ("FINISHED" if status == "finished" else "FAILED")
    assert run.info.start_time <= run.info.end_time
    expected = expected_curves(folder)
    assert run.data.metrics.keys() == expected.keys()
    for name, points in expected.items():
        assert curve(client, run, name) == points, name
    for name in ("validation/mse_geometric", "train/loss", "learning_rate", "epoch"):
        assert len(expected[name]) == len(folder.records())
    files = ["config.json", "metrics.jsonl", "model.pt", "result.json", "system.jsonl"]
    assert artifacts(client, run) == files


def downloaded(client: MlflowClient, folder: RunFolder, name: str, to: Path) -> Path:
    run_id = tracked_run(client, folder).info.run_id
    return Path(client.download_artifacts(run_id, name, str(to)))


def assert_artifacts_are_the_files(client: MlflowClient, folder: RunFolder, to: Path) -> None:
    for name in ("config.json", "metrics.jsonl", "result.json", "system.jsonl", "model.pt"):
        copy = downloaded(client, folder, name, to)
        assert copy.read_bytes() == (folder.path / name).read_bytes()
    weights = torch.load(to / "model.pt", weights_only=True)
    assert {"best", "final"} == weights.keys()
