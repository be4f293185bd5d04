"""What tracking refuses, and what it survives."""

import json
import logging
import shutil
from functools import partial
from pathlib import Path

import pytest

from lietransformer.cli import main
from lietransformer.errors import UserError
from lietransformer.tracking import live
from lietransformer.tracking.ingest import Ingestion
from lietransformer.tracking.live import LiveTracking
from lietransformer.training.run_folder import RunFolder
from tests.tracking.runs import MLFLOW_WARNINGS, RECORDS, make_run, train_command
from tests.tracking.server import free_port

pytestmark = MLFLOW_WARNINGS


@pytest.fixture
def nobody() -> str:
    """The address of a server that is not there."""
    return f"http://127.0.0.1:{free_port()}"


@pytest.mark.parametrize(
    "uri", ["./mlruns", "mlruns", "file:mlruns", "file:///tmp/mlruns", "sqlite://", "sqlite:///"]
)
def test_other_stores_are_refused_before_anything_is_trained(
    uri: str,
    tmp_path: Path,
    elsewhere: Path,
    springs_file: Path,
    finished: RunFolder,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "run"
    for command in (
        train_command(out, uri, springs_file),
        ["sync", str(finished.path), "--tracking", uri],
    ):
        assert main(command) == 1
        said = capsys.readouterr()
        assert said.out == ""
        assert said.err == (
            "lietransformer: the tracking store must be a SQLite file, such as "
            "sqlite:///results/mlflow.db, or a server, such as http://host:5000, "
            f"got {uri}. MLflow no longer supports its folders of files (./mlruns).\n"
        )
    assert not out.exists()
    assert list(elsewhere.iterdir()) == []


def test_a_store_that_is_a_folder_is_refused(
    tmp_path: Path, springs_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    assert main(train_command(out, f"sqlite:///{tmp_path}", springs_file)) == 1
    assert f"{tmp_path}: it is a folder" in capsys.readouterr().err
    assert not out.exists()


def test_sync_of_a_folder_that_is_not_there(
    tmp_path: Path, elsewhere: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sync", str(tmp_path / "none")]) == 1
    assert capsys.readouterr().err == (
        f"lietransformer: no folder of runs at {tmp_path}/none. Check the name.\n"
    )
    assert list(elsewhere.iterdir()) == []


def test_sync_to_a_server_that_is_not_there(
    nobody: str, finished: RunFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sync", str(finished.path), "--tracking", nobody]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    (message,) = said.err.splitlines()
    assert message.startswith(f"lietransformer: cannot use the MLflow store {nobody}: API request")
    assert "sync again" in message


def test_training_does_not_need_its_server(
    nobody: str,
    tmp_path: Path,
    springs_file: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    impatient = partial(LiveTracking, seconds_between_updates=0.05, seconds_at_the_end=0.5)
    monkeypatch.setattr(live, "LiveTracking", impatient)
    out = tmp_path / "run"
    assert main(train_command(out, nobody, springs_file)) == 0
    assert len(RunFolder(out).records()) == RECORDS
    assert RunFolder(out).result()["status"] == "finished"
    said = capsys.readouterr().err
    assert said.count("tracking does not work now, will try again: ") == 1
    remedy = f"the tracking server {nobody} is behind; bring it up to date with "
    assert remedy + f"`lietransformer sync {out} --tracking {nobody}`" in said


def test_training_does_not_need_its_file(
    tmp_path: Path, springs_file: Path, finished: RunFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    out = Path(shutil.copytree(finished.path, tmp_path / "run"))  # there is nothing left to train
    database = tmp_path / "mlflow.db"
    database.write_text("something else altogether, but quite as long as a header")
    assert main(train_command(out, f"sqlite:///{database}", springs_file)) == 0
    said = capsys.readouterr().err
    assert "the run is complete but not in MLflow: cannot use the MLflow store" in said
    assert "Traceback" not in said


def test_a_run_that_cannot_begin_is_not_waited_for(
    nobody: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run = make_run(tmp_path / "run", tmp_path / "none.h5")
    tracking = LiveTracking(nobody, run.folder, seconds_at_the_end=3.0)
    with pytest.raises(UserError, match=r"none\.h5"), tracking.following():
        run.execute()
    assert caplog.messages == []


def test_an_error_without_a_message_is_survived(
    finished: RunFolder,
    database: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(_: Ingestion) -> bool:
        raise ConnectionResetError

    monkeypatch.setattr(Ingestion, "update", fail)
    uri = f"sqlite:///{database}"
    tracking = LiveTracking(uri, finished, seconds_between_updates=0.01, seconds_at_the_end=0.0)
    with caplog.at_level(logging.WARNING), tracking.following():
        pass
    assert "will try again: ConnectionResetError" in caplog.messages[0]
    assert main(["sync", str(finished.path), "--tracking", uri]) == 1
    assert ": ConnectionResetError. Check" in capsys.readouterr().err


def test_a_folder_of_something_else(
    tmp_path: Path, database: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"hello": 1}))
    (tmp_path / "result.json").write_text("{}")
    assert main(["sync", str(tmp_path), "--tracking", f"sqlite:///{database}"]) == 1
    assert "config.json has no hash and config" in capsys.readouterr().err


def test_one_damaged_run_does_not_keep_the_others_out(
    tmp_path: Path, finished: RunFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(finished.path, tmp_path / "runs" / "whole")
    shutil.copytree(finished.path, tmp_path / "runs" / "damaged")
    (tmp_path / "runs" / "damaged" / "config.json").write_text("{}")
    arguments = ["sync", str(tmp_path / "runs"), "--tracking", f"sqlite:///{tmp_path}/mlflow.db"]
    assert main(arguments) == 1
    message = capsys.readouterr().err
    assert "1 runs were brought up to date, but not all: " in message
    assert "damaged/config.json has no hash and config" in message
