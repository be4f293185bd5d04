"""T(n) ⋊ K: translations together with a linear group K that fixes the origin."""

import torch
from jaxtyping import Float
from torch import Tensor

from lietransformer.groups.base import Group, PairFeatures
from lietransformer.rng import normal


class Semidirect(Group):
    """Elements tR with R ∈ K, as homogeneous matrices [[R, t], [0, 1]]; x ↦ Rx + t.

    Acts transitively on Rⁿ. The origin's stabiliser is K, so a point x is lifted to
    t_x·h with h ∈ K (§2.2): exactly where K is finite, by samples where it is not.
    Coordinates are the translation first, then K's.
    """

    def __init__(self, name: str, linear: Group) -> None:
        self.name = name
        self.linear = linear
        self.space_dimension = self.translation_dimension = linear.space_dimension
        self.matrix_size = linear.space_dimension + 1
        self.algebra_dimension = linear.space_dimension + linear.algebra_dimension
        self.canonical_dimension = linear.space_dimension + linear.canonical_dimension
        self.stabiliser_order = linear.order

    def assemble(
        self, linear: Float[Tensor, "*#a n n"], translation: Float[Tensor, "*#a n"]
    ) -> Float[Tensor, "*a m m"]:
        """The homogeneous matrix [[R, t], [0, 1]]."""
        shape = torch.broadcast_shapes(linear.shape[:-1], translation.shape)
        top = torch.cat(
            [
                linear.expand(*shape, self.space_dimension),
                translation.expand(shape)[..., None],
            ],
            dim=-1,
        )
        bottom = top.new_zeros(*shape[:-1], 1, self.matrix_size)
        bottom[..., -1] = 1
        return torch.cat([top, bottom], dim=-2)

    def linear_part(self, g: Float[Tensor, "*shape m m"]) -> Float[Tensor, "*shape n n"]:
        """R of [[R, t], [0, 1]]."""
        return g[..., : self.space_dimension, : self.space_dimension]

    def translation_part(self, g: Float[Tensor, "*shape m m"]) -> Float[Tensor, "*shape n"]:
        """t of [[R, t], [0, 1]]."""
        return g[..., : self.space_dimension, self.space_dimension]

    def inverse(self, g: Float[Tensor, "*shape m m"]) -> Float[Tensor, "*shape m m"]:
        inverse = self.linear.inverse(self.linear_part(g))
        return self.assemble(inverse, -_apply(inverse, self.translation_part(g)))

    def relative(
        self, g: Float[Tensor, "*#a m m"], g_prime: Float[Tensor, "*#a m m"]
    ) -> Float[Tensor, "*a m m"]:
        return self.assemble(*self._relative_parts(g, g_prime))

    def _relative_parts(self, g: Tensor, g_prime: Tensor) -> tuple[Tensor, Tensor]:
        """R and t of g⁻¹g'."""
        # R⁻¹(t' − t) rather than R⁻¹t' − R⁻¹t: far from the origin the latter cancels.
        inverse = self.linear.inverse(self.linear_part(g))
        difference = self.translation_part(g_prime) - self.translation_part(g)
        return inverse @ self.linear_part(g_prime), _apply(inverse, difference)

    def pair_coordinates(
        self,
        g: Float[Tensor, "*#a m m"],
        g_prime: Float[Tensor, "*#a m m"],
        kind: PairFeatures = "log",
    ) -> Float[Tensor, "*a coordinates"]:
        # The homogeneous matrices of all pairs would be put together only to be taken apart.
        linear, translation = self._relative_parts(g, g_prime)
        if kind == "log":
            return self._log_of_parts(linear, translation)
        return self._canonical_of_parts(linear, translation)

    def exp(self, coordinates: Float[Tensor, "*shape algebra"]) -> Float[Tensor, "*shape m m"]:
        translation = coordinates[..., : self.space_dimension]
        linear = coordinates[..., self.space_dimension :]
        return self.assemble(self.linear.exp(linear), self.exp_translation(linear, translation))

    def log_coordinates(self, g: Float[Tensor, "*shape m m"]) -> Float[Tensor, "*shape algebra"]:
        return self._log_of_parts(self.linear_part(g), self.translation_part(g))

    def _log_of_parts(self, linear: Tensor, translation: Tensor) -> Tensor:
        coordinates = self.linear.log_coordinates(linear)
        return torch.cat([self.log_translation(coordinates, translation), coordinates], dim=-1)

    def exp_translation(
        self, linear: Float[Tensor, "*shape k"], translation: Float[Tensor, "*shape n"]
    ) -> Float[Tensor, "*shape n"]:
        """V(r)·t', the translation of exp(t', r) (App. F); V = I unless K has rotations."""
        return translation

    def log_translation(
        self, linear: Float[Tensor, "*shape k"], translation: Float[Tensor, "*shape n"]
    ) -> Float[Tensor, "*shape n"]:
        """V(r)⁻¹·t, the translation coordinates of the logarithm (App. F)."""
        return translation

    def canonical_coordinates(
        self, g: Float[Tensor, "*shape m m"]
    ) -> Float[Tensor, "*shape canonical"]:
        return self._canonical_of_parts(self.linear_part(g), self.translation_part(g))

    def _canonical_of_parts(self, linear: Tensor, translation: Tensor) -> Tensor:
        return torch.cat([translation, self.linear.canonical_coordinates(linear)], dim=-1)

    def act(
        self, g: Float[Tensor, "*#a m m"], points: Float[Tensor, "*#a n"]
    ) -> Float[Tensor, "*a n"]:
        self._require_points(points)
        return _apply(self.linear_part(g), points) + self.translation_part(g)

    def section(self, points: Float[Tensor, "*shape n"]) -> Float[Tensor, "*shape m m"]:
        identity = self.linear.identity(dtype=points.dtype, device=points.device)
        return self.assemble(identity, points)

    def sample(
        self,
        *shape: int,
        generator: torch.Generator,
        dtype: torch.dtype,
        device: torch.device | str = "cpu",
        scale: float = 1.0,
    ) -> Float[Tensor, "*shape m m"]:
        linear = self.linear.sample(*shape, generator=generator, dtype=dtype, device=device)
        translation = normal(
            *shape, self.space_dimension, generator=generator, dtype=dtype, device=device
        )
        return self.assemble(linear, scale * translation)

    def stabiliser_elements(
        self, *, dtype: torch.dtype, device: torch.device | str = "cpu"
    ) -> Float[Tensor, "order m m"]:
        if self.stabiliser_order is None:
            return super().stabiliser_elements(dtype=dtype, device=device)
        return self._embed(self.linear.elements(dtype=dtype, device=device))

    def sample_stabiliser(
        self,
        *shape: int,
        generator: torch.Generator,
        dtype: torch.dtype,
        device: torch.device | str = "cpu",
    ) -> Float[Tensor, "*shape m m"]:
        return self._embed(
            self.linear.sample(*shape, generator=generator, dtype=dtype, device=device)
        )

    def _embed(self, linear: Tensor) -> Tensor:
        return self.assemble(linear, linear.new_zeros(self.space_dimension))


def _apply(matrix: Tensor, vector: Tensor) -> Tensor:
    return (matrix @ vector[..., None])[..., 0]
