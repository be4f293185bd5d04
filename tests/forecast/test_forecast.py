"""From speeds to jobs and totals."""

import dataclasses
import json
from pathlib import Path

import pytest

from lietransformer.errors import UserError
from lietransformer.forecast.estimate import Job, added_up, rows, wall_seconds
from lietransformer.forecast.forecast import Forecast
from lietransformer.forecast.measuring import Measurements, measure_all
from lietransformer.forecast.table import aligned, duration, hours, size
from lietransformer.training.run_folder import write_json
from tests.forecast.sweeps import ONE_MODEL, plan_of, some_measurements
from tests.sweep.archives import publish


def job(seconds: float | None, part: str = "qm9", *, is_done: bool = False) -> Job:
    return Job("name", part, "M", (0, 1), {}, seconds, False, 2.0, 1e6, is_done)


def forecast(results: Path, *overrides: str, gflops: float | None = None) -> Forecast:
    plan = plan_of(results, *overrides)
    return Forecast(plan, some_measurements(plan), jobs_at_once=2, gflops=gflops)


def test_a_job_by_hand(tmp_path: Path) -> None:
    made = forecast(tmp_path, *ONE_MODEL)
    two, one = (each for each in made.jobs if each.trains)
    assert (two.seeds, one.seeds) == ((0, 1), (2,))
    # Two epochs of one batch; two evaluations of four examples; two sets of weights, each tested
    # on four short and four long trajectories, of 4 and 99 steps.
    times = {"training": 2 * 2.0, "evaluation": 2 * 4 * 0.5, "test": 2 * 4 * (1 + 99 / 4) * 0.25}
    assert two.run_seconds == times
    assert one.seconds == pytest.approx(10 + sum(times.values()))
    assert two.seconds == pytest.approx(10 + 2 * sum(times.values()))
    assert one.memory_gb == pytest.approx(1.5 + 3 * 4e6 / 1e9)
    kept = 2 * (4e6 + 4 * (1 + 99 / 4) * 100)
    lines = 2 * 350 + 25 * (10 + sum(times.values()))
    assert one.disk_bytes == pytest.approx(kept + lines)
    assert not one.is_done


def test_a_larger_dataset_needs_more_memory(tmp_path: Path) -> None:
    small = forecast(tmp_path, *ONE_MODEL)
    large = forecast(tmp_path, *ONE_MODEL, "springs.data.systems=50_000_000")
    # A row of ten bytes for each system in each of two kinds of arrays.
    difference = 2 * 10 * 50_000_000 / 1e9
    assert large.total.memory_gb == pytest.approx(small.total.memory_gb + difference, rel=1e-4)


def test_every_job_of_the_sweep_is_there(tmp_path: Path) -> None:
    made = forecast(tmp_path, "tier=paper")
    training = [each for each in made.jobs if each.trains]
    assert len(training) == len(made.plan.packs)
    assert sum(len(each.seeds) for each in training) == len(made.plan.manifest()["runs"])
    assert {each.part for each in made.jobs} == {
        *("datasets", "constellations", "data_efficiency", "parameter_efficiency", "ablations"),
        *("qm9", "figure 3"),
    }
    assert sum(row.jobs for row in rows(made.jobs, "part")) == made.total.jobs
    assert sum(row.seconds for row in rows(made.jobs, "part")) == pytest.approx(made.total.seconds)


def test_jobs_that_are_done_are_not_left(tmp_path: Path) -> None:
    before = forecast(tmp_path, *ONE_MODEL)
    summary = next(iter(before.plan.packs))
    summary.parent.mkdir(parents=True)
    summary.write_text("[]")
    after = forecast(tmp_path, *ONE_MODEL)
    assert (before.total.done, after.total.done) == (0, 1)
    assert after.total.seconds == before.total.seconds
    assert after.total.left < before.total.left
    assert after.wall < before.wall


def test_published_runs_cost_nothing(tmp_path: Path) -> None:
    before = forecast(tmp_path, *ONE_MODEL, "verification.budget=2m")
    assert "published" not in before.text()
    runs = [run["folder"] for run in before.plan.manifest()["runs"]]
    publish(tmp_path, runs[:2], [before.plan.measurements["invariance"].stem])
    after = forecast(tmp_path, *ONE_MODEL, "verification.budget=2m")
    assert [job.seeds for job in after.jobs if job.trains] == [(2,)]
    assert [job.part for job in after.jobs] == [
        *3 * ["datasets"],
        "data_efficiency",
        "verification",
    ]
    assert after.jobs[-1].seconds == 120
    assert "2 of 3 runs are published and cost nothing." in after.text()
    only = forecast(tmp_path, *ONE_MODEL, "published=only")
    assert only.jobs == []
    assert "1 runs are neither published nor trained" in only.text()


