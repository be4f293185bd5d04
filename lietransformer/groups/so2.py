"""SO(2), the rotations of the plane about the origin."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from lietransformer.groups.base import Group
from lietransformer.groups.series import safe_norm
from lietransformer.rng import uniform_angle

# Half turns are ambiguous: the angle is +π or −π by the sign of a rounding error. Finite
# lifts such as Ĥ = C₂ produce them all the time, and a feature that jumps with the rounding
# would spoil their exact equivariance. Within this many units of rounding it is always +π.
_HALF_TURN_ROUNDING = 1e3


def half_turn_margin(dtype: torch.dtype) -> float:
    """How close to a half turn (in radians) two orientations are told apart by convention."""
    return _HALF_TURN_ROUNDING * torch.finfo(dtype).eps


def rotation_angle(matrix: Float[Tensor, "*shape 2 2"]) -> Float[Tensor, "*shape"]:
    """θ = atan2(R₁₀, R₀₀) in (−π, π], half turns (up to the margin above) always +π.

    The paper prints arctan(R₁₀/R₀₁) (App. F), which is a misprint: R₀₁ = −R₁₀.
    """
    angle = torch.atan2(matrix[..., 1, 0], matrix[..., 0, 0])
    below_cut = angle < -math.pi + half_turn_margin(angle.dtype)
    return torch.where(below_cut, angle + 2 * math.pi, angle)


def rotation_matrix(angle: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape 2 2"]:
    """[[cos θ, −sin θ], [sin θ, cos θ]] (Eq. 1)."""
    cosine, sine = angle.cos(), angle.sin()
    return torch.stack([cosine, -sine, sine, cosine], dim=-1).unflatten(-1, (2, 2))


class SO2(Group):
    """ν[log(R)] = θ. Not transitive: the orbit of x has the invariant ‖x‖, the origin (‖x‖, 0).

    A point other than the centre has trivial stabiliser, so one lift is exact: the rotation
    by the point's polar angle. The centre itself is fixed by all of SO(2); it is lifted to
    the identity, which is finite but not equivariant there.
    """

    name = "SO(2)"
    space_dimension = 2
    matrix_size = 2
    algebra_dimension = 1
    canonical_dimension = 1
    orbit_dimension = 1

    def inverse(self, g: Float[Tensor, "*shape m m"]) -> Float[Tensor, "*shape m m"]:
        return g.mT

    def exp(self, coordinates: Float[Tensor, "*shape algebra"]) -> Float[Tensor, "*shape m m"]:
        return rotation_matrix(coordinates[..., 0])

    def log_coordinates(self, g: Float[Tensor, "*shape m m"]) -> Float[Tensor, "*shape algebra"]:
        return rotation_angle(g)[..., None]

    def canonical_coordinates(
        self, g: Float[Tensor, "*shape m m"]
    ) -> Float[Tensor, "*shape canonical"]:
        return self.log_coordinates(g) / math.pi

    def section(self, points: Float[Tensor, "*shape n"]) -> Float[Tensor, "*shape m m"]:
        x, y = points.unbind(-1)
        radius = safe_norm(points)
        is_centre = radius == 0
        safe_radius = torch.where(is_centre, 1, radius)
        cosine, sine = torch.where(is_centre, 1, x / safe_radius), y / safe_radius
        return torch.stack([cosine, -sine, sine, cosine], dim=-1).unflatten(-1, (2, 2))

    def orbit_invariants(
        self, g: Float[Tensor, "*shape m m"], points: Float[Tensor, "*shape n"]
    ) -> Float[Tensor, "*shape orbit"]:
        return safe_norm(points)[..., None]

    def sample(
        self,
        *shape: int,
        generator: torch.Generator,
        dtype: torch.dtype,
        device: torch.device | str = "cpu",
        scale: float = 1.0,
    ) -> Float[Tensor, "*shape m m"]:
        return rotation_matrix(
            uniform_angle(*shape, generator=generator, dtype=dtype, device=device)
        )
