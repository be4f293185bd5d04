"""Measuring models."""

import json
from pathlib import Path

import pytest

from lietransformer.errors import UserError
from lietransformer.forecast import speed as module
from lietransformer.forecast.speed import measure_all
from lietransformer.forecast.workload import planned
from tests.forecast.sweeps import ONE_MODEL, plan_of, some_speed, subjects_of


def test_runs_that_are_equally_fast_are_measured_once(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, "tier=paper")
    subjects = [json.loads(each) for each in subjects_of(plan)]
    assert len(subjects) < len(plan.configurations) / 4
    molecules = [each for each in subjects if each["task"] == "qm9"]
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
    before = subjects_of(plan_of(tmp_path, *ONE_MODEL))
    assert before != subjects_of(plan_of(tmp_path, *ONE_MODEL, change))


@pytest.mark.slow
def test_a_measurement_is_cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan, cache = plan_of(tmp_path, *ONE_MODEL), tmp_path / "forecast.json"
    speeds = measure_all(plan, cache)
    (speed,) = speeds.values()
    assert min(speed.step, speed.validation, speed.test, speed.start, speed.gflops) > 0
    assert 0.05 < speed.memory_gb < 5
    run, _ = planned(plan, plan.configurations[0])
    parameters = run.preset().build(seed=0).parameters()
    assert speed.weight_bytes == 4 * sum(each.numel() for each in parameters)
    # Four steps of errors of energy, momentum and states, and the predicted positions.
    assert speed.test_bytes == 4 * 4 * (1 + 1 + 1 + 12)

    monkeypatch.setattr(module, "measure_apart", lambda *_: some_speed())
    assert measure_all(plan, cache) == speeds
    monkeypatch.setattr(module, "git_commit", lambda: "another")
    assert [*measure_all(plan, cache).values()] == [some_speed()]


@pytest.mark.parametrize("content", ["no json", "[]", "{}", '{"git_commit": null}'])
def test_a_damaged_cache_is_replaced(
    content: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "forecast.json"
    cache.write_text(content)
    monkeypatch.setattr(module, "git_commit", lambda: None)
    monkeypatch.setattr(module, "measure_apart", lambda *_: some_speed())
    measure_all(plan_of(tmp_path, *ONE_MODEL), cache)
    assert len(json.loads(cache.read_text())["speeds"]) == 1


def test_a_model_that_cannot_be_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(module, "_generate", lambda *_: None)
    with pytest.raises(UserError, match=r"Fully-connected \(direct\) could not be measured"):
        measure_all(plan_of(tmp_path, *ONE_MODEL), tmp_path / "forecast.json")
    assert "springs-" in capfd.readouterr().err


def test_a_gpu_is_needed_to_measure_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    plan = plan_of(tmp_path, *ONE_MODEL, "compute.device=cuda")
    with pytest.raises(UserError, match="no GPU to measure on"):
        measure_all(plan, tmp_path / "forecast.json")
