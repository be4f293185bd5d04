"""Several seeds at once have the numbers of separate runs, to rounding, and go on as they do."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import torch

from lietransformer.cli import main
from lietransformer.interruption import Interrupted
from lietransformer.training.config import RunConfig
from lietransformer.training.experiment import Experiment
from lietransformer.training.loop import Run
from lietransformer.training.multi_seed.conditions import reason_against
from lietransformer.training.multi_seed.engine import OneRun, RunsAtOnce, group_runs
from lietransformer.training.multi_seed.stack import Stack
from lietransformer.training.run_folder import RunFolder, load
from tests.training.recording import RecordingOnPaper
from tests.training.runs import (
    After,
    command,
    constellations,
    numbers,
    settings,
    tiny,
    weights_are_finite,
)

SEEDS = (0, 1, 5)
SMALL = {"width": 8, "layers": 1, "heads": 2}
MOLECULES: dict[str, Any] = {
    **{"task": "qm9", "model": "LieTransformer-T3", "target": "homo", "threads": 1},
    **{"architecture": {**SMALL, "neighbourhood": {"ball": 30, "samples": 17}}},
    **{"n_train": 24, "batch_size": 8, "epochs": 2, "evaluation_batch_size": 10},
    **{"validation_examples": 10, "test_examples": 10, "augmentation": "SO3"},
}


Settings = Callable[[int], RunConfig]


def at_once(
    configs: Settings, path: Path, seeds: tuple[int, ...] = SEEDS, **options: Any
) -> list[dict[str, Any]]:
    runs = [Run(configs(seed), RunFolder(path / f"seed-{seed}"), **options) for seed in seeds]
    return RunsAtOnce(runs).execute()


def apart(configs: Settings, path: Path, seeds: tuple[int, ...] = SEEDS) -> None:
    for seed in seeds:
        Run(configs(seed), RunFolder(path / f"seed-{seed}")).execute()


def assert_close(found: Path, expected: Path, rtol: float) -> None:
    """All numbers of two runs, to rounding."""
    ours, theirs = numbers(found), numbers(expected)
    assert ours["result"].keys() == theirs["result"].keys()
    for name in ("status", "steps", "epochs", "stopped_early", "n_train", "seed", "hash"):
        assert ours["result"].get(name) == theirs["result"].get(name), name
    assert len(ours["records"]) == len(theirs["records"])
    for after, before in zip(ours["records"], theirs["records"], strict=True):
        assert after == pytest.approx(before, rel=rtol)
    for which, tests in theirs["result"]["test"].items():
        for name, metrics in tests.items():
            assert ours["result"]["test"][which][name] == pytest.approx(metrics, rel=rtol)
    weights = (load(path / "model.pt") for path in (found, expected))
    torch.testing.assert_close(*weights, rtol=rtol, atol=1e-12)
    if (expected / "evaluation.h5").exists():
        with (
            h5py.File(found / "evaluation.h5") as one,
            h5py.File(expected / "evaluation.h5") as two,
        ):
            for name in ("best/test/squared", "final/test_long/positions"):
                np.testing.assert_allclose(one[name][:], two[name][:], rtol=1e-5)


# Two epochs of two batches, the second of which is not full.
FEW: dict[str, Any] = {"n_train": 7, "batch_size": 4, "epochs": 2, "evaluations": 2}


def springs(data: Path, **changes: Any) -> Settings:
    """A very small model, if no other is asked for."""
    return lambda seed: tiny(data, **{**FEW, "seed": seed, **changes})


@pytest.mark.slow
@pytest.mark.parametrize("model", ["LieTransformer-T2", "LieConv-T2"])
def test_springs(tmp_path: Path, springs_file: Path, model: str) -> None:
    architecture = SMALL if "Transformer" in model else {"width": 8, "layers": 1}
    configs = springs(
        springs_file,
        **{"model": model, "architecture": architecture, "precision": "float64"},
        augmentation="SE2",
    )
    apart(configs, tmp_path / "apart")
    results = at_once(configs, tmp_path / "at once")
    assert [result["seed"] for result in results] == list(SEEDS)
    for seed in SEEDS:
        ours, theirs = (tmp_path / how / f"seed-{seed}" for how in ("at once", "apart"))
        assert_close(ours, theirs, rtol=1e-8)
        assert {path.name for path in ours.iterdir()} == {path.name for path in theirs.iterdir()}
    assert {path.name for path in (tmp_path / "at once").iterdir()} == {
        f"seed-{seed}" for seed in SEEDS
    }


@pytest.mark.parametrize("model", ["LieTransformer-SE2", "SetTransformer"])
def test_constellations(tmp_path: Path, constellations_file: Path, model: str) -> None:
    """Batches of different width, with a lift sample for each point."""
    architecture = (
        SMALL
        if "Lie" in model
        else {"width": 8, "heads": 2, "encoder_layers": 1, "decoder_layers": 1}
    )

    def configs(seed: int) -> RunConfig:
        return constellations(
            constellations_file,
            **{"model": model, "architecture": architecture, "seed": seed, "n_train": 40},
            **{"batch_size": 16, "epochs": 2, "precision": "float64", "augmentation": "SE2"},
        )

    apart(configs, tmp_path / "apart")
    at_once(configs, tmp_path / "at once")
    for seed in SEEDS:
        folder = f"seed-{seed}"
        assert_close(tmp_path / "at once" / folder, tmp_path / "apart" / folder, rtol=1e-9)


@pytest.mark.parametrize(
    ("model", "neighbourhood"),
    [
        ("LieTransformer-T3", {"ball": 30, "samples": 17}),  # which a small batch does not need
        ("LieTransformer-SE3", {"ball": 12, "samples": 8}),
    ],
)
def test_molecules(
    tmp_path: Path, qm9_file: Path, model: str, neighbourhood: dict[str, int]
) -> None:
    """Of different size, with lift samples and samples of neighbours."""

    def configs(seed: int) -> RunConfig:
        given = {**MOLECULES, "model": model, "data": qm9_file, "seed": seed}
        architecture = {**SMALL, "neighbourhood": neighbourhood}
        return settings(**{**given, "architecture": architecture}, precision="float64")

    experiment = Experiment(configs(0))
    assert reason_against(experiment) is None
    widths = {batch.positions.shape[1] for batch in experiment.batches(0)}
    assert len(widths) > 1

    apart(configs, tmp_path / "apart")
    at_once(configs, tmp_path / "at once")
    for seed in SEEDS:
        folder = f"seed-{seed}"
        assert_close(tmp_path / "at once" / folder, tmp_path / "apart" / folder, rtol=1e-8)


# ---- what happens to one of them, with a model that takes no time


def all_numbers(path: Path) -> dict[int, Any]:
    return {seed: numbers(path / f"seed-{seed}") for seed in SEEDS}


@pytest.mark.slow
def test_stopped_anywhere(tmp_path: Path, springs_file: Path) -> None:
    """Before steps, in evaluations and in tests: the same numbers as without a stop, to the bit."""
    configs = springs(springs_file)
    at_once(configs, tmp_path / "undisturbed")
    undisturbed = all_numbers(tmp_path / "undisturbed")
    stops = 0
    while True:
        path = tmp_path / str(stops)
        try:
            at_once(configs, path, interruption=After(13 * stops))
        except Interrupted:
            results = at_once(configs, path)
            assert {result["sessions"] for result in results} == {2}
            assert all_numbers(path) == undisturbed
            stops += 1
        else:
            break
    assert stops > 3


def test_a_run_can_go_on_alone_and_in_company(tmp_path: Path, springs_file: Path) -> None:
    """What is kept of a run is the same in either case."""
    configs = springs(springs_file, precision="float64")
    apart(configs, tmp_path / "apart")
    with pytest.raises(Interrupted):
        at_once(configs, tmp_path / "mixed", interruption=After(2))
    apart(configs, tmp_path / "mixed", SEEDS[:1])
    results = at_once(configs, tmp_path / "mixed")
    assert [result["sessions"] for result in results] == [2, 2, 2]
    for seed in SEEDS:
        folder = f"seed-{seed}"
        assert_close(tmp_path / "mixed" / folder, tmp_path / "apart" / folder, rtol=1e-9)


def test_one_that_was_left_behind_catches_up(tmp_path: Path, springs_file: Path) -> None:
    """As after a kill between the writing of two checkpoints: the same numbers, to the bit."""
    configs = springs(springs_file, epochs=4)
    at_once(configs, tmp_path / "undisturbed")
    path = tmp_path / "killed"
    with pytest.raises(Interrupted):
        at_once(configs, path, interruption=After(1))
    (checkpoint,) = (path / ".resume" / "seed-1").glob("*.pt")
    old = checkpoint.read_bytes()
    with pytest.raises(Interrupted):
        at_once(configs, path, interruption=After(15))
    assert load(checkpoint)["progress"]["step"] > 2
    checkpoint.write_bytes(old)
    assert load(checkpoint)["progress"]["step"] == 1
    at_once(configs, path)
    found, expected = all_numbers(path), all_numbers(tmp_path / "undisturbed")
    assert found == expected


def test_each_has_its_own_patience(
    tmp_path: Path, springs_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seed 1 gets no better after its first evaluation; the others always do."""
    validate = Experiment.validate

    def scored(self: Experiment) -> dict[str, float]:
        metrics = validate(self)
        scores = self.__dict__.setdefault("scores", [])
        scores.append(1.0 / (1 + (0 if self.config.seed == 1 else len(scores))))
        return {**metrics, self.task.selection: scores[-1]}

    monkeypatch.setattr(Experiment, "validate", scored)
    configs = springs(springs_file, precision="float64", epochs=5, evaluations=5, patience=2)
    apart(configs, tmp_path / "apart")
    results = at_once(configs, tmp_path / "at once")
    assert [result["epochs"] for result in results] == [5, 3, 5]
    assert [result["stopped_early"] for result in results] == [False, True, False]
    for seed in SEEDS:
        folder = f"seed-{seed}"
        assert_close(tmp_path / "at once" / folder, tmp_path / "apart" / folder, rtol=1e-9)


