"""Cₙ, the rotations of a regular n-gon, and T(2) ⋊ Cₙ."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from lietransformer.groups.base import Group
from lietransformer.groups.se2 import PlanarMotion
from lietransformer.groups.so2 import rotation_angle, rotation_matrix


def snapped_angle(matrix: Float[Tensor, "*shape 2 2"], order: int) -> Float[Tensor, "*shape"]:
    """The angle of an element of C_order, exactly a multiple of 2π/order in (−π, π].

    Products of elements drift off the group by rounding; the coordinates must not.
    """
    steps = torch.round(rotation_angle(matrix) * (order / (2 * math.pi)))
    steps = torch.where(2 * steps > order, steps - order, steps)
    steps = torch.where(2 * steps <= -order, steps + order, steps)
    return steps * (2 * math.pi / order)


class FinitePlanarGroup(Group):
    """A finite group of rotations and reflections about the origin of the plane.

    Its action has no continuous choice of origins for the orbits, and needs none: a point
    is lifted to the whole group, which takes the place of the stabiliser, and g⁻¹x serves
    as the orbit invariant of the lift g. Lifts are exact, and so is a model's invariance.
    """

    space_dimension = 2
    matrix_size = 2
    orbit_dimension = 2
    order: int

    def inverse(self, g: Float[Tensor, "*shape m m"]) -> Float[Tensor, "*shape m m"]:
        return g.mT

    def section(self, points: Float[Tensor, "*shape n"]) -> Float[Tensor, "*shape m m"]:
        return self.identity(*points.shape[:-1], dtype=points.dtype, device=points.device)

    def orbit_invariants(
        self, g: Float[Tensor, "*shape m m"], points: Float[Tensor, "*shape n"]
    ) -> Float[Tensor, "*shape orbit"]:
        return self.act(self.inverse(g), points)

    def stabiliser_elements(
        self, *, dtype: torch.dtype, device: torch.device | str = "cpu"
    ) -> Float[Tensor, "order m m"]:
        return self.elements(dtype=dtype, device=device)

    def sample(
        self,
        *shape: int,
        generator: torch.Generator,
        dtype: torch.dtype,
        device: torch.device | str = "cpu",
        scale: float = 1.0,
    ) -> Float[Tensor, "*shape m m"]:
        return self.sample_stabiliser(*shape, generator=generator, dtype=dtype, device=device)


class Cyclic(FinitePlanarGroup):
    """Cₙ ≤ SO(2): ν[log(R)] = θ, a multiple of 2π/n."""

    algebra_dimension = 1
    canonical_dimension = 1

    def __init__(self, order: int) -> None:
        self.name = f"C{order}"
        self.order = self.stabiliser_order = order

    def exp(self, coordinates: Float[Tensor, "*shape algebra"]) -> Float[Tensor, "*shape m m"]:
        return rotation_matrix(coordinates[..., 0])

    def log_coordinates(self, g: Float[Tensor, "*shape m m"]) -> Float[Tensor, "*shape algebra"]:
        return snapped_angle(g, self.order)[..., None]

    def canonical_coordinates(
        self, g: Float[Tensor, "*shape m m"]
    ) -> Float[Tensor, "*shape canonical"]:
        return self.log_coordinates(g) / math.pi

    def elements(
        self, *, dtype: torch.dtype, device: torch.device | str = "cpu"
    ) -> Float[Tensor, "order m m"]:
        return cyclic_rotations(self.order, dtype=dtype, device=device)


def cyclic_rotations(
    order: int, *, dtype: torch.dtype, device: torch.device | str
) -> Float[Tensor, "order 2 2"]:
    """The rotations by multiples of 2π/order."""
    # In float64 first: the angles of a large group are not exact enough in float32.
    steps = torch.arange(order, dtype=torch.float64, device=device)
    return rotation_matrix(steps * (2 * math.pi / order)).to(dtype)


class TranslationCyclic(PlanarMotion):
    """T(2) ⋊ Cₙ ≤ SE(2): translations and rotations by multiples of 2π/n; the lift is exact."""

    def __init__(self, order: int) -> None:
        super().__init__(f"T(2)xC{order}", Cyclic(order))
