"""Dₙ, the rotations and reflections of a regular n-gon, and T(2) ⋊ Dₙ."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from lietransformer.groups.cyclic import FinitePlanarGroup, cyclic_rotations, snapped_angle
from lietransformer.groups.se2 import PlanarMotion
from lietransformer.groups.so2 import rotation_matrix


class Dihedral(FinitePlanarGroup):
    """Dₙ ≤ O(2): elements R(θ)·Fˢ, F = diag(1, −1), with coordinates (θ, s).

    A reflection has determinant −1 and therefore no real logarithm. The coordinates are
    ν[log R] of the rotation together with the flag s ∈ {0, 1}: still one-to-one.
    """

    algebra_dimension = 2
    canonical_dimension = 2

    def __init__(self, order: int) -> None:
        self.name = f"D{order}"
        self.rotations = order
        self.order = self.stabiliser_order = 2 * order

    def exp(self, coordinates: Float[Tensor, "*shape algebra"]) -> Float[Tensor, "*shape m m"]:
        angle, flag = coordinates.unbind(-1)
        return _reflected(rotation_matrix(angle), flag > 0.5)

    def log_coordinates(self, g: Float[Tensor, "*shape m m"]) -> Float[Tensor, "*shape algebra"]:
        determinant = g[..., 0, 0] * g[..., 1, 1] - g[..., 0, 1] * g[..., 1, 0]
        is_reflection = determinant < 0
        # Only the first column is read, which F leaves as it is: no need to undo it.
        angle = snapped_angle(g, self.rotations)
        return torch.stack([angle, is_reflection.to(angle.dtype)], dim=-1)

    def canonical_coordinates(
        self, g: Float[Tensor, "*shape m m"]
    ) -> Float[Tensor, "*shape canonical"]:
        angle, flag = self.log_coordinates(g).unbind(-1)
        return torch.stack([angle / math.pi, flag], dim=-1)

    def elements(
        self, *, dtype: torch.dtype, device: torch.device | str = "cpu"
    ) -> Float[Tensor, "order m m"]:
        rotations = cyclic_rotations(self.rotations, dtype=dtype, device=device)
        every = torch.ones(self.rotations, dtype=torch.bool, device=device)
        return torch.cat([rotations, _reflected(rotations, every)])


def _reflected(rotation: Tensor, is_reflection: Tensor) -> Tensor:
    """R·F where the flag is set: the second column changes sign."""
    sign = torch.where(is_reflection, -1, 1).to(rotation.dtype)
    return rotation * torch.stack([torch.ones_like(sign), sign], dim=-1)[..., None, :]


class TranslationDihedral(PlanarMotion):
    """T(2) ⋊ Dₙ ≤ E(2); the lift is exact.

    Coordinates are (V⁻¹t, θ, 0) as in SE(2) for motions, and (t, θ, 1) for glide
    reflections, which no logarithm reaches.
    """

    def __init__(self, order: int) -> None:
        super().__init__(f"T(2)xD{order}", Dihedral(order))

    def exp_translation(
        self, linear: Float[Tensor, "*shape k"], translation: Float[Tensor, "*shape n"]
    ) -> Float[Tensor, "*shape n"]:
        rotated = super().exp_translation(linear, translation)
        return torch.where(linear[..., 1:] > 0.5, translation, rotated)

    def log_translation(
        self, linear: Float[Tensor, "*shape k"], translation: Float[Tensor, "*shape n"]
    ) -> Float[Tensor, "*shape n"]:
        rotated = super().log_translation(linear, translation)
        return torch.where(linear[..., 1:] > 0.5, translation, rotated)
