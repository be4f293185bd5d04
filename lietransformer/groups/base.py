"""The interface every group implements, and what all of them share."""

from abc import ABC, abstractmethod
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from lietransformer.errors import require_choice
from lietransformer.groups.series import safe_norm
from lietransformer.rng import integers

PairFeatures = Literal["log", "canonical"]


class Group(ABC):
    """A group G acting on Rⁿ, its elements stored as matrices of shape (..., m, m).

    A subclass sets the attributes below and implements the abstract methods; the methods
    that are not abstract have correct defaults for a linear matrix group with trivial
    stabiliser, and are overridden where a group has more structure or a faster formula.
    Everything broadcasts over leading axes, follows dtype and device of its arguments, and
    is differentiable (twice) wherever the mathematical function is.

    Attributes:
        name: what `get_group` finds it by, for example "SE(2)".
        space_dimension: n, the dimension of the points it acts on.
        matrix_size: m, the size of the matrices that represent it.
        algebra_dimension: number of log coordinates ν∘log (paper, App. F).
        translation_dimension: how many of them, counted from the first, are translations;
            the distance weighs these against the rest.
        canonical_dimension: number of canonical coordinates (App. F, "canonical lifting").
        orbit_dimension: number of orbit invariants; zero where the action is transitive.
        order: number of elements of the group; None where it is infinite.
        stabiliser_order: number of elements of the subgroup H that a point is lifted to,
            None where H is continuous and has to be sampled.
        rotation_weight: α in the distance α·‖rotation‖ + (1−α)·‖translation‖.
    """

    name: str
    space_dimension: int
    matrix_size: int
    algebra_dimension: int
    translation_dimension: int = 0
    canonical_dimension: int
    orbit_dimension: int = 0
    order: int | None = None
    stabiliser_order: int | None = 1
    rotation_weight: float = 0.2

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name})"

    # The group law.

    def identity(
        self, *shape: int, dtype: torch.dtype, device: torch.device | str = "cpu"
    ) -> Float[Tensor, "*shape m m"]:
        """The neutral element e, repeated to a batch of the given shape."""
        return torch.eye(self.matrix_size, dtype=dtype, device=device).expand(
            *shape, self.matrix_size, self.matrix_size
        )

    def multiply(
        self, g: Float[Tensor, "*#a m m"], h: Float[Tensor, "*#a m m"]
    ) -> Float[Tensor, "*a m m"]:
        """The product g·h."""
        return g @ h

    def inverse(self, g: Float[Tensor, "*shape m m"]) -> Float[Tensor, "*shape m m"]:
        """The inverse g⁻¹."""
        return torch.linalg.inv(g)

    def relative(
        self, g: Float[Tensor, "*#a m m"], g_prime: Float[Tensor, "*#a m m"]
    ) -> Float[Tensor, "*a m m"]:
        """g⁻¹g', all that attention ever sees of a pair, and invariant: (ug)⁻¹(ug') = g⁻¹g'."""
        return self.multiply(self.inverse(g), g_prime)

    @abstractmethod
    def exp(self, coordinates: Float[Tensor, "*shape algebra"]) -> Float[Tensor, "*shape m m"]:
        """exp∘ν⁻¹, from coordinates of the Lie algebra to the group."""

    @abstractmethod
    def log_coordinates(self, g: Float[Tensor, "*shape m m"]) -> Float[Tensor, "*shape algebra"]:
        """ν∘log (App. F), the inverse of `exp` on its principal domain."""

    def canonical_coordinates(
        self, g: Float[Tensor, "*shape m m"]
    ) -> Float[Tensor, "*shape canonical"]:
        """A flat vector that determines g without a log map (App. F, "canonical lifting").

        Angles are in half turns, within (−1, 1], as in the authors' release: the two rotations of
        Ĥ = C₂ give 0 and 1. The paper prints θ without a unit.
        """
        return self.log_coordinates(g)

    # The action on points, and the way back from a point to the group.

    def act(
        self, g: Float[Tensor, "*#a m m"], points: Float[Tensor, "*#a n"]
    ) -> Float[Tensor, "*a n"]:
        """The action g·x on points of Rⁿ."""
        self._require_points(points)
        return (g @ points[..., None])[..., 0]

    @abstractmethod
    def section(self, points: Float[Tensor, "*shape n"]) -> Float[Tensor, "*shape m m"]:
        """s(x): one group element that takes the origin x₀ of x's orbit to x (§2.2).

        Equivariant up to the stabiliser: s(ux) = u·s(x)·h for some h ∈ H.
        """

    def orbit_invariants(
        self, g: Float[Tensor, "*shape m m"], points: Float[Tensor, "*shape n"]
    ) -> Float[Tensor, "*shape orbit"]:
        """What distinguishes orbits: a function of (g, x) with value the same at (ug, ux)."""
        return points.new_empty(*points.shape[:-1], 0)

    def lift(
        self,
        points: Float[Tensor, "*#a n"],
        stabiliser_samples: Float[Tensor, "*#a samples m m"],
    ) -> Float[Tensor, "*a samples m m"]:
        """s(x)·h for each sample h of the stabiliser: part of the coset s(x)H (§3.1)."""
        self._require_points(points)
        return self.multiply(self.section(points)[..., None, :, :], stabiliser_samples)

    def _require_points(self, points: Tensor) -> None:
        if points.shape[-1:] != (self.space_dimension,):
            raise ValueError(
                f"points must have {self.space_dimension} coordinates to be acted on by "
                f"{self.name}, got shape {tuple(points.shape)}"
            )

    # Random elements. Each takes its numbers from an explicit generator.

    @abstractmethod
    def sample(
        self,
        *shape: int,
        generator: torch.Generator,
        dtype: torch.dtype,
        device: torch.device | str = "cpu",
        scale: float = 1.0,
    ) -> Float[Tensor, "*shape m m"]:
        """Random elements: Haar-uniform in compact directions, normal with `scale` in others."""

    def elements(
        self, *, dtype: torch.dtype, device: torch.device | str = "cpu"
    ) -> Float[Tensor, "order m m"]:
        """Every element of a finite group."""
        raise ValueError(
            f"{self.name} is infinite, so its elements cannot be listed. Draw from it with sample."
        )

    def stabiliser_elements(
        self, *, dtype: torch.dtype, device: torch.device | str = "cpu"
    ) -> Float[Tensor, "order m m"]:
        """Every element of a finite stabiliser H."""
        if self.stabiliser_order == 1:
            return self.identity(1, dtype=dtype, device=device)
        raise ValueError(
            f"the stabiliser of {self.name} is continuous, so its elements cannot be listed. Lift "
            'with scheme "random" or "evenly_spaced".'
        )

    def sample_stabiliser(
        self,
        *shape: int,
        generator: torch.Generator,
        dtype: torch.dtype,
        device: torch.device | str = "cpu",
    ) -> Float[Tensor, "*shape m m"]:
        """Haar-uniform elements of the stabiliser H."""
        elements = self.stabiliser_elements(dtype=dtype, device=device)
        return elements[integers(len(elements), *shape, generator=generator, device=device)]

    def stabiliser_rotation(self, angles: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape m m"]:
        """The elements of a circle-shaped stabiliser (SO(2) up to conjugation) by angle."""
        raise ValueError(
            f"the stabiliser of {self.name} is not a circle, unlike that of SE(2) or SO(3). Lift "
            'with scheme "exact" if it is finite, else "random".'
        )

    @property
    def has_circular_stabiliser(self) -> bool:
        """Whether the stabiliser can be sampled at evenly spaced angles."""
        return type(self).stabiliser_rotation is not Group.stabiliser_rotation

    # Pairs: what location-based attention, neighbourhoods and convolutions are made of.

    def pair_dimension(self, kind: PairFeatures) -> int:
        """Number of features of a pair, orbit invariants of both elements included."""
        require_choice("pair features", kind, PairFeatures)
        own = self.algebra_dimension if kind == "log" else self.canonical_dimension
        return own + 2 * self.orbit_dimension

    def pair_coordinates(
        self,
        g: Float[Tensor, "*#a m m"],
        g_prime: Float[Tensor, "*#a m m"],
        kind: PairFeatures = "log",
    ) -> Float[Tensor, "*a coordinates"]:
        """ν log(g⁻¹g'), or its canonical form."""
        relative = self.relative(g, g_prime)
        if kind == "log":
            return self.log_coordinates(relative)
        return self.canonical_coordinates(relative)

    def distance(
        self,
        g: Float[Tensor, "*#a m m"],
        g_prime: Float[Tensor, "*#a m m"],
        orbit_difference: Float[Tensor, "*#a orbit"] | None = None,
    ) -> Float[Tensor, "*a"]:
        """d(g, g') = ‖ν log(g⁻¹g')‖, rotation weighted against translation (§3.2).

        For a group that is not transitive, the difference of the orbit invariants belongs to
        the distance of two lifted points; left out, it is the distance within one orbit.
        """
        return self.distance_of_coordinates(self.pair_coordinates(g, g_prime), orbit_difference)

    def distance_of_coordinates(
        self,
        coordinates: Float[Tensor, "*shape algebra"],
        orbit_difference: Float[Tensor, "*shape orbit"] | None = None,
    ) -> Float[Tensor, "*shape"]:
        """The distance as a function of the log coordinates of g⁻¹g'.

        Orbit invariants count like a translation: two lifted points are close only if
        their orbits are. Where only one kind of coordinate exists there is nothing to
        weigh, and the distance is their plain norm.
        """
        translation = coordinates[..., : self.translation_dimension]
        rotation = coordinates[..., self.translation_dimension :]
        if orbit_difference is not None:
            translation = torch.cat([translation, orbit_difference], dim=-1)
        if translation.shape[-1] == 0:
            return safe_norm(rotation)
        if rotation.shape[-1] == 0:
            return safe_norm(translation)
        weight = self.rotation_weight
        return weight * safe_norm(rotation) + (1 - weight) * safe_norm(translation)