@pytest.mark.parametrize("noticed", ["in training", "in evaluation"])
def test_one_that_diverges_harms_no_other(
    tmp_path: Path, springs_file: Path, monkeypatch: pytest.MonkeyPatch, noticed: str
) -> None:
    configs = springs(springs_file, precision="float64", epochs=3, evaluations=3)
    apart(configs, tmp_path / "apart")
    step = Stack.step
    poisoned_at = 2 if noticed == "in training" else 3  # after which there is an evaluation

    def poisoning(self: Stack, batches: Any, number: int, learning_rate: float) -> Any:
        losses = step(self, batches, number, learning_rate)
        if number == poisoned_at:
            for parameter in self._parameters.values():
                parameter.data[1] = torch.nan
        return losses

    monkeypatch.setattr(Stack, "step", poisoning)
    results = at_once(configs, tmp_path / "at once")
    assert [result["status"] for result in results] == ["finished", "diverged", "finished"]
    assert results[1]["diverged"]["step"] == poisoned_at + 1
    assert weights_are_finite(tmp_path / "at once" / "seed-1")
    for seed in (0, 5):
        folder = f"seed-{seed}"
        assert_close(tmp_path / "at once" / folder, tmp_path / "apart" / folder, rtol=1e-9)


def test_recorded_steps_of_a_stack_are_the_same(tmp_path: Path, springs_file: Path) -> None:
    configs = springs(springs_file, epochs=6)
    at_once(configs, tmp_path / "plain")
    recorder = RecordingOnPaper()
    runs = [Run(configs(seed), RunFolder(tmp_path / "recorded" / f"seed-{seed}")) for seed in SEEDS]
    RunsAtOnce(runs, recorder).execute()
    assert all_numbers(tmp_path / "recorded") == all_numbers(tmp_path / "plain")
    assert recorder.repeated > recorder.recorded > 0


