"""An optimiser that goes on has its learning rate where the steps of this session read it."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from lietransformer.interruption import Interrupted
from lietransformer.training import loop, optimiser
from lietransformer.training.experiment import Experiment
from lietransformer.training.loop import Run
from lietransformer.training.run_folder import RunFolder, load, save
from lietransformer.training.step import TrainingStep
from tests.training.recording import RecordingOnPaper
from tests.training.runs import After, numbers, tiny


def adam(device: str, rate: float, *, is_tensor: bool) -> torch.optim.Adam:
    parameter = torch.nn.Parameter(torch.ones(3, device=device))
    made = torch.optim.Adam([parameter], lr=rate, fused=True, capturable=is_tensor)
    if is_tensor:  # given later, because no number can be checked on the device `meta`
        made.param_groups[0]["lr"] = torch.tensor(rate, device=device)
    return made


def stored_after_a_step(file: Path, *, is_tensor: bool) -> dict[str, Any]:
    """As a checkpoint has it: read to the memory of the CPU, wherever it was written."""
    before = adam("cpu", 0.125, is_tensor=is_tensor)
    (parameter,) = before.param_groups[0]["params"]
    parameter.grad = torch.ones_like(parameter)
    before.step()
    save(file, before.state_dict())
    stored: dict[str, Any] = load(file)
    return stored


@pytest.mark.parametrize("was_tensor", [True, False])
@pytest.mark.parametrize("is_tensor", [True, False])
@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_the_learning_rate_stays_beside_the_parameters(
    device: str, is_tensor: bool, was_tensor: bool, tmp_path: Path
) -> None:
    stored = stored_after_a_step(tmp_path / "stored.pt", is_tensor=was_tensor)
    after = adam(device, 1.0, is_tensor=is_tensor)
    optimiser.restore(after, stored)
    (group,) = after.param_groups
    assert group["capturable"] == is_tensor
    rate = group["lr"]
    assert isinstance(rate, Tensor) == is_tensor
    if not is_tensor or device == "cpu":
        assert rate == 0.125
    if is_tensor:
        assert rate.device.type == device
        optimiser.set_learning_rate(after, 0.25)
        assert group["lr"] is rate
    (parameter,) = group["params"]
    kept = after.state[parameter]
    assert {tensor.device.type for tensor in kept.values()} == {device}
    if device == "cpu":
        assert kept["step"] == 1
        assert torch.equal(kept["exp_avg"], stored["state"][0]["exp_avg"])


class AsAGraph(RecordingOnPaper):
    """Repeats with the learning rate of the recording: the tensor, or else the number."""

    optimiser: torch.optim.Optimizer

    def record(self, function: Callable[[], Tensor]) -> Callable[[], Tensor]:
        repeat = super().record(function)
        (group,) = self.optimiser.param_groups
        recorded = group["lr"]

        def repeat_as_recorded() -> Tensor:
            now, group["lr"] = group["lr"], recorded
            loss = repeat()
            group["lr"] = now
            return loss

        return repeat_as_recorded


def with_tensor(_: Experiment, parameters: Any) -> torch.optim.Optimizer:
    rate = torch.tensor(1e-3, dtype=torch.float64)  # as exact as the number of other sessions
    return torch.optim.Adam(parameters, lr=rate, fused=True, capturable=True)


@pytest.mark.parametrize("is_recorded_before", [True, False])
def test_a_run_that_goes_on_with_recorded_steps_follows_its_schedule(
    is_recorded_before: bool, tmp_path: Path, springs_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tiny(springs_file, epochs=10)
    Run(config, RunFolder(tmp_path / "whole")).execute()
    recorders: list[AsAGraph] = []

    def recorded(experiment: Experiment, own: torch.optim.Optimizer) -> TrainingStep:
        recorders.append(AsAGraph())
        recorders[-1].optimiser = own
        return TrainingStep(experiment, own, recorders[-1])

    def session(*, is_recorded: bool, looks: int = 10**9) -> None:
        with monkeypatch.context() as patch:
            if is_recorded:
                patch.setattr(Experiment, "optimiser_of", with_tensor)
                patch.setattr(loop, "TrainingStep", recorded)
            Run(config, RunFolder(tmp_path / "parts"), interruption=After(looks)).execute()

    with pytest.raises(Interrupted):
        session(is_recorded=is_recorded_before, looks=15)
    session(is_recorded=True)
    assert recorders[-1].repeated > recorders[-1].recorded > 0
    assert numbers(tmp_path / "parts") == numbers(tmp_path / "whole")


def test_the_average_of_the_weights_is_what_is_evaluated_and_kept(
    tmp_path: Path, springs_file: Path
) -> None:
    """w̄ ← 0.9·w̄ + 0.1·w after each step; training continues from w."""
    config = tiny(springs_file, ema=0.9, learning_rate=0.01)
    Run(config, RunFolder(tmp_path / "averaged")).execute()
    experiment = Experiment(config.model_copy(update={"ema": None}))
    adam = experiment.optimiser()
    average: dict[str, Tensor] = {}
    number = 0
    for epoch in range(config.epochs):
        for batch in experiment.batches(epoch):
            rate = 0.5 * (1 + math.cos(math.pi * epoch / config.epochs)) * config.learning_rate
            TrainingStep(experiment, adam)(batch, number, rate)
            number += 1
            for name, weight in experiment.model.state_dict().items():
                before = average.get(name, weight)
                average[name] = 0.9 * before + 0.1 * weight
    folder = RunFolder(tmp_path / "averaged")
    for name, weight in folder.weights("final").items():
        torch.testing.assert_close(weight, average[name])
        assert not torch.equal(weight, experiment.model.state_dict()[name])
    experiment.model.load_state_dict(folder.weights("final"))
    metrics = experiment.validate()
    recorded = folder.result()["final"]["validation/mse_arithmetic"]
    assert metrics["mse_arithmetic"] == pytest.approx(recorded, rel=1e-5)


def test_amsgrad_reaches_the_optimiser(springs_file: Path) -> None:
    for is_set in (True, False):
        made = Experiment(tiny(springs_file, amsgrad=is_set)).optimiser()
        assert made.param_groups[0]["amsgrad"] is is_set
