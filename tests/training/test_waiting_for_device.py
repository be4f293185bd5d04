"""No training step waits for the device, in any task, with any model of the paper's tables."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from lietransformer.data.resident import ResidentExamples
from lietransformer.training import experiment as experiments
from lietransformer.training.experiment import Experiment
from lietransformer.training.run_folder import RunFolder
from lietransformer.training.stack import Stack
from lietransformer.training.state import RunState
from tests.training.runs import settings
from tests.training.without_waiting import NoNewConstants, NoWaiting, Waited

META = torch.device("meta")
SMALL = {"width": 8, "layers": 1}
SPRINGS = {"task": "springs", "n_train": 4, "batch_size": 4, "compile": False, "threads": 1}
CONSTELLATIONS = {"task": "constellations", "n_train": 6, "batch_size": 4, "threads": 1}
QM9 = {"task": "qm9", "n_train": 6, "batch_size": 4, "target": "homo", "threads": 1}
STEPS: dict[str, dict[str, Any]] = {
    "springs T2": {**SPRINGS, "model": "LieTransformer-T2"},
    "springs SE2": {**SPRINGS, "model": "LieTransformer-SE2", "augmentation": "SE2"},
    "springs LieConv": {**SPRINGS, "model": "LieConv-SE2"},
    "springs graph": {**SPRINGS, "model": "Graph network (Hamiltonian)"},
    "constellations T2": {**CONSTELLATIONS, "model": "LieTransformer-T2"},
    "constellations SE2": {
        **CONSTELLATIONS,
        **{"model": "LieTransformer-SE2", "augmentation": "SE2"},
    },
    "qm9 T3": {**QM9, "model": "LieTransformer-T3"},
    "qm9 SE3": {**QM9, "model": "LieTransformer-SE3", "augmentation": "SO3"},
    "qm9 LieConv T3": {**QM9, "model": "LieConv-T3"},
    "qm9 LieConv SE3": {**QM9, "model": "LieConv-SE3"},
}


@pytest.fixture
def on_meta(monkeypatch: pytest.MonkeyPatch) -> None:
    """Experiments on a device without numbers, which is treated as a GPU is."""
    monkeypatch.setattr(experiments, "_available", lambda _: META)
    monkeypatch.setattr(experiments, "resident", ResidentExamples)


@pytest.mark.usefixtures("on_meta")
@pytest.mark.parametrize("name", STEPS)
def test_no_step_waits(
    name: str, springs_file: Path, constellations_file: Path, qm9_file: Path
) -> None:
    files = {"springs": springs_file, "constellations": constellations_file, "qm9": qm9_file}
    given = STEPS[name]
    architecture = {} if "graph" in name else SMALL
    config = settings(
        **{**given, "architecture": architecture, "data": files[given["task"]]},
        validation_examples=2,
    )
    experiment = Experiment(config)
    with NoNewConstants(), NoWaiting() as mode:
        for step, batch in enumerate(experiment.batches(0)):
            loss = experiment.loss(batch, step)
            assert loss.device == META
            loss.backward()
    assert any(parameter.grad is not None for parameter in experiment.model.parameters())
    assert mode.sent > 0  # the numbers of the examples, if nothing else


@pytest.mark.usefixtures("on_meta")
@pytest.mark.parametrize("name", ["springs T2", "constellations SE2", "qm9 SE3"])
def test_no_step_of_several_seeds_waits(
    name: str, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Adam in one operation does not exist on this device; on a GPU it waits for nothing.
    monkeypatch.setattr(Experiment, "optimiser_of", lambda _, tensors: torch.optim.SGD(tensors))
    given = {**STEPS[name], "architecture": SMALL, "validation_examples": 2}
    data = request.getfixturevalue(f"{given['task']}_file")
    states = []
    for seed in (0, 1):
        experiment = Experiment(settings(**given, data=data, seed=seed))
        states.append(RunState(experiment, RunFolder(tmp_path / str(seed)), "", lambda: None))
        states[-1].restore()
    stack = Stack(states)
    with NoNewConstants(), NoWaiting():
        iterators = (state.experiment.batches(0) for state in states)
        for step, batches in enumerate(zip(*iterators, strict=True)):
            losses = stack.step(batches, step, 1e-3)
            assert losses.shape == (2,)
            assert losses.device == META


@pytest.mark.parametrize(
    "waits",
    [
        lambda x: x.sum().item(),
        lambda x: bool(x.any()),
        lambda x: x[x > 0],
        lambda x: x.nonzero(),
        lambda x: x.masked_select(x > 0),
        lambda x: x + torch.tensor([1.0], device="meta"),
        lambda x: x + torch.ones(3).to("meta"),
        lambda x: x.copy_(torch.ones(3)),
    ],
)
def test_what_waits_is_seen(waits: Callable[[torch.Tensor], object]) -> None:
    x = torch.ones(3, device="meta")
    # Of the latter kind is also what torch says where there is no number to give.
    with pytest.raises((Waited, RuntimeError)), NoNewConstants(), NoWaiting():
        waits(x)
