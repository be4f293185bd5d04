"""The trivial group on Rⁿ: no symmetry at all."""

import torch
from jaxtyping import Float
from torch import Tensor

from lietransformer.groups.base import Group


class Trivial(Group):
    """G = {e}. Every point is its own orbit, so x itself is the orbit invariant.

    A model built on it is an ordinary transformer that sees absolute positions; its
    invariance (to nothing) is exact.
    """

    def __init__(self, dimension: int) -> None:
        self.name = f"Trivial({dimension})"
        self.space_dimension = self.matrix_size = self.orbit_dimension = dimension
        self.algebra_dimension = self.canonical_dimension = 0
        self.order = 1

    def inverse(self, g: Float[Tensor, "*shape m m"]) -> Float[Tensor, "*shape m m"]:
        return g

    def exp(self, coordinates: Float[Tensor, "*shape algebra"]) -> Float[Tensor, "*shape m m"]:
        return self.identity(
            *coordinates.shape[:-1], dtype=coordinates.dtype, device=coordinates.device
        )

    def log_coordinates(self, g: Float[Tensor, "*shape m m"]) -> Float[Tensor, "*shape algebra"]:
        return g.new_empty(*g.shape[:-2], 0)

    def section(self, points: Float[Tensor, "*shape n"]) -> Float[Tensor, "*shape m m"]:
        return self.identity(*points.shape[:-1], dtype=points.dtype, device=points.device)

    def orbit_invariants(
        self, g: Float[Tensor, "*shape m m"], points: Float[Tensor, "*shape n"]
    ) -> Float[Tensor, "*shape orbit"]:
        return points

    def elements(
        self, *, dtype: torch.dtype, device: torch.device | str = "cpu"
    ) -> Float[Tensor, "order m m"]:
        return self.identity(1, dtype=dtype, device=device)

    def sample(
        self,
        *shape: int,
        generator: torch.Generator,
        dtype: torch.dtype,
        device: torch.device | str = "cpu",
        scale: float = 1.0,
    ) -> Float[Tensor, "*shape m m"]:
        return self.identity(*shape, dtype=dtype, device=device)