# ---- which runs are trained at once


def test_models_that_cannot_be_stacked(qm9_file: Path, springs_file: Path) -> None:
    small = {"width": 8, "layers": 1}
    molecules = {**MOLECULES, "data": qm9_file, "architecture": small}
    many_parts = {**MOLECULES, "data": qm9_file, "n_train": 3000, "batch_size": 3000}
    some_balls = {**SMALL, "neighbourhood": {"ball": 20, "samples": 17}}
    random_lift = {"lift": {"scheme": "random", "samples": 2}, **SMALL}
    for config, reason in (
        (settings(**{**molecules, "model": "LieConv-T3"}), "learns averages"),
        (settings(**{**molecules, "model": "LieConv-SE3"}), "learns averages"),
        (settings(**many_parts), "several parts"),
        (tiny(springs_file, precision="bf16"), "in bf16"),
        (settings(**{**molecules, "architecture": some_balls}), "in another order"),
        (
            tiny(springs_file, model="LieTransformer-SE2", architecture=random_lift),
            "for each trajectory",
        ),
    ):
        assert reason in str(reason_against(Experiment(config)))
    assert reason_against(Experiment(settings(**MOLECULES, data=qm9_file))) is None


def test_specialists_cannot_be_stacked(qm9_file: Path) -> None:
    given = {**MOLECULES, "data": qm9_file, "architecture": {}, "model": "SchNet"}
    assert "depends on numbers" in str(reason_against(Experiment(settings(**given))))


def test_when_runs_are_trained_at_once(
    springs_file: Path, qm9_file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def groups(config: RunConfig, at_once: Any, count: int = 2) -> list[type]:
        runs = [Run(config, RunFolder(Path(str(number)))) for number in range(count)]
        return [type(group) for group in group_runs(runs, at_once)]

    config = tiny(springs_file)
    assert groups(config, "auto") == [OneRun, OneRun]  # a CPU gains nothing
    assert groups(config, "false") == [OneRun, OneRun]
    assert groups(config, "true") == [RunsAtOnce]
    assert groups(config, "true", count=1) == [OneRun]
    caplog.set_level("INFO", logger="lietransformer")
    given = {**MOLECULES, "data": qm9_file, "model": "LieConv-T3"}
    config = settings(**{**given, "architecture": {"width": 8, "layers": 1}})
    assert groups(config, "true") == [OneRun, OneRun]
    assert "one after the other: LieConv-T3 learns averages" in caplog.text


def test_the_command(tmp_path: Path, springs_file: Path) -> None:
    for how in ("true", "false"):
        arguments = command(springs_file, tmp_path / how, "--seeds-at-once", how, seeds=[0, 1, 5])
        assert main([*arguments, "--precision", "float64"]) == 0
    for seed in SEEDS:
        folder = f"seed-{seed}"
        assert_close(tmp_path / "true" / folder, tmp_path / "false" / folder, rtol=1e-9)
