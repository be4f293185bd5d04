"""`lietransformer forecast`, from measuring to comparing."""

import argparse
import json
from pathlib import Path

import pytest

from lietransformer.cli import forecast as command
from lietransformer.errors import UserError
from lietransformer.forecast.comparison import compare, read_forecast
from lietransformer.forecast.forecast import Forecast
from lietransformer.training.run_folder import write_json
from tests.forecast.sweeps import ONE_MODEL, ROOT, plan_of, some_measurements
from tests.sweep.archives import publish


@pytest.fixture(autouse=True)
def in_the_project(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def forecast(results: Path, *arguments: str) -> int:
    parser = argparse.ArgumentParser()
    command.add_parser(parser.add_subparsers())
    options = parser.parse_args(["forecast", "--results", str(results), *arguments])
    return int(options.run(options))


def kept_forecast(results: Path) -> Forecast:
    plan = plan_of(results, *ONE_MODEL)
    made = Forecast(plan, some_measurements(plan), jobs_at_once=2)
    write_json(results / "forecast.json", made.stored())
    return made


def finish_run(results: Path, job: str, seed: int, *, seconds: float, memory: float) -> None:
    """What a run leaves that a comparison reads."""
    folder = (results / job).parent / f"seed-{seed}"
    result = {"seconds": {"training": seconds, "test": 1.0}, "peak_memory_gb": memory}
    write_json(folder / "result.json", result)


def test_measures_shows_and_keeps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("--seconds", "0", "--jobs", "3", "--config", *ONE_MODEL)
    assert forecast(tmp_path, *arguments) == 0
    shown = capsys.readouterr()
    assert "measuring Fully-connected (direct) on springs" in shown.err
    assert "with 3 jobs at a time" in shown.out
    stored = json.loads((tmp_path / "forecast.json").read_text())
    assert stored["total"]["jobs"] == 4  # a dataset, two packs of seeds, Figure 3
    assert stored["total"]["unknown"] == 0
    assert stored["wall_seconds"] > 0
    assert [part["name"] for part in stored["parts"]] == ["datasets", "data_efficiency", "figure 3"]

    # The same again from the file, without measuring.
    path = tmp_path / "forecast.json"
    again = ("--speed", str(path), "--out", str(tmp_path / "again.json"), "--config", *ONE_MODEL)
    assert forecast(tmp_path, *again) == 0
    shown = capsys.readouterr()
    assert "measuring" not in shown.err
    assert json.loads((tmp_path / "again.json").read_text())["jobs"] == stored["jobs"]


def test_speeds_of_other_models(tmp_path: Path) -> None:
    kept_forecast(tmp_path)
    other = "springs.data_efficiency.models=[LieConv-T2]"
    with pytest.raises(UserError, match="LieConv-T2 on springs"):
        forecast(
            *(tmp_path, "--speed", str(tmp_path / "forecast.json")),
            *("--config", *ONE_MODEL, other),
        )


def test_a_mistake_in_the_sweep_is_found_before_measuring(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(UserError, match="tier to be one of"):
        forecast(tmp_path, "--config", "tier=huge")
    assert "measuring" not in capsys.readouterr().err


def test_settings_within_a_key_leave_the_rest_of_it(tmp_path: Path) -> None:
    speeds = kept_forecast(tmp_path)
    (tmp_path / "one.yaml").write_text("tier: smoke\n")
    (tmp_path / "two.yaml").write_text("compute: {seeds_per_job: 3}\n")
    files = [str(tmp_path / name) for name in ("one.yaml", "two.yaml")]
    arguments = ("--configfile", *files, "--config", *ONE_MODEL)
    speed = ("--speed", str(tmp_path / "forecast.json"))
    assert forecast(tmp_path, *speed, *arguments, "compute={checkpoint_every: 5}") == 0
    stored = json.loads((tmp_path / "forecast.json").read_text())
    assert [len(job["seeds"]) for job in stored["jobs"] if job["trains"]] == [3]
    assert [len(job.seeds) for job in speeds.jobs if job.trains] == [2, 1]


def test_writes_prices_of_published_runs_too(tmp_path: Path) -> None:
    made, prices = kept_forecast(tmp_path), tmp_path / "prices.json"
    publish(tmp_path, [run["folder"] for run in made.plan.manifest()["runs"]])
    speed = ("--speed", str(tmp_path / "forecast.json"), "--out", str(tmp_path / "other.json"))
    arguments = (*speed, "--prices", str(prices), "--config", *ONE_MODEL)
    with pytest.raises(UserError, match="Give it by --gflops"):
        forecast(tmp_path, *arguments)
    assert forecast(tmp_path, *arguments, "--gflops", "100") == 0
    assert json.loads(prices.read_text())["hours"].keys() == {
        "springs/Fully-connected (direct)/n10"
    }


@pytest.mark.parametrize("option", [("--jobs", "0"), ("--gflops", "0"), ("--gflops", "inf")])
def test_impossible_options(tmp_path: Path, option: tuple[str, str]) -> None:
    with pytest.raises(SystemExit):
        forecast(tmp_path, *option)


def test_compares_with_finished_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = kept_forecast(tmp_path)
    two, one = (job for job in made.jobs if job.trains)
    each = sum(two.run_seconds.values())
    finish_run(tmp_path, two.name, 1, seconds=3 * each - 1, memory=2.5)
    finish_run(tmp_path, one.name, 2, seconds=each - 1, memory=1.0)
    by_part, by_model, total = compare(read_forecast(tmp_path / "forecast.json"), tmp_path)
    assert (by_part.name, by_model.name) == (
        "data_efficiency",
        "Fully-connected (direct) on springs",
    )
    for row in (by_part, by_model, total):
        assert (row.runs, row.planned) == (2, 3)
        assert row.forecast == pytest.approx(2 * each)
        assert row.real == pytest.approx(4 * each)
        assert row.memory_real == 2.5
    assert forecast(tmp_path, "--compare") == 0
    shown = capsys.readouterr().out
    assert "2 of 3" in shown
    assert "2.00" in shown


def test_compares_when_nothing_is_finished(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = kept_forecast(tmp_path)
    job = next(job for job in made.jobs if job.trains)
    damaged = (tmp_path / job.name).parent / "seed-0"
    damaged.mkdir(parents=True)
    (damaged / "result.json").write_text("{")
    assert forecast(tmp_path, "--compare") == 0
    assert "0 of 3" in capsys.readouterr().out


@pytest.mark.parametrize("content", [None, "no json", "[]", "{}"])
def test_nothing_to_compare(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "forecast.json").write_text(content)
    with pytest.raises(UserError, match="Make one first"):
        forecast(tmp_path, "--compare")
