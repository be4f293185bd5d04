"""QM9: one property of a molecule (§4.2, App. I.2)."""

from collections.abc import Iterable
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from lietransformer.clouds import PointCloud
from lietransformer.data.examples import Examples
from lietransformer.data.reader import DatasetFile
from lietransformer.errors import UserError
from lietransformer.experiments.qm9.examples import MoleculeBatch, MoleculeExamples
from lietransformer.experiments.qm9.properties import ELEMENTS, PROPERTIES
from lietransformer.experiments.task import Splits, Task, total


class QM9Task(Task[MoleculeBatch]):
    """Regression of a property, standardised over the training molecules, by the L1 loss.

    Args:
        target: name of the property.
        file: the dataset, for the mean and standard deviation of its training molecules: of all
            of them, also where a run sees only some.
    """

    name = "qm9"
    selection = "mae"

    def __init__(self, target: str, file: DatasetFile) -> None:
        names = [prop.name for prop in PROPERTIES]
        if target not in names:
            raise UserError(f"target must be one of {', '.join(names)}, got {target!r}.")
        self.column = names.index(target)
        self.unit = PROPERTIES[self.column].unit
        self.mean = float(file.array("statistics/train_mean")[self.column])
        self.std = float(file.array("statistics/train_std")[self.column])

    @property
    def constants(self) -> dict[str, float]:
        return {"mean": self.mean, "std": self.std}

    @constants.setter
    def constants(self, values: dict[str, float]) -> None:
        self.mean, self.std = values.get("mean", self.mean), values.get("std", self.std)

    def standardised(
        self,
        predictor: nn.Module,
        batch: MoleculeBatch,
        *,
        generator: torch.Generator | None = None,
    ) -> Float[Tensor, "batch"]:
        """The prediction, in standard deviations from the mean."""
        features = element_features(batch.charges).to(batch.positions.dtype)
        cloud = PointCloud(batch.positions, features, batch.mask)
        return predictor(cloud, generator=generator)[:, 0]

    def loss(
        self,
        predictor: nn.Module,
        batch: MoleculeBatch,
        *,
        generator: torch.Generator | None = None,
    ) -> Float[Tensor, ""]:
        target = (batch.targets[:, self.column] - self.mean) / self.std
        return F.l1_loss(self.standardised(predictor, batch, generator=generator), target)

    @torch.no_grad()
    def metrics(
        self,
        predictor: nn.Module,
        batches: Iterable[MoleculeBatch],
        *,
        generator: torch.Generator | None = None,
    ) -> dict[str, float]:
        """The mean absolute error in the unit of the paper's table, and the loss."""
        errors, count = [], 0
        for batch in batches:
            predicted = self.standardised(predictor, batch, generator=generator)
            # In the precision of the targets, whatever the model's outputs come in.
            values = predicted.to(batch.targets.dtype) * self.std + self.mean
            errors.append((values - batch.targets[:, self.column]).abs().sum())
            count += len(batch.targets)
        error = total(errors)
        return {"loss": error / count / self.std, "mae": error / count}


def element_features(charges: Int[Tensor, "batch n"]) -> Float[Tensor, "batch n 15"]:
    """The one-hot code of the element times 1, c and c², c = charge / 9; zeros for padding."""
    # Element by element: a tensor of their charges would have to be sent to the device.
    one_hot = torch.stack([charges == charge for charge in ELEMENTS.values()], dim=-1).float()
    scaled = charges[..., None] / max(ELEMENTS.values())
    return torch.cat([one_hot, one_hot * scaled, one_hot * scaled**2], dim=-1)


def make_task(run: Any, file: DatasetFile) -> QM9Task:
    """The task of the run's target."""
    return QM9Task(run.target, file)


def make_examples(run: Any, file: DatasetFile, dtype: torch.dtype) -> Splits:
    """All molecules, or `n_train` of them for training."""

    def molecules(split: Any) -> Examples[Any]:
        n_train = run.n_train if split == "train" else None
        return MoleculeExamples(file, split, n_train=n_train, dtype=dtype)

    return molecules("train"), molecules("validation"), {"test": molecules("test")}
