"""Measuring a model."""

import json
from pathlib import Path
from typing import Any

import pytest

from lietransformer.experiments.constellations import dataset as constellations
from lietransformer.experiments.registry import TaskName
from lietransformer.experiments.springs import dataset as springs
from lietransformer.forecast.datasets import (
    examples,
    expected_bytes,
    generator_settings,
    measure_dataset,
)
from lietransformer.forecast.estimate import subject_of
from lietransformer.forecast.measuring import subjects_of
from lietransformer.forecast.speed import MeasurementFailed, Subject, measure_apart
from tests.forecast.sweeps import ONE_MODEL, plan_of, some_speed


def test_runs_that_are_equally_fast_are_measured_once(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, "tier=paper")
    subjects = subjects_of(plan, "cpu")
    assert len(subjects) < len(plan.configurations) / 4
    molecules = [subject for subject, task in subjects.items() if task == "qm9"]
    assert len(molecules) == len(plan.config.qm9.models)  # whatever target and augmentation


@pytest.mark.parametrize(
    "change",
    [
        "springs.by_model={Fully-connected (direct): {architecture: {width: 9, layers: 1}}}",
        "springs.training.batch_size=3",
        "compute.threads=2",
        "compute.precision=float64",
        "springs.training.test_examples=3",
    ],
)
def test_what_matters_is_measured_again(tmp_path: Path, change: str) -> None:
    (before,) = subjects_of(plan_of(tmp_path, *ONE_MODEL), "cpu")
    (after,) = subjects_of(plan_of(tmp_path, *ONE_MODEL, change), "cpu")
    assert before != after


def test_a_measurement(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, *ONE_MODEL)
    settings = generator_settings(plan.datasets["springs"])
    path, _ = measure_dataset("springs", settings, tmp_path, largest_batch=10)
    subject, run, _ = subject_of(plan, plan.configurations[0], "cpu")
    speed = measure_apart(subject, path, seconds=0.0)
    assert speed.steps == 3
    assert 0 < speed.fastest <= speed.step <= speed.slowest
    assert min(speed.validation, speed.test, speed.preparation, speed.gflops) > 0
    assert speed.clock == "cpu"
    assert speed.gpu_memory_gb is None
    assert 0.05 < speed.memory_gb < 5
    assert speed.parameters == sum(
        parameter.numel() for parameter in run.preset().build(seed=0).parameters()
    )
    # Four steps of five numbers: two errors of energy and momentum, one of states, positions.
    assert speed.test_bytes == 4 * 4 * (1 + 1 + 1 + 12)
    assert speed.machine["host"]


def test_several_threads_are_timed_by_the_clock(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, *ONE_MODEL, "compute.threads=2")
    settings = generator_settings(plan.datasets["springs"])
    path, _ = measure_dataset("springs", settings, tmp_path, largest_batch=10)
    (subject,) = subjects_of(plan, "cpu")
    speed = measure_apart(subject, path, seconds=0.0)
    assert speed.clock == "wall"
    assert speed.step > 0


def test_a_model_that_cannot_be_measured(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (subject,) = subjects_of(plan_of(tmp_path, *ONE_MODEL), "cpu")
    with pytest.raises(MeasurementFailed, match="exit code 1"):
        measure_apart(subject, tmp_path / "none.h5", seconds=0.0)
    assert "none.h5" in capfd.readouterr().err


def test_a_faster_machine_is_faster_in_proportion() -> None:
    speed = some_speed(step=2.0, gflops=50.0).scaled(200.0)
    assert (speed.step, speed.preparation, speed.gflops) == (0.5, 2.5, 200.0)
    assert speed.memory_gb == some_speed().memory_gb


def test_names_for_people() -> None:
    settings = {"task": "springs", "model": "M", "batch_size": 5, "compile": True, "device": "cpu"}
    assert Subject(json.dumps(settings), 1, 1).name == "M on springs, batches of 5, compiled"


@pytest.mark.parametrize(
    ("task", "settings"),
    [
        ("springs", "springs.data={systems: 900, validation: 40, test: 150}"),
        ("constellations", "constellations.data={train: 500, validation: 130, test: 170}"),
    ],
)
def test_the_size_of_a_dataset_is_known_beforehand(
    task: TaskName, settings: str, tmp_path: Path
) -> None:
    plan = plan_of(tmp_path, "tier=smoke", settings)
    config = generator_settings(plan.datasets[task])
    path, speed = measure_dataset(task, config, tmp_path, largest_batch=1)
    expected = expected_bytes(config, speed)
    assert speed.seconds > 0
    generators: dict[TaskName, Any] = {"springs": springs, "constellations": constellations}
    generators[task].generate(config, tmp_path / "real.h5")
    real = (tmp_path / "real.h5").stat().st_size
    assert expected == pytest.approx(real, rel=0.2)
    assert path.stat().st_size < real
    assert examples(config) == {"springs": 900, "constellations": 800}[task]
