"""The benchmark of whole runs: that it measures real ones, not how fast they are."""

from pathlib import Path

import pytest

from benchmarks import runs
from benchmarks.comparison import ROWS, Row
from benchmarks.train_step import RowFailed

SMALL = Row("springs, small", "springs", "LieTransformer-T2 small", 5, 1, 1)


def test_every_task_has_a_model_among_those_that_are_measured() -> None:
    tasks = {row.task for row in ROWS if row.name in runs.MODELS}
    assert tasks == {row.task for row in ROWS}


def test_a_run_shows_its_first_step(springs_file: Path, tmp_path: Path) -> None:
    assert runs.seconds_to_first_step(SMALL, springs_file, cache=tmp_path / "cache") > 0


def test_a_run_that_fails_is_no_measurement(tmp_path: Path) -> None:
    with pytest.raises(RowFailed, match="exit code"):
        runs.seconds_to_first_step(SMALL, tmp_path / "missing.h5")


def test_shares_of_a_run(springs_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.train_step._SPRINGS_SYSTEMS", 10)
    monkeypatch.setattr(runs, "_BATCHES", 3)
    monkeypatch.setattr(runs, "prepare_process", lambda _: None)
    getting, evaluating = runs.shares(SMALL, springs_file)
    assert 0 < getting < 1
    assert 0 < evaluating < 1
    assert getting + evaluating < 1


def test_throughput_is_that_of_training_jobs() -> None:
    jobs = [
        {"seeds": [], "seconds": 1000},  # a dataset
        {"seeds": [0, 1], "seconds": 1500},
        {"seeds": [0], "seconds": 300},
    ]
    assert runs.throughput({"jobs": jobs}) == 3 * 3600 / 1800
