"""QM9: features, standardisation and errors in the table's unit."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from lietransformer.clouds import PointCloud
from lietransformer.data.loader import Loader
from lietransformer.data.reader import DatasetFile
from lietransformer.errors import UserError
from lietransformer.experiments.qm9.examples import MoleculeExamples
from lietransformer.experiments.qm9.task import QM9Task, element_features


def test_features_of_an_atom() -> None:
    """Water, padded: one-hot times 1, c and c² with c = charge / 9."""
    features = element_features(torch.tensor([[8, 1, 0]]))
    oxygen, hydrogen, padding = features[0]
    c = 8 / 9
    expected = [0, 0, 0, 1, 0, 0, 0, 0, c, 0, 0, 0, 0, c**2, 0]
    torch.testing.assert_close(oxygen, torch.tensor(expected))
    expected = [1, 0, 0, 0, 0, 1 / 9, 0, 0, 0, 0, 1 / 81, 0, 0, 0, 0]
    torch.testing.assert_close(hydrogen, torch.tensor(expected))
    assert (padding == 0).all()


class Constant(nn.Module):
    def __init__(self, value: float) -> None:
        super().__init__()
        self.value = value

    def forward(self, cloud: PointCloud, *, generator: torch.Generator | None = None) -> Tensor:
        assert generator is None
        assert cloud.features.shape[-1] == 15
        return torch.full((len(cloud.mask), 1), self.value, dtype=cloud.positions.dtype)


def test_errors_are_in_the_unit_of_the_table(real_qm9: DatasetFile) -> None:
    """A model that answers one standard deviation above the mean, on homo in meV."""
    task = QM9Task("homo", real_qm9)
    examples = MoleculeExamples(real_qm9, "test", dtype=torch.float64)
    metrics = task.metrics(Constant(1.0), Loader(examples, 1000).epoch(0))
    rows = np.isin(real_qm9.array("molecules/index"), real_qm9.array("split/test"))
    values = real_qm9.array("molecules/targets")[rows, 2]
    mean, std = (real_qm9.array(f"statistics/train_{s}")[2] for s in ("mean", "std"))
    expected = np.abs(values - (mean + std)).mean()
    assert task.unit == "meV"
    assert metrics["mae"] == pytest.approx(expected, rel=1e-9)
    assert metrics["loss"] == pytest.approx(expected / std, rel=1e-9)
    batch = examples.take(np.arange(500))
    own = np.abs((batch.targets[:, 2].numpy() - mean) / std - 1).mean()
    assert task.loss(Constant(1.0), batch).item() == pytest.approx(own)


def test_an_unknown_target(real_qm9: DatasetFile) -> None:
    with pytest.raises(UserError, match="target must be one of alpha, gap"):
        QM9Task("energy", real_qm9)


class Half(Constant):
    """Answers in bfloat16, as a model under autocast does."""

    def forward(self, cloud: PointCloud, *, generator: torch.Generator | None = None) -> Tensor:
        return super().forward(cloud, generator=generator).bfloat16()


def test_errors_are_not_rounded_to_the_precision_of_the_outputs(real_qm9: DatasetFile) -> None:
    """The mean of G is about −70,000 meV: in bfloat16 it would be off by hundreds."""
    task = QM9Task("G", real_qm9)
    batches = list(Loader(MoleculeExamples(real_qm9, "test"), 1000).epoch(0))
    plain, half = (task.metrics(model(0.0), batches) for model in (Constant, Half))
    assert half == plain


def test_constants_are_those_of_the_training(real_qm9: DatasetFile) -> None:
    """A model that is tested on other data still answers in units of its own training set."""
    task = QM9Task("homo", real_qm9)
    batches = list(Loader(MoleculeExamples(real_qm9, "test"), 1000).epoch(0))
    shifted = QM9Task("homo", real_qm9)
    shifted.constants = {"mean": task.mean + task.std, "std": task.std}
    assert shifted.constants == {"mean": task.mean + task.std, "std": task.std}
    expected = task.metrics(Constant(1.0), batches)
    assert shifted.metrics(Constant(0.0), batches) == pytest.approx(expected, rel=1e-5)
