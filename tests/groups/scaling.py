"""A group of a user: continuous, not transitive, in any dimension."""

import torch
from torch import Tensor

from lietransformer.groups import Group
from lietransformer.groups.series import safe_norm
from lietransformer.rng import normal


class Scaling(Group):
    """R⁺ acting on Rⁿ by x ↦ σx; ν[log σ] = log σ. Orbits are rays, told apart by x/‖x‖."""

    def __init__(self, dimension: int) -> None:
        self.name = f"R+({dimension})"
        self.space_dimension = self.matrix_size = self.orbit_dimension = dimension
        self.algebra_dimension = self.canonical_dimension = 1

    def exp(self, coordinates: Tensor) -> Tensor:
        identity = self.identity(dtype=coordinates.dtype, device=coordinates.device)
        return coordinates.exp()[..., None] * identity

    def log_coordinates(self, g: Tensor) -> Tensor:
        return g[..., :1, 0].log()

    def section(self, points: Tensor) -> Tensor:
        radius = safe_norm(points)
        return self.exp(torch.where(radius == 0, 1, radius).log()[..., None])

    def orbit_invariants(self, g: Tensor, points: Tensor) -> Tensor:
        return self.act(self.inverse(g), points)

    def sample(
        self,
        *shape: int,
        generator: torch.Generator,
        dtype: torch.dtype,
        device: torch.device | str = "cpu",
        scale: float = 1.0,
    ) -> Tensor:
        drawn = normal(*shape, 1, generator=generator, dtype=dtype, device=device)
        return self.exp(scale * drawn)
