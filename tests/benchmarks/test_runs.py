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


@pytest.mark.slow
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


def test_runs_per_hour_are_those_of_processes_beside_each_other(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked = []

    def apart(arguments: tuple[str, ...]) -> float:
        asked.append(arguments)
        return 7200.0

    monkeypatch.setattr(runs, "available_cores", lambda: 4)
    monkeypatch.setattr(runs, "_apart", apart)
    half_of_the_runs = runs.runs_per_hour(tmp_path, threads=4)
    assert half_of_the_runs > 1
    assert runs.runs_per_hour(tmp_path, threads=1) == 4 * half_of_the_runs
    assert asked == [("all", str(tmp_path), "4"), *4 * [("all", str(tmp_path), "1")]]


def test_runs_of_the_tier_are_timed(
    springs_file: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(runs, "prepare_process", lambda _: None)
    plan = runs.sweep(tmp_path, threads=1)
    (tmp_path / "springs.h5").symlink_to(springs_file)
    small = next(
        configuration
        for configuration in plan.configurations
        if configuration.settings["model"] == "LieTransformer-T2 small"
    )
    assert runs._seconds_of_runs(plan, small, tmp_path) > 0
