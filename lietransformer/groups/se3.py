"""SE(3), rotations and translations of space."""

from jaxtyping import Float
from torch import Tensor

from lietransformer.groups.semidirect import Semidirect
from lietransformer.groups.series import (
    inverse_jacobian_ratio,
    sine_remainder,
    versine_ratio,
)
from lietransformer.groups.so3 import SO3, cross


class SE3(Semidirect):
    """ν[log(tR)] = (V⁻¹t, r) with r = ν[log R] and, for K the skew matrix of r (App. F),

    V = I + (1−cos θ)/θ²·K + (θ−sin θ)/θ³·K²,  V⁻¹ = I − ½K + (1−(θ/2)cot(θ/2))/θ²·K².

    (The paper writes R − Rᵀ for K, which is K times 2 sin θ/θ.) The stabiliser is
    SO(3), sampled: equivariant in distribution, exact when the samples move with the input.
    """

    def __init__(self) -> None:
        super().__init__("SE(3)", SO3())

    def exp_translation(
        self, linear: Float[Tensor, "*shape k"], translation: Float[Tensor, "*shape n"]
    ) -> Float[Tensor, "*shape n"]:
        squared_angle = linear.square().sum(-1, keepdim=True)
        once = cross(linear, translation)
        twice = cross(linear, once)
        return (
            translation
            + versine_ratio(squared_angle) * once
            + sine_remainder(squared_angle) * twice
        )

    def log_translation(
        self, linear: Float[Tensor, "*shape k"], translation: Float[Tensor, "*shape n"]
    ) -> Float[Tensor, "*shape n"]:
        squared_angle = linear.square().sum(-1, keepdim=True)
        once = cross(linear, translation)
        twice = cross(linear, once)
        return translation - once / 2 + inverse_jacobian_ratio(squared_angle) * twice
