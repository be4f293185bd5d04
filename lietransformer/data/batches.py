"""Batches of examples, as they come out of a loader."""

from dataclasses import dataclass, replace
from typing import Any, TypeVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from lietransformer.data.augmentation import (
    Augmentation,
    augment,
    draw_transformations,
    transform,
)
from lietransformer.device import send


@dataclass(frozen=True, eq=False)
class ConstellationBatch:
    """Constellations to count patterns in.

    Attributes:
        positions: vertices; those that are absent are 0.
        mask: which vertices are there.
        instance: which instance a vertex belongs to, −1 for none.
        counts: the target, how many instances of each pattern there are.
    """

    positions: Float[Tensor, "batch n 2"]
    mask: Bool[Tensor, "batch n"]
    instance: Int[Tensor, "batch n"]
    counts: Int[Tensor, "batch patterns"]

    def augmented(self, kind: Augmentation, *, generator: torch.Generator) -> "ConstellationBatch":
        """Each example moved by its own random transformation."""
        return replace(self, positions=_augmented(self.positions, self.mask, kind, generator))

    def trimmed(self) -> "ConstellationBatch":
        """The same without slots that no example needs.

        Half of all vertices are absent. The largest of 32 examples has 29 of 34 on average, so the
        number of pairs falls by a quarter.
        """
        first = self.mask.int().argsort(dim=1, descending=True, stable=True)
        first = first[:, : int(self.mask.sum(dim=1).max())]
        return replace(
            self,
            positions=self.positions.take_along_dim(first[..., None], dim=1),
            mask=self.mask.take_along_dim(first, dim=1),
            instance=self.instance.take_along_dim(first, dim=1),
        )

    def first_points(self, count: int) -> "ConstellationBatch":
        """The same batch with the first `count` slots only."""
        return replace(
            self,
            positions=self.positions[:, :count],
            mask=self.mask[:, :count],
            instance=self.instance[:, :count],
        )


@dataclass(frozen=True, eq=False)
class SpringBatch:
    """Pieces of trajectories.

    Attributes:
        states: q and p of each particle at successive times.
        masses: of the particles.
        stiffness: k of the particles.
    """

    states: Float[Tensor, "batch times 2 particles space"]
    masses: Float[Tensor, "batch particles"]
    stiffness: Float[Tensor, "batch particles"]

    def augmented(self, kind: Augmentation, *, generator: torch.Generator) -> "SpringBatch":
        """Each system moved by its own random transformation: positions by g, momenta by dg."""
        if kind == "none":
            return self
        states = self.states
        elements = draw_transformations(kind, len(states), generator=generator, dtype=states.dtype)
        elements = send(elements, states.device)
        position, momentum = states.unbind(dim=2)
        moved = transform(position.flatten(1, 2), elements, kind).view_as(position)
        differential = elements[:, None, : states.shape[-1], : states.shape[-1]]
        turned = momentum @ differential.mT
        return replace(self, states=torch.stack([moved, turned], dim=2))


@dataclass(frozen=True, eq=False)
class MoleculeBatch:
    """Molecules, padded to the largest.

    Attributes:
        positions: atoms, in Å; padding is 0.
        charges: nuclear charges; padding is 0.
        mask: which atoms are real.
        targets: the 12 properties in the table's units.
        index: numbers of the molecules in QM9.
    """

    positions: Float[Tensor, "batch n 3"]
    charges: Int[Tensor, "batch n"]
    mask: Bool[Tensor, "batch n"]
    targets: Float[Tensor, "batch properties"]
    index: Int[Tensor, "batch"]

    def augmented(self, kind: Augmentation, *, generator: torch.Generator) -> "MoleculeBatch":
        """Each molecule moved by its own random transformation."""
        return replace(self, positions=_augmented(self.positions, self.mask, kind, generator))

    def first_points(self, count: int) -> "MoleculeBatch":
        """The same batch with the first `count` slots only."""
        return replace(
            self,
            positions=self.positions[:, :count],
            charges=self.charges[:, :count],
            mask=self.mask[:, :count],
        )


Batch = ConstellationBatch | SpringBatch | MoleculeBatch
B = TypeVar("B", bound=Batch)


def size_of(batch: Batch) -> int:
    """Number of examples in a batch."""
    return len(batch.states if isinstance(batch, SpringBatch) else batch.positions)


def to_device(batch: B, device: torch.device) -> B:
    """The same batch with all its tensors on a device."""
    moved: dict[str, Any] = {name: send(tensor, device) for name, tensor in vars(batch).items()}
    return replace(batch, **moved)


def rows(batch: B, index: Int[Tensor, "chosen"]) -> B:
    """Some examples of a batch, on the device where it is."""
    chosen: dict[str, Any] = {
        name: tensor.index_select(0, index) for name, tensor in vars(batch).items()
    }
    return replace(batch, **chosen)


def _augmented(
    positions: Float[Tensor, "batch n space"],
    mask: Bool[Tensor, "batch n"],
    kind: Augmentation,
    generator: torch.Generator,
) -> Float[Tensor, "batch n space"]:
    moved = augment(positions, kind, generator=generator)
    return torch.where(mask[..., None], moved, 0)
