"""Random transformations of whole examples: the test copies and the training augmentation."""

import torch
from jaxtyping import Float
from torch import Tensor

from lietransformer.data.config import Augmentation
from lietransformer.device import send
from lietransformer.errors import require_choice
from lietransformer.groups import Group, get_group

# The group that the transformations are drawn from, and the standard deviation of its
# translations. A molecule is also moved: harmless, since T(3) and SE(3) models do not see it.
_GROUPS: dict[str, tuple[str, float]] = {
    "T2": ("T(2)", 2.0),
    "SE2": ("SE(2)", 2.0),
    "SO3": ("SE(3)", 1.0),
}


def augmentation_group(kind: Augmentation) -> Group:
    """The group of an augmentation other than "none"."""
    return get_group(_GROUPS[kind][0])


def draw_transformations(
    kind: Augmentation, count: int, *, generator: torch.Generator, dtype: torch.dtype
) -> Float[Tensor, "count m m"]:
    """Random elements: rotations Haar-uniform about the origin, translations normal."""
    require_choice("augmentation", kind, Augmentation)
    _, scale = _GROUPS[kind]
    return augmentation_group(kind).sample(count, generator=generator, dtype=dtype, scale=scale)


def augment(
    positions: Float[Tensor, "batch n space"], kind: Augmentation, *, generator: torch.Generator
) -> Float[Tensor, "batch n space"]:
    """Each example x ↦ g·x under its own random g."""
    require_choice("augmentation", kind, Augmentation)
    if kind == "none":
        return positions
    elements = draw_transformations(
        kind, len(positions), generator=generator, dtype=positions.dtype
    )
    return transform(positions, send(elements, positions.device), kind)


def transform(
    positions: Float[Tensor, "batch n space"],
    elements: Float[Tensor, "batch m m"],
    kind: Augmentation,
) -> Float[Tensor, "batch n space"]:
    """x ↦ g·x for all points of each example."""
    return augmentation_group(kind).act(elements[:, None], positions)