def test_prices(tmp_path: Path) -> None:
    made = forecast(tmp_path, "tier=paper", "published=ignore", gflops=100.0)
    prices = json.loads(json.dumps(made.prices()))
    assert prices["gpu"] == "GPU of 100 GFLOP/s (float32)"
    assert (prices["schema_version"], prices["measured_on"]) == (1, "a processor")
    assert len(prices["hours"]) == len(made.plan.configurations)
    assert {"qm9/LieConv-T3/homo", "qm9/LieConv-T3/homo/SO3"} <= prices["hours"].keys()
    job = next(job for job in made.jobs if job.name.startswith("runs/qm9/schnet/homo"))
    assert prices["hours"]["qm9/SchNet/homo"] == pytest.approx((job.seconds or 0) / 3600, rel=0.01)
    assert len(json.dumps(prices, indent=2)) < 150_000


def test_another_speed(tmp_path: Path) -> None:
    here, there = forecast(tmp_path, *ONE_MODEL), forecast(tmp_path, *ONE_MODEL, gflops=100.0)
    assert there.total.seconds == pytest.approx(here.total.seconds / 2)
    assert there.total.memory_gb == here.total.memory_gb
    assert "a lower bound" in there.text()
    # What was measured is kept as it was.
    assert there.stored()["measurements"] == here.stored()["measurements"]


def test_models_that_could_not_be_measured_are_not_taken_for_nothing(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, *ONE_MODEL)
    measured = some_measurements(plan)
    measured.models = dict.fromkeys(measured.models, None)
    made = Forecast(plan, measured, jobs_at_once=1)
    assert made.total.unknown == 2
    assert "?: 2 jobs could not be measured" in made.text()
    line = next(text for text in made.text().splitlines() if text.startswith("data_efficiency"))
    assert "?" in line


@pytest.mark.parametrize(
    ("seconds", "at_once", "expected"),
    [
        ([3.0, 3.0, 3.0], 1, 9.0),
        ([3.0, 3.0, 3.0], 2, 6.0),
        ([3.0, 3.0, 3.0], 5, 3.0),
        ([1.0, 5.0, 1.0], 2, 5.0),
        ([], 3, 0.0),
    ],
)
def test_wall_time(seconds: list[float], at_once: int, expected: float) -> None:
    assert wall_seconds([job(each) for each in seconds], at_once) == expected


def test_datasets_come_first_and_what_is_done_takes_no_time() -> None:
    jobs = [job(4.0), job(2.0, "datasets"), job(100.0, is_done=True), job(None)]
    assert wall_seconds(jobs, 8) == 6


def test_totals_of_nothing() -> None:
    row = added_up("nothing", [])
    assert (row.jobs, row.seconds, row.memory_gb) == (0, 0, 0)


def test_the_text_says_what_it_is_worth(tmp_path: Path) -> None:
    text = forecast(tmp_path, "tier=smoke", "constellations.training.epochs=300").text()
    assert "Measured on here (a processor, 4 cores), 2026-01-02" in text
    assert "up to a factor of 4.0" in text
    assert "≤" in text  # constellations stop early
    assert "core-h" in text
    assert "busy" not in text


def test_a_busy_machine_is_mentioned(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, *ONE_MODEL)
    measured = dataclasses.replace(some_measurements(plan), load=7.0)
    assert "busy (load 7.0)" in Forecast(plan, measured, jobs_at_once=1).text()


def test_measurements_are_kept_and_read_again(tmp_path: Path) -> None:
    made = forecast(tmp_path, "tier=smoke")
    write_json(tmp_path / "forecast.json", made.stored())
    again = Measurements.read(tmp_path / "forecast.json")
    assert again == made.measured
    again.require(list(made.measured.models), tmp_path / "forecast.json")


@pytest.mark.parametrize("content", ["{}", "[]", "no json", '{"measurements": {"models": [{}]}}'])
def test_a_file_without_measurements(tmp_path: Path, content: str) -> None:
    (tmp_path / "speeds.json").write_text(content)
    with pytest.raises(UserError, match="expected measurements"):
        Measurements.read(tmp_path / "speeds.json")


def test_a_gpu_is_needed_to_measure_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    plan = plan_of(tmp_path, *ONE_MODEL, "compute.device=cuda")
    with pytest.raises(UserError, match="expected a GPU to measure on"):
        measure_all(plan, 0.0)


def test_numbers_for_people() -> None:
    assert [duration(x) for x in (0.5, 30.0, 90.0, 5400.0, 1e6)] == [
        *("0.5 s", "30 s", "1.5 min", "1.5 h", "11.6 d")
    ]
    assert [hours(x) for x in (36.0, 7200.0, 1e7)] == ["0.01", "2.0", "2,778"]
    assert [size(x) for x in (500.0, 2e6, 3e9, 4e12)] == ["0.5 kB", "2.0 MB", "3.0 GB", "4.0 TB"]
    assert aligned([("a", "1"), ("bb", "10")]) == "a    1\nbb  10"
