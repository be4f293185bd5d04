"""No training step waits for the device, in any task, with any model of the paper's tables but two.

Those are SchNet and DimeNet++.
"""

from collections.abc import Callable
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import torch

from lietransformer import pairs as neighbourhood
from lietransformer.data.resident import ResidentExamples
from lietransformer.experiments.registry import get_preset, presets
from lietransformer.training import experiment as experiments
from lietransformer.training.cuda_graphs import Recorder
from lietransformer.training.experiment import Experiment
from lietransformer.training.multi_seed.stack import Stack
from lietransformer.training.run_folder import RunFolder
from lietransformer.training.state import RunState
from lietransformer.training.step import TrainingStep
from tests.training.recording import RecordingOnPaper
from tests.training.runs import settings
from tests.training.without_waiting import NoNewConstants, NoWaiting, Waited

META = torch.device("meta")
TASKS: dict[str, dict[str, Any]] = {
    "springs": {"n_train": 4, "batch_size": 4, "compile": False},
    "constellations": {"n_train": 6, "batch_size": 4},
    "qm9": {"n_train": 6, "batch_size": 4, "target": "homo"},
}
# Their lists of neighbours have as many rows as there are neighbours, which has to be known.
WAITING = {"SchNet", "DimeNet++"}
# Those of another size do the same.
MODELS = [
    (preset.task, preset.model)
    for preset in presets()
    if preset.model not in WAITING and not preset.model.endswith(" small")
]
AUGMENTATION = {"springs": "SE2", "constellations": "SE2", "qm9": "SO3"}


def small(task: str, model: str) -> dict[str, int]:
    """An architecture of that kind, narrow and of one layer."""
    names = {field.name for field in fields(get_preset(task, model).config)}
    sizes = {"width": 8, "layers": 1, "encoder_layers": 1, "decoder_layers": 1}
    return {name: size for name, size in sizes.items() if name in names}


@pytest.fixture
def on_meta(monkeypatch: pytest.MonkeyPatch) -> None:
    """Experiments on a device without numbers, which is treated as a GPU is."""
    monkeypatch.setattr(experiments, "_available", lambda _: META)
    monkeypatch.setattr(experiments, "resident", ResidentExamples)
    # Adam in one operation exists here, too, but asks first whether the device is a known one.
    adam = import_module("torch.optim.adam")
    monkeypatch.setattr(adam, "_device_dtype_check_for_fused", lambda *_, **__: None)


@pytest.fixture
def experiment_of(request: pytest.FixtureRequest, on_meta: None) -> Callable[..., Experiment]:  # noqa: ARG001
    """Makes an experiment of a task and a model, small unless it is said how large."""

    def made(task: str, model: str, **given: Any) -> Experiment:
        architecture = given.pop("architecture", None) or small(task, model)
        chosen = {"task": task, "model": model, "architecture": architecture, **TASKS[task]}
        data = request.getfixturevalue(f"{task}_file")
        return Experiment(
            settings(**{**chosen, **given}, data=data, threads=1, validation_examples=2)
        )

    return made


def do_steps(experiment: Experiment, recorder: Recorder | None) -> None:
    """An epoch, optimiser and all, none of which may wait."""
    optimiser = experiment.optimiser()
    assert isinstance(optimiser, torch.optim.Adam)
    step = TrainingStep(experiment, optimiser, recorder)
    with NoNewConstants(), NoWaiting() as mode:
        for number, batch in enumerate(experiment.batches(0)):
            loss = step(batch, number, 1e-3)
            assert loss.device == META
    assert optimiser.state  # it has moved parameters
    assert mode.sent > 0  # the numbers of the examples, if nothing else


@pytest.mark.parametrize(("task", "model"), MODELS)
def test_no_step_waits(task: str, model: str, experiment_of: Callable[..., Experiment]) -> None:
    do_steps(experiment_of(task, model), RecordingOnPaper())


@pytest.mark.parametrize("task", TASKS)
def test_no_step_that_is_not_recorded_waits(
    task: str, experiment_of: Callable[..., Experiment]
) -> None:
    """With random transformations of the data."""
    model = "LieTransformer-SE3" if task == "qm9" else "LieTransformer-SE2"
    do_steps(experiment_of(task, model, augmentation=AUGMENTATION[task]), None)


def test_no_step_of_a_batch_with_many_pairs_waits(
    experiment_of: Callable[..., Experiment],
) -> None:
    """More than are looked at at once; with a radius alone, whose largest ball nobody knows."""
    batch = 400
    architecture = {
        **{"width": 8, "layers": 1, "neighbourhood": {"radius": 0.5}},
        "lift": {"scheme": "random", "samples": 2},
    }
    experiment = experiment_of(
        *("constellations", "LieTransformer-SE2"),
        **{"architecture": architecture, "n_train": batch, "batch_size": batch},
    )
    elements = 2 * experiment.largest_batch().positions.shape[1]
    assert batch * elements**2 > neighbourhood._PAIRS_AT_ONCE
    do_steps(experiment, RecordingOnPaper())


@pytest.mark.parametrize(
    ("task", "model"),
    [
        ("springs", "LieTransformer-T2"),
        ("constellations", "LieTransformer-SE2"),
        ("constellations", "SetTransformer"),
        ("qm9", "LieTransformer-T3"),
        ("qm9", "LieTransformer-SE3"),
    ],
)
def test_no_step_of_several_seeds_waits(
    task: str, model: str, experiment_of: Callable[..., Experiment], tmp_path: Path
) -> None:
    states = []
    for seed in (0, 1):
        experiment = experiment_of(task, model, seed=seed)
        states.append(RunState(experiment, RunFolder(tmp_path / str(seed)), "", lambda: None))
        states[-1].restore()
    stack = Stack(states)
    with NoNewConstants(), NoWaiting():
        iterators = (state.experiment.batches(0) for state in states)
        for step, batches in enumerate(zip(*iterators, strict=True)):
            losses = stack.step(batches, step, 1e-3)
            assert losses.shape == (2,)
            assert losses.device == META


@pytest.mark.parametrize("model", sorted(WAITING))
def test_steps_of_models_with_lists_of_neighbours_wait(
    model: str, experiment_of: Callable[..., Experiment]
) -> None:
    """As it is said of them; if that were no longer so, it should not be said."""
    with pytest.raises((Waited, RuntimeError)):
        do_steps(experiment_of("qm9", model, batch_size=6), None)


@pytest.mark.parametrize(
    "waits",
    [
        lambda x: x.sum().item(),
        lambda x: bool(x.any()),
        lambda x: x[x > 0],
        lambda x: x.nonzero(),
        lambda x: x.masked_select(x > 0),
        lambda x: x + torch.tensor([1.0], device="meta"),
        lambda x: x + torch.asarray([1.0], device="meta"),
        lambda x: x + x.new_tensor([1.0]),
        lambda x: x[[0, 2]],
        lambda x: x + torch.ones(3).to("meta"),
        lambda x: x.copy_(torch.ones(3)),
    ],
)
def test_what_waits_is_seen(waits: Callable[[torch.Tensor], object]) -> None:
    x = torch.ones(3, device="meta")
    # Of the latter kind is also what torch says where there is no number to give.
    with pytest.raises((Waited, RuntimeError)), NoNewConstants(), NoWaiting():
        waits(x)
