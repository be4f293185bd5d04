"""∂V/∂q of a LieTransformer, differentiable by positions and parameters."""

from typing import Any, TypeGuard

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.autograd.function import once_differentiable

from lietransformer.models.lie_transformer import LieTransformer, LieTransformerConfig
from lietransformer.native import head_mlp
from lietransformer.neighbourhood import NeighbourhoodConfig
from lietransformer.nn.attention import AttentionConfig, LieSelfAttention
from lietransformer.nn.block import LieTransformerBlock
from lietransformer.nn.kernels import MLPLocation
from lietransformer.nn.pooling import PoolThenMLP
from lietransformer.second_order.coordinates import PairCoordinates, are_affine
from lietransformer.second_order.operations import (
    Chain,
    LayerNorm,
    Linear,
    MeanOfExample,
    PairAttention,
    Residual,
    Swish,
    available,
)


def written_for(config: object) -> bool:
    """Whether a model of these settings is a potential that the passes are written for."""
    return (
        isinstance(config, LieTransformerConfig)
        and config.attention == AttentionConfig(kernel_width=config.attention.kernel_width)
        and config.attention.kernel_width <= head_mlp.WIDEST
        and config.neighbourhood == NeighbourhoodConfig()
        and config.head == "pool_then_mlp"
        and config.norm == "layer"
        and config.output_width == 1
        and are_affine(config)
    )


def applies(model: nn.Module, positions: Tensor) -> TypeGuard[LieTransformer]:
    """Whether to use them here: for numbers in single precision on a CPU, with a C compiler."""
    return (
        isinstance(model, LieTransformer)
        and not torch.compiler.is_compiling()
        and written_for(model.config)
        and positions.dtype == model.embedding.weight.dtype == torch.float32
        and positions.device.type == model.embedding.weight.device.type == "cpu"
        and _is_plain(positions)
        and available()
    )


