"""The data that crosses module boundaries: point clouds and lifted point clouds.

Masks are True for real points, everywhere.
"""

from dataclasses import dataclass, fields, replace
from typing import TypeVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from lietransformer.errors import explain


class _TensorFields:
    """What both clouds share: moving all their tensors at once, and selecting points."""

    def to(
        self: "Cloud",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> "Cloud":
        """The same cloud on another device, or its real numbers in another precision."""
        moved = {}
        for name, tensor in self._tensors().items():
            target = dtype if tensor.is_floating_point() else None
            moved[name] = tensor.to(device=device, dtype=target)
        return replace(self, **moved)  # type: ignore[type-var]

    def take(self: "Cloud", order: Tensor) -> "Cloud":
        """The points (or elements) of every example in another order, or some of them."""
        taken = {name: tensor[:, order] for name, tensor in self._tensors().items()}
        return replace(self, **taken)  # type: ignore[type-var]

    def _tensors(self) -> dict[str, Tensor]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]


Cloud = TypeVar("Cloud", bound=_TensorFields)


@dataclass(frozen=True)
class PointCloud(_TensorFields):
    """A batch of sets of pairs (x_i, f_i), i = 1 … n (paper, §3), padded to equal size.

    Attributes:
        positions: x_i in Rⁿ.
        features: f_i; left out, every point gets the constant feature 1.
        mask: which points are real; left out, all are. The values of the others never
            matter, not even if they are NaN.
    """

    positions: Float[Tensor, "batch n space"]
    features: Float[Tensor, "batch n width"] = None  # type: ignore[assignment]
    mask: Bool[Tensor, "batch n"] = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        _require_axes("positions", self.positions, "(batch, points, space dimension)", 3)
        if not self.positions.is_floating_point():
            raise TypeError(
                explain(
                    expected="positions as floating-point numbers",
                    found=f"{self.positions.dtype}",
                    remedy="convert them, for example with positions.float()",
                )
            )
        points = self.positions.shape[:2]
        # A frozen dataclass fills in its own defaults through object.__setattr__.
        if self.features is None:
            object.__setattr__(self, "features", self.positions.new_ones(*points, 1))
        if self.mask is None:
            every = torch.ones(points, dtype=torch.bool, device=self.positions.device)
            object.__setattr__(self, "mask", every)
        _require_axes("features", self.features, "(batch, points, width)", 3)
        _require_axes("mask", self.mask, "(batch, points)", 2)
        _check_mask(self.mask)
        for name in ("features", "mask"):
            found = getattr(self, name).shape[:2]
            if found != points:
                raise ValueError(
                    explain(
                        expected=f"{name} for {tuple(points)} (batch, points) as in positions",
                        found=f"{tuple(found)}",
                        remedy=f"give one row of {name} per point",
                    )
                )
        if self.features.dtype != self.positions.dtype:
            raise TypeError(
                explain(
                    expected=f"features of the dtype of positions, {self.positions.dtype}",
                    found=f"{self.features.dtype}",
                    remedy="convert one of them",
                )
            )

    def cleaned(self) -> "PointCloud":
        """The same cloud with zeros in place of whatever stands at padded points."""
        real = self.mask[..., None]
        return PointCloud(
            torch.where(real, self.positions, 0), torch.where(real, self.features, 0), self.mask
        )


@dataclass(frozen=True)
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
        _check_mask(self.mask)


def _require_axes(name: str, value: object, expected: str, count: int) -> None:
    if not isinstance(value, Tensor):
        raise TypeError(
            explain(
                expected=f"{name} as a torch.Tensor of shape {expected}",
                found=type(value).__name__,
                remedy="convert it with torch.as_tensor",
            )
        )
    if value.ndim != count:
        raise ValueError(
            explain(
                expected=f"{name} of shape {expected}",
                found=f"shape {tuple(value.shape)}",
                remedy="add the missing axis; a single example is a batch of 1",
            )
        )


def _check_mask(mask: Tensor) -> None:
    if mask.dtype != torch.bool:
        raise TypeError(
            explain(
                expected="a mask of dtype torch.bool, True for real points",
                found=f"dtype {mask.dtype}",
                remedy="convert it with mask.bool()",
            )
        )
