"""R⁺×SO(2), rotations and scalings of the plane about the origin."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from lietransformer.groups.base import Group
from lietransformer.groups.series import safe_norm
from lietransformer.groups.so2 import rotation_angle, rotation_matrix
from lietransformer.rng import normal, uniform_angle

# The centre of the plane is not part of the space (no scaling reaches it). It is treated as
# a point this far out: tiny for any data, yet its square is a normal float32.
_SMALLEST_RADIUS = 1e-15


class RotationScaling(Group):
    """Elements σR as matrices [[x, −y], [y, x]], that is, multiplication by x + iy.

    ν[log(σR)] = (log σ, θ). Acts transitively and freely on the plane without its centre:
    the lift x ↦ (the element that takes (1, 0) to x) is exact. The centre itself has no
    lift; it gets that of a point at distance 1e-15, which is finite but not equivariant.
    """

    name = "R+xSO(2)"
    space_dimension = 2
    matrix_size = 2
    algebra_dimension = 2
    canonical_dimension = 2

    def inverse(self, g: Float[Tensor, "*shape m m"]) -> Float[Tensor, "*shape m m"]:
        return g.mT / g[..., :, 0].square().sum(-1)[..., None, None]

    def exp(self, coordinates: Float[Tensor, "*shape algebra"]) -> Float[Tensor, "*shape m m"]:
        log_scale, angle = coordinates.unbind(-1)
        return log_scale.exp()[..., None, None] * rotation_matrix(angle)

    def log_coordinates(self, g: Float[Tensor, "*shape m m"]) -> Float[Tensor, "*shape algebra"]:
        # hypot, because the square of a large ratio of scales overflows in float32.
        log_scale = torch.hypot(g[..., 0, 0], g[..., 1, 0]).log()
        return torch.stack([log_scale, rotation_angle(g)], dim=-1)

    def canonical_coordinates(
        self, g: Float[Tensor, "*shape m m"]
    ) -> Float[Tensor, "*shape canonical"]:
        log_scale, angle = self.log_coordinates(g).unbind(-1)
        return torch.stack([log_scale, angle / math.pi], dim=-1)

    def section(self, points: Float[Tensor, "*shape n"]) -> Float[Tensor, "*shape m m"]:
        x, y = points.unbind(-1)
        is_centre = safe_norm(points) < _SMALLEST_RADIUS
        x, y = torch.where(is_centre, _SMALLEST_RADIUS, x), torch.where(is_centre, 0, y)
        return torch.stack([x, -y, y, x], dim=-1).unflatten(-1, (2, 2))

    def sample(
        self,
        *shape: int,
        generator: torch.Generator,
        dtype: torch.dtype,
        device: torch.device | str = "cpu",
        scale: float = 1.0,
    ) -> Float[Tensor, "*shape m m"]:
        log_scale = scale * normal(*shape, generator=generator, dtype=dtype, device=device)
        angle = uniform_angle(*shape, generator=generator, dtype=dtype, device=device)
        return self.exp(torch.stack([log_scale, angle], dim=-1))