def potential_gradient(
    model: LieTransformer,
    positions: Float[Tensor, "batch points space"],
    features: Float[Tensor, "batch points width"],
) -> Float[Tensor, "batch points space"]:
    """∂V/∂q, which can be differentiated once.

    Args:
        model: V, one that `applies`.
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
        network = _Network(model, pairs.lifted(features))
        by_coordinates = network.gradient_by(pairs.at(positions))
        ctx.pairs, ctx.network = pairs, network
        ctx.save_for_backward(positions, *parameters)  # for its check that none has changed
        return pairs.pull_back(by_coordinates)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, direction: Tensor) -> tuple[Tensor | None, ...]:
        _, *parameters = ctx.saved_tensors
        by_coordinates = ctx.network.second_by(ctx.pairs.tangent(direction))
        by_parameter = ctx.network.by_parameter()
        by_position = ctx.pairs.pull_back(by_coordinates)
        return (None, None, by_position, *(by_parameter[id(p)] for p in parameters))


class _Network:
    """A LieTransformer as a chain of operations on rows, one row for each group element.

    Layers see the positions through the scores of locations only, and those of all layers are
    functions of the same coordinates: they are computed for all layers at once.
    """

    def __init__(self, model: LieTransformer, features: Tensor) -> None:
        self._batch, self._points, _ = features.shape
        self._features = features.flatten(0, 1)
        self._linear: list[tuple[Linear | LayerNorm, nn.Module]] = []
        self._joint: list[tuple[Linear, LieSelfAttention]] = []
        self._attention: list[PairAttention] = []
        self._mlp_parameters = [_mlp_parameters(block) for block in model.blocks]
        self._packed = torch.cat([head_mlp.packed(p) for p in self._mlp_parameters])
        code = head_mlp.find(self._mlp_parameters[0])
        assert code is not None
        self._location = code
        blocks = [part for block in model.blocks for part in self._block(block)]
        head = model.head
        assert isinstance(head, PoolThenMLP)
        hidden = [part for layer in head.hidden for part in (self._of(layer), Swish())]
        self._to_output = self._of(head.output)
        self._body = Chain(
            self._of(model.embedding), *blocks, MeanOfExample(self._points), Swish(), *hidden
        )

    def gradient_by(self, coordinates: Tensor) -> Tensor:
        """∂V/∂x for the coordinates x of all pairs, added up over the batch's examples."""
        self._x = coordinates
        scores = self._location.value(coordinates, self._packed)
        for attention, location in zip(self._attention, self._by_layer(scores), strict=True):
            attention.location = location
        self._to_output.value(self._body.value(self._features))
        g = self._to_output.gradient(coordinates.new_ones(self._batch, 1))
        self._body.gradient(g)
        self._g = self._of_all_layers([attention.by_location for attention in self._attention])
        by_x, _ = self._location.gradient(
            coordinates, self._packed, self._g, of_x=True, of_parameters=False
        )
        assert by_x is not None
        return by_x

    def second_by(self, tangent: Tensor) -> Tensor:
        """∂V̇/∂x for the tangent of the coordinates; the gradients by parameters are kept."""
        scores = self._location.tangent(self._x, self._packed, tangent)
        for attention, location in zip(self._attention, self._by_layer(scores), strict=True):
            attention.location_tangent = location
        t = self._body.tangent(None)
        self._to_output.tangent(t)
        # V̇ is the tangent of the output, so it does not depend on the output itself.
        b = self._to_output.second(tangent.new_zeros(self._batch, 1))
        self._body.second(b)
        b = self._of_all_layers([attention.second_by_location for attention in self._attention])
        by_x, self._by_packed = self._location.second(self._x, self._packed, tangent, self._g, b)
        return by_x

    def by_parameter(self) -> dict[int, Tensor]:
        """∂V̇/∂θ by the identity of the parameter."""
        found: dict[int, Tensor] = {}
        for operation, module in self._linear:
            found[id(module.weight)] = operation.by_weight
            found[id(module.bias)] = operation.by_bias
        for joint, attention in self._joint:
            maps = (attention.query, attention.key, attention.value)
            widths = [m.out_features for m in maps]
            weights, biases = joint.by_weight.split(widths), joint.by_bias.split(widths)
            for m, by_weight, by_bias in zip(maps, weights, biases, strict=True):
                found[id(m.weight)], found[id(m.bias)] = by_weight, by_bias
        heads = self._packed.shape[0] // len(self._mlp_parameters)
        for numbers, parameters in zip(
            self._by_packed.split(heads), self._mlp_parameters, strict=True
        ):
            for piece, parameter in zip(
                head_mlp.unpacked(numbers, like=parameters), parameters, strict=True
            ):
                found[id(parameter)] = piece
        return found

    def _block(self, block: nn.Module) -> tuple[Residual, Residual]:
        assert isinstance(block, LieTransformerBlock)
        module = block.attention
        maps = (module.query, module.key, module.value)
        joint = Linear(torch.cat([m.weight for m in maps]), torch.cat([m.bias for m in maps]))
        pairs = PairAttention(
            self._points,
            module.heads,
            module.value.out_features // module.heads,
            inputs_depend=bool(self._attention),  # in the first layer they do not
        )
        self._joint.append((joint, module))
        self._attention.append(pairs)
        norm, output = self._of(block.attention_norm), self._of(module.output)
        mlp = [part for layer in block.mlp for part in (self._of(layer), Swish())]
        return Residual(norm, joint, pairs, output), Residual(self._of(block.mlp_norm), *mlp)

    def _of(self, module: nn.Module) -> Any:
        operation: Linear | LayerNorm
        if isinstance(module, nn.LayerNorm):
            operation = LayerNorm(module.weight.detach(), module.bias.detach(), module.eps)
        else:
            assert isinstance(module, nn.Linear)
            operation = Linear(module.weight.detach(), module.bias.detach())
        self._linear.append((operation, module))
        return operation

    def _by_layer(self, scores: Tensor) -> tuple[Tensor, ...]:
        """(layers · heads, 1, columns) as scores (heads, batch, n, n) of each layer."""
        shape = (len(self._attention), -1, self._batch, self._points, self._points)
        return scores.view(shape).unbind()

    def _of_all_layers(self, scores: list[Tensor]) -> Tensor:
        return torch.stack(scores).view(self._packed.shape[0], 1, -1)


def _mlp_parameters(block: nn.Module) -> list[Tensor]:
    assert isinstance(block, LieTransformerBlock)
    assert isinstance(block.attention.location, MLPLocation)
    return block.attention.location.mlp.layer_parameters()


def _is_plain(positions: Tensor) -> bool:
    """Whether nothing but plain reverse differentiation is going on."""
    return (
        not torch._C._functorch.is_functorch_wrapped_tensor(positions)
        and forward_ad._current_level < 0
        and not torch.is_autocast_enabled("cpu")
    )
