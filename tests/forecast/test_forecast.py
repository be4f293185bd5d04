"""From speeds to hours, memory and disk."""

import argparse
import json
import re
from pathlib import Path

import pytest

from lietransformer.cli import forecast as command
from lietransformer.errors import UserError
from lietransformer.forecast import speed as measuring
from lietransformer.forecast.forecast import Forecast
from lietransformer.report.prices import read_prices
from lietransformer.training.run_folder import write_json
from tests.forecast.sweeps import ONE_MODEL, ROOT, forecast, plan_of, some_speed, subjects_of
from tests.sweep.archives import publish


def run_command(results: Path, *arguments: str) -> int:
    parser = argparse.ArgumentParser()
    command.add_parser(parser.add_subparsers())
    options = parser.parse_args(["forecast", "--results", str(results), *arguments])
    return int(options.run(options))


def test_a_job_by_hand(tmp_path: Path) -> None:
    two, one = forecast(tmp_path, *ONE_MODEL).jobs
    assert (two.pack.seeds, one.pack.seeds) == ((0, 1), (2,))
    # Two epochs of one batch; two evaluations of four examples; two sets of weights, each tested
    # on four short and four long trajectories, of 4 and 99 steps.
    tests = 2 * 4 * (1 + 99 / 4)
    seconds = 2 * 2.0 + 2 * 4 * 0.5 + tests * 0.25
    assert two.run_seconds == one.run_seconds == pytest.approx(seconds)
    assert one.seconds == pytest.approx(10 + seconds)
    assert two.seconds == pytest.approx(10 + 2 * seconds)
    assert one.memory_gb == 1.5
    assert one.disk_bytes == pytest.approx(2 * 4e6 + tests * 100)
    assert not one.is_done


def test_every_job_of_the_sweep_is_there(tmp_path: Path) -> None:
    made = forecast(tmp_path, "tier=paper")
    assert sum(len(job.pack.seeds) for job in made.jobs) == len(made.plan.manifest()["runs"])
    assert {job.part for job in made.jobs} == {
        *("constellations", "data_efficiency", "parameter_efficiency", "ablations", "qm9")
    }
    text = made.text()
    assert "≤" in text  # constellations stop early
    assert "core-h" in text
    assert "Measured on a processor since 2026-01-02" in text


def test_wall_time_is_of_what_is_left(tmp_path: Path) -> None:
    before = forecast(tmp_path, *ONE_MODEL)
    assert before.wall_seconds == max(job.seconds for job in before.jobs)
    before.at_once = 1
    assert before.wall_seconds == sum(job.seconds for job in before.jobs)
    two, one = before.jobs
    two.pack.summary.parent.mkdir(parents=True)
    two.pack.summary.write_text("[]")
    assert before.wall_seconds == one.seconds


def test_published_runs_cost_nothing(tmp_path: Path) -> None:
    before = forecast(tmp_path, *ONE_MODEL, "verification.budget=2m")
    assert "published" not in before.text()
    publish(tmp_path, [run["folder"] for run in before.plan.manifest()["runs"]][:2])
    after = forecast(tmp_path, *ONE_MODEL, "verification.budget=2m")
    assert [job.pack.seeds for job in after.jobs] == [(2,)]
    assert "2 of 3 runs are published and cost nothing." in after.text()
    assert "Verification takes up to 2m more." in after.text()
    only = forecast(tmp_path, *ONE_MODEL, "published=only")
    assert only.jobs == []
    assert "1 runs are neither published nor trained" in only.text()


def test_threads_count_as_cores(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, *ONE_MODEL, "compute.threads=2")
    made = Forecast(plan, dict.fromkeys(subjects_of(plan), some_speed(step=3600.0)), at_once=1)
    assert "12.10 core-h" in made.text()  # three runs of two steps of an hour each


def test_another_speed(tmp_path: Path) -> None:
    here, there = forecast(tmp_path, *ONE_MODEL), forecast(tmp_path, *ONE_MODEL, gflops=100.0)
    assert there.wall_seconds == pytest.approx(here.wall_seconds / 2)
    assert there.jobs[0].memory_gb == here.jobs[0].memory_gb
    assert "GPU of 100 GFLOP/s" in there.text()


def test_prices(tmp_path: Path) -> None:
    made = forecast(tmp_path, "tier=paper", "published=ignore", gflops=100.0)
    write_json(tmp_path / "prices.json", made.prices())
    prices = read_prices(tmp_path / "prices.json")
    assert (prices.gpu, prices.measured_on) == ("GPU of 100 GFLOP/s (float32)", "a processor")
    assert len(prices.hours) == len(made.plan.configurations)
    job = next(job for job in made.jobs if job.pack.configuration.settings["model"] == "SchNet")
    assert prices.hours["qm9/SchNet/alpha"] == pytest.approx(job.seconds / 3600, rel=0.01)
    assert "qm9/LieConv-T3/homo/SO3" in prices.hours


def test_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(measuring, "measure_apart", lambda *_: some_speed())
    made, prices = forecast(tmp_path, *ONE_MODEL), tmp_path / "prices.json"
    write_json(
        made.jobs[0].pack.runs[1] / "result.json", {"status": "finished", "seconds": {"a": 99.0}}
    )
    assert run_command(tmp_path, "--jobs", "3", "--compare", "--config", *ONE_MODEL) == 0
    shown = capsys.readouterr()
    assert "measuring Fully-connected (direct), batches of" in shown.err
    assert "with 3 jobs at a time" in shown.out
    assert shown.out.splitlines()[-1].split()[:2] == ["total", "1"]
    assert shown.out.endswith(f"{99 / made.jobs[0].run_seconds:.2f}\n")

    # From the cache; prices are of published runs, too.
    publish(tmp_path, [run["folder"] for run in made.plan.manifest()["runs"]])
    arguments = ("--prices", str(prices), "--config", *ONE_MODEL)
    with pytest.raises(UserError, match="Give it by --gflops"):
        run_command(tmp_path, *arguments)
    assert run_command(tmp_path, "--gflops", "100", *arguments) == 0
    assert "measuring" not in capsys.readouterr().err
    hours = json.loads(prices.read_text())["hours"]
    assert hours.keys() == {"springs/Fully-connected (direct)/n10"}


def test_settings_within_a_key_leave_the_rest_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(measuring, "measure_apart", lambda *_: some_speed())
    (tmp_path / "one.yaml").write_text("tier: smoke\n")
    (tmp_path / "two.yaml").write_text("compute: {seeds_per_job: 3}\n")
    files = [str(tmp_path / name) for name in ("one.yaml", "two.yaml")]
    settings = [each for each in ONE_MODEL if not each.startswith("compute")]
    settings.append("compute={checkpoint_every: 5, device: cpu}")
    run_command(tmp_path, "--configfile", *files, "--config", *settings)
    assert re.search(r"total +1 +0 +3 ", capsys.readouterr().out)


@pytest.mark.parametrize("option", [("--jobs", "0"), ("--gflops", "0"), ("--gflops", "inf")])
def test_impossible_options(tmp_path: Path, option: tuple[str, str]) -> None:
    with pytest.raises(SystemExit):
        run_command(tmp_path, *option)
