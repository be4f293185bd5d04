"""Tracking on a server while a run goes on; a server or a run that is stopped half-way."""

import shutil
import signal
from pathlib import Path

import pytest
from mlflow import MlflowClient

from lietransformer.cli import main
from lietransformer.interruption import Interrupted, Interruption
from lietransformer.tracking.folders import SYNCED_TAG
from lietransformer.tracking.live import LiveTracking
from lietransformer.training.run_folder import RunFolder
from tests.tracking.runs import (
    MLFLOW_WARNINGS,
    RECORDS,
    assert_artifacts_are_the_files,
    assert_complete,
    curve,
    make_run,
    tracked_run,
    tracked_runs,
)
from tests.tracking.server import Server, wait_until

pytestmark = MLFLOW_WARNINGS


def follow(server: Server, folder: RunFolder) -> LiveTracking:
    return LiveTracking(server.uri, folder, seconds_between_updates=0.05, seconds_at_the_end=300.0)


def loss_curve(client: MlflowClient, seed: int) -> list[tuple[int, float]]:
    """What the server has of it so far; each test has a seed of its own."""
    if client.get_experiment_by_name("springs") is None:
        return []
    runs = tracked_runs(client, f"params.seed = '{seed}'")
    assert len(runs) <= 1
    return [point for run in runs for point in curve(client, run, "train/loss")]


def wait_for_records(client: MlflowClient, folder: RunFolder, seed: int) -> None:
    """Until the server has all that the folder has."""
    expected = [(record["step"], record["train/loss"]) for record in folder.records()]
    wait_until(lambda: loss_curve(client, seed) == expected)


@pytest.mark.slow
def test_the_server_follows_a_run(server: Server, tmp_path: Path, springs_file: Path) -> None:
    client = server.client
    lengths: list[int] = []

    def on_record() -> None:
        wait_for_records(client, run.folder, seed=11)
        lengths.append(len(loss_curve(client, 11)))
        tracked = tracked_run(client, run.folder)
        if not run.folder.is_done:
            assert tracked.info.status == "RUNNING"
            assert tracked.data.tags["status"] == "running"
            return
        # The machine is watched a little longer than the result takes to be written.
        wait_until(lambda: SYNCED_TAG in tracked_run(client, run.folder).data.tags)

    run = make_run(tmp_path / "run", springs_file, seed=11, on_record=on_record)
    with follow(server, run.folder).following():
        run.execute()
    assert lengths == [1, 2, 3, 4, 4]
    assert_complete(client, run.folder)
    assert_artifacts_are_the_files(client, run.folder, tmp_path)


@pytest.mark.slow
def test_a_server_that_dies_and_comes_back_misses_nothing(
    server: Server, tmp_path: Path, springs_file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    client = server.client

    def on_record() -> None:
        if len(run.folder.records()) < 2:
            return
        if len(run.folder.records()) == 2:
            wait_for_records(client, run.folder, seed=12)
            server.kill()
        elif run.folder.is_done:
            server.start()  # takes some seconds: the run ends before it answers

    run = make_run(tmp_path / "run", springs_file, seed=12, on_record=on_record)
    with caplog.at_level("INFO", "lietransformer.tracking"), follow(server, run.folder).following():
        run.execute()
    assert_complete(client, run.folder)
    assert loss_curve(client, 12)[-1][0] == RECORDS
    said = [record.message for record in caplog.records if "tracking" in record.name]
    assert said[0].startswith("tracking does not work now, will try again: API request")
    assert said[1:] == ["tracking works again"]


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "has_checkpoint"), [(13, True), (14, False)])
def test_a_resumed_run_goes_on_in_the_same_place(
    server: Server, tmp_path: Path, springs_file: Path, seed: int, has_checkpoint: bool
) -> None:
    """Without a checkpoint everything is computed again, also what the server has already."""
    interruption = Interruption()

    def on_record() -> None:
        if len(first.folder.records()) == 2:
            interruption.signal = signal.SIGTERM

    out = tmp_path / "run"
    first = make_run(out, springs_file, seed=seed, interruption=interruption, on_record=on_record)
    with pytest.raises(Interrupted), follow(server, first.folder).following():
        first.execute()
    assert len(loss_curve(server.client, seed)) == 2
    run_id = tracked_run(server.client, first.folder).info.run_id
    if not has_checkpoint:
        shutil.rmtree(first.folder.state_folder)

    second = make_run(out, springs_file, seed=seed)
    with follow(server, second.folder).following():
        assert second.execute()["sessions"] == (2 if has_checkpoint else 1)
    assert_complete(server.client, second.folder)
    assert tracked_run(server.client, second.folder).info.run_id == run_id


def test_what_a_server_has_not_got_is_brought_by_sync(
    server: Server, finished: RunFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["sync", str(finished.path), "--tracking", server.uri]
    for expected in ("1 of 1", "0 of 1"):
        assert main(command) == 0
        assert f"{server.uri}: {expected} finished runs" in capsys.readouterr().out
        assert_complete(server.client, finished)
