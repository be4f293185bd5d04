"""`lietransformer sync`: as often as one likes, and after whatever stopped it."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mlflow import MlflowClient

from lietransformer.cli import main
from lietransformer.interruption import Interrupted, Interruption
from lietransformer.tracking import ingest
from lietransformer.training.run_folder import RunFolder
from tests.tracking.runs import (
    MLFLOW_WARNINGS,
    assert_complete,
    content,
    make_run,
    sqlite_uri,
    tracked_run,
    tracked_runs,
    train_command,
)

pytestmark = MLFLOW_WARNINGS


def sync(database: Path, *folders: Path) -> int:
    return main(["sync", *map(str, folders), "--tracking", sqlite_uri(database)])


def test_a_second_sync_changes_nothing(
    database: Path, finished: RunFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    uri = sqlite_uri(database)
    assert sync(database, finished.path) == 0
    assert capsys.readouterr().out == f"{uri}: 1 of 1 finished runs brought up to date\n"
    client = MlflowClient(uri)
    before = content(client, finished)
    for folder in (finished.path, finished.path.parent):
        assert sync(database, folder) == 0
        assert capsys.readouterr().out == f"{uri}: 0 of 1 finished runs brought up to date\n"
    assert len(tracked_runs(client)) == 1
    assert content(client, finished) == before


def test_a_published_run_stands_beside_the_local_one_of_its_settings(
    tmp_path: Path, database: Path, finished: RunFolder
) -> None:
    archive = tmp_path / "published"
    shutil.copytree(finished.path, archive / "runs" / "springs" / "model" / "n10" / "seed-0")
    (archive / "MANIFEST.json").write_text("{}")
    assert sync(database, finished.path, archive) == 0
    runs = {
        run.data.tags["source"]: run for run in tracked_runs(MlflowClient(sqlite_uri(database)))
    }
    assert runs.keys() == {"published", "this machine"}
    assert runs["published"].info.run_name.endswith("(published)")
    assert runs["published"].data.metrics == runs["this machine"].data.metrics
    assert sync(database, finished.path, archive) == 0
    assert len(tracked_runs(MlflowClient(sqlite_uri(database)))) == 2


def test_artifacts_are_not_taken_for_runs(
    tmp_path: Path, database: Path, finished: RunFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(finished.path, tmp_path / "run")
    for expected in ("1 of 1", "0 of 1"):
        assert sync(database, tmp_path) == 0
        assert f": {expected} finished runs" in capsys.readouterr().out


# Where a sync is stopped: in which call of which method, and whether that still did its work.
PLACES = [
    ("create_run", 1, True),
    ("log_batch", 1, False),
    ("log_batch", 1, True),
    ("log_batch", 2, True),
    ("log_batch", 3, False),
    ("log_artifact", 3, False),
    ("set_tag", 1, False),
    ("set_terminated", 1, False),
    ("set_terminated", 1, True),
    ("set_tag", 5, False),
]


def failing(method: Callable[..., Any], number: int, *, is_done: bool) -> Callable[..., Any]:
    """A method whose call of that number fails, before or after it is done."""
    calls = 0

    def call(*arguments: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == number and not is_done:
            raise ConnectionError("cut off")
        result = method(*arguments, **options)
        if calls == number:
            raise ConnectionError("cut off")
        return result

    return call


@pytest.fixture(scope="module")
def undisturbed(
    empty_database: Path, finished: RunFolder, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Any]:
    database = Path(shutil.copy(empty_database, tmp_path_factory.mktemp("undisturbed")))
    assert sync(database, finished.path) == 0
    return content(MlflowClient(sqlite_uri(database)), finished)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "number", "is_done"), PLACES)
def test_a_sync_that_was_cut_off_is_completed_by_the_next(
    database: Path,
    finished: RunFolder,
    undisturbed: dict[str, Any],
    name: str,
    number: int,
    is_done: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    # So that the curves take several calls.
    monkeypatch.setattr(ingest, "_METRICS_AT_ONCE", 7)
    with monkeypatch.context() as patch:
        method = getattr(MlflowClient, name)
        patch.setattr(MlflowClient, name, failing(method, number, is_done=is_done))
        assert sync(database, finished.path) == 1
    said = capsys.readouterr()
    assert "mlflow.db: cut off. Check the address" in said.err
    assert said.out == ""
    assert sync(database, finished.path) == 0
    assert content(MlflowClient(sqlite_uri(database)), finished) == undisturbed
    assert sync(database, finished.path) == 0
    assert ": 0 of 1 finished" in capsys.readouterr().out


def test_a_diverged_run_has_failed(tmp_path: Path, database: Path, springs_file: Path) -> None:
    out = tmp_path / "run"
    command = train_command(out, sqlite_uri(database), springs_file, learning_rate=1e30)
    assert main(command) == 0
    assert RunFolder(out).result()["diverged"]["step"] > 0
    client = MlflowClient(sqlite_uri(database))
    run = tracked_run(client, RunFolder(out))
    assert run.info.status == "FAILED"
    assert run.data.tags["status"] == "diverged"


def test_unfinished_runs_are_counted_and_left_alone(
    tmp_path: Path,
    database: Path,
    finished: RunFolder,
    springs_file: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    shutil.copytree(finished.path, tmp_path / "runs" / "finished")
    interruption = Interruption()
    unfinished = make_run(
        tmp_path / "runs" / "unfinished",
        springs_file,
        seed=1,
        interruption=interruption,
        on_record=lambda: setattr(interruption, "signal", 15),
    )
    with pytest.raises(Interrupted):
        unfinished.execute()
    assert sync(database, tmp_path / "runs") == 0
    said = capsys.readouterr().out
    assert said.endswith(": 1 of 1 finished runs brought up to date; 1 not finished yet\n")
    (run,) = tracked_runs(MlflowClient(sqlite_uri(database)))
    assert run.data.tags["seed"] == "0"


@pytest.mark.parametrize("change", [0.0, 1.0], ids=["same numbers", "other numbers"])
def test_of_two_folders_with_the_same_settings_the_last_one_is_shown(
    tmp_path: Path,
    database: Path,
    finished: RunFolder,
    change: float,
    capsys: pytest.CaptureFixture[str],
) -> None:
    older, newer = (
        RunFolder(Path(shutil.copytree(finished.path, tmp_path / "runs" / name)))
        for name in ("a", "b")
    )
    result = newer.result()
    result["test"]["best"]["test"]["mse_geometric"] += change
    newer.result_file.write_text(json.dumps(result | {"ended": result["ended"] + 60}))
    assert sync(database, tmp_path / "runs") == 0
    assert ": 2 of 2 finished" in capsys.readouterr().out
    client = MlflowClient(sqlite_uri(database))
    assert_complete(client, newer)
    run_id = tracked_run(client, newer).info.run_id
    for folder in (tmp_path / "runs", older.path, newer.path):
        assert sync(database, folder) == 0
        assert ": 0 of " in capsys.readouterr().out
    assert tracked_run(client, newer).info.run_id == run_id


def test_a_run_that_differs_by_rounding_keeps_its_place(
    tmp_path: Path, database: Path, finished: RunFolder
) -> None:
    """A run that went on with other threads has repeated some steps, almost but not quite."""
    folder = RunFolder(Path(shutil.copytree(finished.path, tmp_path / "run")))
    assert sync(database, folder.path) == 0
    client = MlflowClient(sqlite_uri(database))
    before = tracked_run(client, folder)
    records = folder.records()
    records[-1]["train/loss"] *= 1 + 1e-6
    records[-1]["validation/momentum_drift"] += 1e-7
    folder.metrics_file.write_text("".join(json.dumps(record) + "\n" for record in records))
    assert sync(database, folder.path) == 0
    after = tracked_run(client, folder)
    assert after.info.run_id == before.info.run_id
    assert after.data.metrics == before.data.metrics


def test_a_run_that_was_started_over_replaces_the_one_before(
    tmp_path: Path, database: Path, finished: RunFolder
) -> None:
    """Other code or another machine can lead to other numbers for the same settings."""
    old = RunFolder(Path(shutil.copytree(finished.path, tmp_path / "run")))
    assert sync(database, old.path) == 0
    result = old.result()
    result["test"]["best"]["test"]["mse_geometric"] += 1
    result["ended"] += 60
    old.result_file.write_text(json.dumps(result))
    records = old.records()
    records[-1]["train/loss"] += 1
    old.metrics_file.write_text("".join(json.dumps(record) + "\n" for record in records))
    assert sync(database, old.path) == 0
    assert_complete(MlflowClient(sqlite_uri(database)), old)
