"""Every model of the paper takes a step of training on real data of its task."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lietransformer.data.examples import ConstellationExamples, MoleculeExamples, SpringExamples
from lietransformer.data.reader import DatasetFile
from lietransformer.dynamics import (
    DirectDynamics,
    HamiltonianDynamics,
    LearntDynamics,
    PotentialDynamics,
    rollout,
)
from lietransformer.models import Preset, presets
from lietransformer.types import PointCloud
from tests.cases import seeded

DYNAMICS: dict[str, type[LearntDynamics]] = {
    "potential": PotentialDynamics,
    "hamiltonian": HamiltonianDynamics,
    "velocity": DirectDynamics,
}


def constellations_loss(model: nn.Module, file: DatasetFile) -> Tensor:
    batch = ConstellationExamples(file, "train").take(np.arange(4))
    logits = model(PointCloud(batch.positions, mask=batch.mask), generator=seeded())
    return F.cross_entropy(logits.unflatten(1, (4, 3)).flatten(0, 1), batch.counts.flatten())


def springs_loss(model: nn.Module, file: DatasetFile, predicts: str) -> Tensor:
    # In double precision, because a fresh potential is nearly flat and a small step changes little.
    batch = SpringExamples(file, "train", n_train=4, dtype=torch.float64).take(np.arange(4))
    field = DYNAMICS[predicts](model.double()).field(batch.masses, batch.stiffness)
    predicted = rollout(field, batch.states[:, 0], step=5 / 499, states=5)
    return F.mse_loss(predicted.transpose(0, 1), batch.states)


def qm9_loss(model: nn.Module, file: DatasetFile) -> Tensor:
    batch = MoleculeExamples(file, "train").take(np.arange(2))
    one_hot = (batch.charges[..., None] == torch.tensor([1, 6, 7, 8, 9])).float()
    charge = batch.charges[..., None] / 9
    features = torch.cat([one_hot, one_hot * charge, one_hot * charge**2], dim=-1)
    predicted = model(PointCloud(batch.positions, features, batch.mask), generator=seeded())
    return F.l1_loss(predicted[:, 0], batch.targets[:, 0] / 10)


@pytest.mark.parametrize("preset", presets(), ids=lambda p: f"{p.task} {p.model}")
def test_a_step_of_training_lowers_the_loss(preset: Preset, request: pytest.FixtureRequest) -> None:
    """A small step of Adam, on the same batch with the same random numbers."""
    name = {"constellations": "constellations_file", "springs": "springs_file", "qm9": "qm9_file"}
    file = DatasetFile(request.getfixturevalue(name[preset.task]), verify=False)
    model = preset.build(seed=0)

    def loss() -> Tensor:
        if preset.task == "constellations":
            return constellations_loss(model, file)
        if preset.task == "springs":
            return springs_loss(model, file, preset.predicts)
        return qm9_loss(model, file)

    optimiser = torch.optim.Adam(model.parameters(), lr=3e-5)
    before = loss()
    before.backward()
    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    assert all(gradient.isfinite().all() for gradient in gradients)
    assert any(gradient.any() for gradient in gradients)
    optimiser.step()
    with torch.no_grad():
        after = loss()
    assert after < before
