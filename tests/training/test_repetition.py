"""A step that is recorded and repeated computes what it would have computed anyway."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from lietransformer.rng import Drawn, Listener, integers, normal, stream, uniform
from lietransformer.training.config import RunConfig
from lietransformer.training.experiment import Experiment
from lietransformer.training.random_buffers import DrawingAhead, enlarged
from lietransformer.training.step import TrainingStep
from tests.training.recording import RecordingOnPaper
from tests.training.runs import constellations, settings, tiny

MOLECULES = {
    **{"task": "qm9", "model": "LieTransformer-SE3", "target": "homo", "threads": 1},
    **{"architecture": {"width": 8, "layers": 1}, "n_train": 16, "batch_size": 8},
    **{"validation_examples": 2, "test_examples": 2},
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "model"),
    [
        ("springs", "Fully-connected (direct)"),
        ("constellations", "LieTransformer-SE2"),
        ("qm9", "LieTransformer-SE3"),
        # Samples 25 neighbours, and so nothing at all in molecules of fewer atoms.
        ("qm9", "LieTransformer-T3"),
    ],
)
def test_repeated_steps_are_the_same_steps(
    task: str, model: str, request: pytest.FixtureRequest
) -> None:
    data: Path = request.getfixturevalue(f"{task}_file")
    config: RunConfig
    if task == "springs":
        config = tiny(data)
    elif task == "constellations":
        config = constellations(data, n_train=60, batch_size=8)
    else:
        config = settings(**{**MOLECULES, "model": model}, data=data)
    assert config.model == model
    recorder = RecordingOnPaper()
    states = []
    for each in (None, recorder):
        experiment = Experiment(config)
        step = TrainingStep(experiment, experiment.optimiser(), each)
        number = 0
        losses = []
        for epoch in range(12):
            for batch in experiment.batches(epoch):
                losses.append(step(batch, number, 1e-3 / (1 + epoch)))
                number += 1
        states.append((torch.stack(losses), experiment.model.state_dict()))
    (losses_before, before), (losses_after, after) = states
    torch.testing.assert_close(losses_after, losses_before, rtol=0, atol=0)
    torch.testing.assert_close(after, before, rtol=0, atol=0)
    assert recorder.computed + recorder.repeated == number
    assert 0 < recorder.recorded < recorder.repeated


def test_steps_that_cannot_be_recorded_are_done_nevertheless(
    springs_file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(RecordingOnPaper):
        def record(self, function: Callable[[], Tensor]) -> Callable[[], Tensor]:  # noqa: ARG002
            self.recorded += 1
            raise RuntimeError("operation not permitted when stream is capturing")

    recorder = Broken()
    states = []
    for each in (None, recorder):
        experiment = Experiment(tiny(springs_file, n_train=5))
        step = TrainingStep(experiment, experiment.optimiser(), each)
        for number in range(6):
            step(next(experiment.batches(number)), number, 1e-3)
        states.append(experiment.model.state_dict())
    torch.testing.assert_close(*states, rtol=0, atol=0)
    assert (recorder.recorded, recorder.computed) == (1, 6)
    assert "not permitted when stream is capturing" in caplog.text


def test_what_is_drawn_ahead_is_what_would_have_been_drawn(qm9_file: Path) -> None:
    """A lift of each atom and a sample of its neighbours, in the order of asking."""
    experiment = Experiment(settings(**MOLECULES, data=qm9_file))
    drawing = DrawingAhead(experiment.task, experiment.predictor)
    batch = next(experiment.batches(0))
    requests = drawing.requests(batch)
    atoms = batch.positions.shape[1]
    assert [request.kind for request in requests] == ["normal", "uniform"]
    assert requests[0].shape[:3] == (8, atoms, 2)
    assert requests[1].shape[:2] == (8, 2 * atoms)
    inputs = drawing.inputs(batch, stream(0, "train", 5), experiment.device)
    ahead = experiment.loss_with(batch, Drawn(inputs.values()))
    assert torch.equal(ahead, experiment.loss(batch, 5))
    assert not torch.equal(ahead, experiment.loss(batch, 6))


def test_a_listener_hears_all_kinds_of_requests() -> None:
    listener = Listener()
    how: dict[str, Any] = {"dtype": torch.float64, "device": "cpu"}
    uniform(2, generator=listener, **how)
    normal(3, 4, generator=listener, **how)
    integers(7, 5, generator=listener, device="cpu")
    generator, again = stream(1), stream(1)
    drawn = [request.draw(generator) for request in listener.requests]
    assert torch.equal(drawn[0], uniform(2, generator=again, **how))
    assert torch.equal(drawn[1], normal(3, 4, generator=again, **how))
    assert torch.equal(drawn[2], integers(7, 5, generator=again, device="cpu"))


def test_enlarged() -> None:
    tensor = torch.arange(6.0).reshape(2, 3)
    larger = enlarged(tensor, (3, 5))
    assert torch.equal(larger[:2, :3], tensor)
    assert larger.shape == (3, 5)
    assert larger.sum() == tensor.sum()
