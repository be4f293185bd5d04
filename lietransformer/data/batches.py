"""Batches of examples, as they come out of a loader."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from lietransformer.data.augmentation import augment
from lietransformer.data.config import Augmentation
from lietransformer.device import send

B = TypeVar("B", bound="Batch")


@dataclass(frozen=True, eq=False)
class Batch(ABC):
    """Tensors with the axis of examples first."""

    @abstractmethod
    def augmented(self: B, kind: Augmentation, *, generator: torch.Generator) -> B:
        """Each example moved by its own random transformation."""

    @property
    def points(self) -> Int[Tensor, " batch"] | None:
        """How many points each example has; None where all have the same number."""
        return None

    def first_points(self: B, count: int) -> B:  # noqa: ARG002
        """The same batch with the first `count` slots for points only."""
        return self


def size_of(batch: Batch) -> int:
    """Number of examples in a batch."""
    return len(next(iter(vars(batch).values())))


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


def moved_positions(
    positions: Float[Tensor, "batch n space"],
    mask: Bool[Tensor, "batch n"],
    kind: Augmentation,
    generator: torch.Generator,
) -> Float[Tensor, "batch n space"]:
    """Each example's points moved by its own random transformation; padding stays 0."""
    moved = augment(positions, kind, generator=generator)
    return torch.where(mask[..., None], moved, 0)
