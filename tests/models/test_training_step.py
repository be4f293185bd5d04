"""Every model of the paper takes a step of training on real data of its task."""

from typing import Any

import numpy as np
import pytest
import torch

from lietransformer.data.reader import DatasetFile
from lietransformer.experiments.constellations.examples import ConstellationExamples
from lietransformer.experiments.constellations.task import ConstellationsTask
from lietransformer.experiments.preset import Preset
from lietransformer.experiments.qm9.examples import MoleculeExamples
from lietransformer.experiments.qm9.task import QM9Task
from lietransformer.experiments.registry import presets
from lietransformer.experiments.springs.examples import SpringExamples
from lietransformer.experiments.springs.task import SpringsTask
from lietransformer.experiments.task import Task
from tests.cases import seeded


def task_and_batch(preset: Preset, file: DatasetFile) -> tuple[Task[Any], Any]:
    if preset.task == "constellations":
        return ConstellationsTask(), ConstellationExamples(file, "train").take(np.arange(4))
    if preset.task == "springs":
        # In double precision: a fresh potential is nearly flat, and a small step changes little.
        examples = SpringExamples(file, "train", n_train=4, dtype=torch.float64)
        assert preset.predicts in ("potential", "hamiltonian", "velocity")
        return SpringsTask(preset.predicts, step=5 / 499), examples.take(np.arange(4))
    return QM9Task("alpha", file), MoleculeExamples(file, "train").take(np.arange(2))


@pytest.mark.parametrize("preset", presets(), ids=lambda p: f"{p.task} {p.model}")
def test_a_step_of_training_lowers_the_loss(preset: Preset, request: pytest.FixtureRequest) -> None:
    """A small step of Adam, on the same batch with the same random numbers."""
    file = DatasetFile(request.getfixturevalue(f"{preset.task}_file"), verify=False)
    task, batch = task_and_batch(preset, file)
    model = preset.build(seed=0).to(torch.float64 if preset.task == "springs" else torch.float32)
    predictor = task.predictor(model)
    generator_of = seeded if getattr(model, "is_random", False) else lambda: None
    # The more parameters move at once, the less each of them may.
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-6 if preset.task == "qm9" else 3e-5)
    buffers = {name: buffer.clone() for name, buffer in model.named_buffers()}
    before = task.loss(predictor, batch, generator=generator_of())
    before.backward()
    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    assert all(gradient.isfinite().all() for gradient in gradients)
    assert any(gradient.any() for gradient in gradients)
    optimiser.step()
    with torch.no_grad():
        # LieConv adapts the radius of its balls in every forward pass: compare at the same radius.
        for name, buffer in model.named_buffers():
            buffer.copy_(buffers[name])
        after = task.loss(predictor, batch, generator=generator_of())
    assert after < before
