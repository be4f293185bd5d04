"""∂V/∂q of a LieTransformer, differentiable by positions and parameters."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from lietransformer.models.lie_transformer import LieTransformer
from lietransformer.second_order.coordinates import PairCoordinates
from lietransformer.second_order.network import Network


def potential_gradient(
    model: LieTransformer,
    positions: Float[Tensor, "batch points space"],
    features: Float[Tensor, "batch points width"],
) -> Float[Tensor, "batch points space"]:
    """∂V/∂q, which can be differentiated once.

    Args:
        model: V. That it can be used has been asked of `applies`.
        positions: q; all points are real.
        features: of the points; not differentiated by.
    """
    parameters = tuple(model.parameters())
    result: Tensor = _PotentialGradient.apply(model, features, positions, *parameters)  # type: ignore[no-untyped-call]
    return result


class _PotentialGradient(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, model: LieTransformer, features: Tensor, positions: Tensor, *parameters: Tensor
    ) -> Tensor:
        pairs = PairCoordinates.of(model.config, positions.shape[1])
        network = Network(model, pairs.lifted(features))
        by_coordinates = network.gradient_by(pairs.at(positions))
        ctx.pairs, ctx.network = pairs, network
        ctx.save_for_backward(positions, *parameters)
        return pairs.pull_back(by_coordinates)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, direction: Tensor) -> tuple[Tensor | None, ...]:
        _ = ctx.saved_tensors  # raises if one of them has been changed in place since
        by_coordinates = ctx.network.second_by(ctx.pairs.tangent(direction))
        by_position = ctx.pairs.pull_back(by_coordinates)
        return (None, None, by_position, *ctx.network.by_parameters())
