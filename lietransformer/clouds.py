"""The data that crosses module boundaries: point clouds and lifted point clouds.

Masks are True for real points, everywhere.
"""

from dataclasses import dataclass, fields, replace
from typing import TypeVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor


class _TensorFields:
    """What both clouds share: moving all their tensors at once, and selecting points."""

    def to(
        self: "AnyCloud",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> "AnyCloud":
        """The same cloud on another device, or its real numbers in another precision."""
        moved = {}
        for name, tensor in self._tensors().items():
            target = dtype if tensor.is_floating_point() else None
            moved[name] = tensor.to(device=device, dtype=target)
        return replace(self, **moved)  # type: ignore[type-var]

    def take(self: "AnyCloud", order: Tensor) -> "AnyCloud":
        """The points (or elements) of every example in another order, or some of them."""
        taken = {name: tensor[:, order] for name, tensor in self._tensors().items()}
        return replace(self, **taken)  # type: ignore[type-var]

    def _tensors(self) -> dict[str, Tensor]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]


AnyCloud = TypeVar("AnyCloud", bound=_TensorFields)


@dataclass(frozen=True, eq=False)
class PointCloud(_TensorFields):
    """A batch of sets of pairs (x_i, f_i), i = 1 … n (paper, §3), padded to equal size.

    Attributes:
        positions: x_i in Rⁿ.
        features: f_i; left out, every point gets the constant feature 1.
        mask: which points are real; left out, all are. The values of the others never
            matter, not even if they are NaN.
    """

    # None is only ever an argument: `__post_init__` replaces it.
    positions: Float[Tensor, "batch n space"]
    features: Float[Tensor, "batch n width"] = None  # type: ignore[assignment]
    mask: Bool[Tensor, "batch n"] = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        _require_axes("positions", self.positions, "(batch, points, space dimension)", 3)
        if self.positions.dtype not in (torch.float32, torch.float64):
            raise TypeError(
                f"positions must be float32 or float64, got {self.positions.dtype}. Convert them, "
                "for example with positions.float(); for lower precision use torch.autocast."
            )
        # A frozen dataclass fills in its own defaults through object.__setattr__.
        if self.features is None:
            object.__setattr__(self, "features", torch.ones_like(self.positions[..., :1]))
        if self.mask is None:
            every = torch.ones_like(self.positions[..., 0], dtype=torch.bool)
            object.__setattr__(self, "mask", every)
        _require_axes("features", self.features, "(batch, points, width)", 3)
        _require_axes("mask", self.mask, "(batch, points)", 2)
        _check_mask(self.mask)
        _require_same_points("positions", self.positions, features=self.features, mask=self.mask)
        if self.features.dtype != self.positions.dtype:
            raise TypeError(
                f"features must have the dtype of positions, {self.positions.dtype}, got "
                f"{self.features.dtype}. Convert one of them."
            )

    def cleaned(self) -> "PointCloud":
        """The same cloud with harmless values at padded points: a real point's position.

        Zero would not do: for some groups the origin is a singular point, and what happens
        there can overflow, even if the result is masked afterwards.
        """
        real = self.mask[..., None]
        substitute: Tensor | float = 0.0
        if self.mask.shape[1]:
            first = self.mask.int().argmax(dim=1)[:, None, None]
            there = self.positions.detach().take_along_dim(first, dim=1)
            substitute = torch.where(self.mask.any(dim=1)[:, None, None], there, 0)
        return PointCloud(
            torch.where(real, self.positions, substitute),
            torch.where(real, self.features, 0),
            self.mask,
        )


@dataclass(frozen=True, eq=False)
class LiftedCloud(_TensorFields):
    """A feature map on the group: pairs (g, f(g)) for g in Ĝ_f = ∪ s(x_i)Ĥ (Eq. 5).

    Attributes:
        elements: g, as matrices of the group.
        features: f(g).
        orbits: the orbit invariants of g; of width 0 where the group acts transitively.
        mask: which elements are real.
    """

    elements: Float[Tensor, "batch g m m"]
    features: Float[Tensor, "batch g width"]
    orbits: Float[Tensor, "batch g orbit"]
    mask: Bool[Tensor, "batch g"]

    def __post_init__(self) -> None:
        _require_axes("elements", self.elements, "(batch, elements, m, m)", 4)
        _require_axes("features", self.features, "(batch, elements, width)", 3)
        _require_axes("orbits", self.orbits, "(batch, elements, orbit invariants)", 3)
        _require_axes("mask", self.mask, "(batch, elements)", 2)
        _check_mask(self.mask)
        _require_same_points(
            "elements", self.elements, features=self.features, orbits=self.orbits, mask=self.mask
        )


def _require_axes(name: str, value: object, expected: str, count: int) -> None:
    if not isinstance(value, Tensor):
        raise TypeError(
            f"{name} must be a torch.Tensor of shape {expected}, got {type(value).__name__}. "
            "Convert it with torch.as_tensor."
        )
    if value.ndim != count:
        raise ValueError(
            f"{name} must have shape {expected}, got {tuple(value.shape)}. Add the missing axis; a "
            "single example is a batch of 1."
        )


def _require_same_points(name: str, reference: Tensor, **others: Tensor) -> None:
    """All tensors have the batch and points of the reference, and are on its device."""
    points = tuple(reference.shape[:2])
    for other, tensor in others.items():
        if tuple(tensor.shape[:2]) != points:
            raise ValueError(
                f"{other} must have the (batch, points) of {name}, {points}, got "
                f"{tuple(tensor.shape[:2])}. Give one row of {other} per point."
            )
        if tensor.device != reference.device:
            raise ValueError(
                f"{other} must be on {reference.device} like {name}, got {tensor.device}. Move "
                "them to one device."
            )


def _check_mask(mask: Tensor) -> None:
    if mask.dtype != torch.bool:
        raise TypeError(
            f"mask must have dtype torch.bool, True for real points, got {mask.dtype}. Convert it "
            "with mask.bool()."
        )
