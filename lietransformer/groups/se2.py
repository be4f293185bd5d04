"""SE(2), rotations and translations of the plane."""

import torch
from jaxtyping import Float
from torch import Tensor

from lietransformer.groups.semidirect import Semidirect
from lietransformer.groups.series import inverse_jacobian_ratio, sine_ratio, versine_ratio
from lietransformer.groups.so2 import SO2, rotation_matrix


class PlanarMotion(Semidirect):
    """ν[log(tR)] = (V⁻¹t, θ) with V = [[a, −b], [b, a]], a = sin θ/θ, b = (1−cos θ)/θ (App. F).

    Shared by SE(2), T(2) ⋊ Cₙ and the motions of T(2) ⋊ Dₙ. With z = t₀ + i·t₁, V is
    multiplication by (e^{iθ} − 1)/(iθ), whose inverse is (θ/2)(cot(θ/2) − i).
    """

    def exp_translation(
        self, linear: Float[Tensor, "*shape k"], translation: Float[Tensor, "*shape n"]
    ) -> Float[Tensor, "*shape n"]:
        angle = linear[..., 0]
        a = sine_ratio(angle.square())
        b = angle * versine_ratio(angle.square())
        first, second = translation.unbind(-1)
        return torch.stack([a * first - b * second, b * first + a * second], dim=-1)

    def log_translation(
        self, linear: Float[Tensor, "*shape k"], translation: Float[Tensor, "*shape n"]
    ) -> Float[Tensor, "*shape n"]:
        angle = linear[..., 0]
        a = 1 - angle.square() * inverse_jacobian_ratio(angle.square())
        b = angle / 2
        first, second = translation.unbind(-1)
        return torch.stack([a * first + b * second, a * second - b * first], dim=-1)


class SE2(PlanarMotion):
    """SE(2) = T(2) ⋊ SO(2), of stabiliser SO(2).

    With a finite sample Ĥ of rotations a model is equivariant in distribution; it is exact
    when the samples move with the input, and exactly T(2) ⋊ Cₖ-equivariant for Ĥ = Cₖ.
    """

    def __init__(self) -> None:
        super().__init__("SE(2)", SO2())

    def stabiliser_rotation(self, angles: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape m m"]:
        return self._embed(rotation_matrix(angles))
