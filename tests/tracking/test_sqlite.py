"""A run in a SQLite store: what is there, where it lies, how it is found."""

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from mlflow import MlflowClient

from lietransformer.cli import main
from lietransformer.tracking.store import open_store
from lietransformer.training.run_folder import RunFolder
from tests.tracking.runs import (
    MLFLOW_WARNINGS,
    assert_artifacts_are_the_files,
    assert_complete,
    settings_of_another,
    sqlite_uri,
    tracked_run,
    tracked_runs,
    train_command,
)
from tests.tracking.server import wait_until

pytestmark = MLFLOW_WARNINGS


def test_a_run_is_in_the_store_when_it_has_ended(
    tmp_path: Path, elsewhere: Path, springs_file: Path
) -> None:
    database, out = tmp_path / "new" / "mlflow.db", tmp_path / "run"
    changes = {"seed": 3, "test_weights": "[best,final]"}
    assert main(train_command(out, sqlite_uri(database), springs_file, **changes)) == 0

    client, folder = MlflowClient(sqlite_uri(database)), RunFolder(out)
    names = {experiment.name for experiment in client.search_experiments()}
    assert names >= {"constellations", "springs", "qm9"}
    assert len(tracked_runs(client)) == 1
    assert_complete(client, folder)
    assert_artifacts_are_the_files(client, folder, tmp_path)

    run, result = tracked_run(client, folder), folder.result()
    assert run.info.run_name == "Fully-connected (Hamiltonian) n=10 width=8 layers=1 seed 3"
    expected_tags = {
        "task": "springs",
        "model": "Fully-connected (Hamiltonian)",
        "group": "none",
        "size": "1x8",
        "n_train": "10",
        "target": "–",
        "augmentation": "none",
        "seed": "3",
        "status": "finished",
        "parameters": str(result["parameters"]),
        "git_commit": str(result["git_commit"]),
        "dataset_hash": result["dataset_hash"],
    }
    assert expected_tags.items() <= run.data.tags.items()
    best = result["test"]["best"]["test"]["mse_geometric"]
    assert run.data.metrics["best/test/mse_geometric"] == best
    assert run.info.end_time == round(result["ended"] * 1000)

    config = json.loads((out / "config.json").read_text())["config"]
    # Neither place nor threads nor compilation nor recording tell runs apart; an architecture is
    # tracked key by key.
    left_out = {"data", "architecture", "threads", "compile", "graphs"}
    assert config.keys() - run.data.params.keys() == left_out
    for name in config.keys() - left_out:
        assert run.data.params[name] == str(config[name])
    assert run.data.params["architecture.width"] == "8"

    location = database.parent / "mlflow-artifacts" / "springs"
    assert run.info.artifact_uri.startswith(location.as_uri())
    assert list(elsewhere.iterdir()) == []
    assert sorted(path.name for path in database.parent.iterdir()) == [
        "mlflow-artifacts",
        "mlflow.db",
    ]


def test_the_default_store_lies_in_results(
    elsewhere: Path, empty_database: Path, finished: RunFolder
) -> None:
    (elsewhere / "results").mkdir()
    shutil.copy(empty_database, "results")
    assert main(["sync", str(finished.path)]) == 0
    assert sorted(path.name for path in elsewhere.iterdir()) == ["results"]
    assert_complete(MlflowClient("sqlite:///results/mlflow.db"), finished)


def test_the_environment_names_a_store(
    database: Path, finished: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", sqlite_uri(database))
    assert main(["sync", str(finished.path)]) == 0
    assert_complete(MlflowClient(sqlite_uri(database)), finished)


def test_no_tracking_leaves_no_store(
    tmp_path: Path, elsewhere: Path, springs_file: Path, finished: RunFolder
) -> None:
    out = Path(shutil.copytree(finished.path, tmp_path / "run"))
    assert main(train_command(out, "none", springs_file)) == 0  # there is nothing left to do
    assert list(elsewhere.iterdir()) == []


def test_runs_are_found_by_what_they_are(
    tmp_path: Path, database: Path, springs_file: Path, finished: RunFolder
) -> None:
    larger = "{width: 16, layers: 1}"
    runs: dict[str, dict[str, object]] = {
        "plain": {},
        "seed": {"seed": 1},
        "larger": {"n_train": 20, "architecture": larger},
        "direct": {"model": "Fully-connected (direct)", "seed": 1},
        "transformer": {"model": "LieTransformer-SE2", "architecture": larger},
    }
    for name, changes in runs.items():
        settings_of_another(finished, tmp_path / "runs" / name, springs_file, **changes)
    uri = sqlite_uri(database)
    assert main(["sync", str(tmp_path / "runs"), "--tracking", uri]) == 0
    client = MlflowClient(uri)
    ids = {
        tracked_run(client, RunFolder(tmp_path / "runs" / name)).info.run_id: name for name in runs
    }

    def found(condition: str) -> set[str]:
        return {ids[run.info.run_id] for run in tracked_runs(client, condition)}

    hamiltonian = "tags.model = 'Fully-connected (Hamiltonian)'"
    assert found("") == set(runs)
    assert found(hamiltonian) == {"plain", "seed", "larger"}
    assert found("tags.`group` = 'SE(2)'") == {"transformer"}
    assert found("tags.`group` = 'none'") == set(runs) - {"transformer"}
    assert found("tags.size = '1x16'") == {"larger", "transformer"}
    assert found("tags.n_train = '20'") == {"larger"}
    assert found("params.seed = '1'") == {"seed", "direct"}
    assert found(f"{hamiltonian} and tags.n_train = '10' and params.seed = '0'") == {"plain"}


def test_an_experiment_that_another_process_makes_at_the_same_moment(
    database: Path, finished: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_store(sqlite_uri(database)):
        pass
    see, unseen = MlflowClient.get_experiment_by_name, {"springs"}

    def see_late(client: MlflowClient, name: str) -> object:
        if name in unseen:
            unseen.remove(name)
            return None
        return see(client, name)

    monkeypatch.setattr(MlflowClient, "get_experiment_by_name", see_late)
    assert main(["sync", str(finished.path), "--tracking", sqlite_uri(database)]) == 0
    assert not unseen
    assert_complete(MlflowClient(sqlite_uri(database)), finished)


@pytest.mark.slow
def test_a_kill_while_the_store_is_made_does_not_disturb_the_next_one(
    tmp_path: Path, finished: RunFolder
) -> None:
    database = tmp_path / "store" / "mlflow.db"
    part, lock = (database.with_name(f"mlflow.db.{ending}") for ending in ("part", "lock"))
    command = ["sync", str(finished.path), "--tracking", sqlite_uri(database)]
    program = str(Path(sys.executable).with_name("lietransformer"))
    process = subprocess.Popen([program, *command], stderr=subprocess.DEVNULL)
    wait_until(lambda: part.exists() and part.stat().st_size > 10_000)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert part.exists()
    assert lock.exists()
    assert not database.exists()
    assert main(command) == 0
    assert_complete(MlflowClient(sqlite_uri(database)), finished)
    assert sorted(path.name for path in database.parent.iterdir()) == [
        "mlflow-artifacts",
        "mlflow.db",
    ]
