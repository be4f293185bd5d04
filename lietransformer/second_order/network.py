"""A LieTransformer as a chain of operations with four passes."""

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from lietransformer.models.lie_transformer import LieTransformer
from lietransformer.native import head_mlp
from lietransformer.nn.block import LieTransformerBlock
from lietransformer.nn.kernels import MLPLocation
from lietransformer.nn.pooling import PoolThenMLP
from lietransformer.second_order.operations import (
    Chain,
    LayerNorm,
    Linear,
    MeanOfExample,
    PairAttention,
    Residual,
    Swish,
)


class Network:
    """V and its derivatives, for the features of a batch.

    Tensors are rows, one for each group element. Layers see positions through the scores of
    locations only, and those of all layers are functions of the same coordinates of pairs: they
    are computed for all layers at once.
    """

    def __init__(self, model: LieTransformer, features: Tensor) -> None:
        self._batch, self._elements, _ = features.shape
        self._features = features.flatten(0, 1).contiguous()
        # As they are now: a parameter can be another tensor by the time of the backward pass.
        self._parameters = tuple(model.parameters())
        self._of_modules: list[tuple[Linear | LayerNorm, Tensor, Tensor]] = []
        self._of_joint_maps: list[tuple[Linear, list[tuple[Tensor, Tensor]]]] = []
        self._attention: list[PairAttention] = []
        self._mlps = [_location_parameters(block) for block in model.blocks]
        self._packed = torch.cat([head_mlp.packed(mlp) for mlp in self._mlps])
        location = head_mlp.find(self._mlps[0])
        assert location is not None
        self._location = location
        blocks = [part for block in model.blocks for part in self._block(block)]
        head = model.head
        assert isinstance(head, PoolThenMLP)
        self._body = Chain(
            self._linear(model.embedding),
            *blocks,
            MeanOfExample(self._elements),
            Swish(),
            *self._linear_and_swish(head.hidden),
        )
        self._output = self._linear(head.output)

    def gradient_by(self, coordinates: Tensor) -> Tensor:
        """∂V/∂x for the coordinates x of all pairs, of the sum of V over the batch."""
        self._x = coordinates
        scores = self._location.value(coordinates, self._packed)
        for attention, location in zip(self._attention, self._by_layer(scores), strict=True):
            attention.location = location
        self._output.value(self._body.value(self._features))
        self._body.gradient(self._output.gradient(coordinates.new_ones(self._batch, 1)))
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
        self._output.tangent(self._body.tangent(None))
        # V̇ is the tangent of the output, so it does not depend on the output itself.
        self._body.second(self._output.second(tangent.new_zeros(self._batch, 1)))
        b = self._of_all_layers([attention.second_by_location for attention in self._attention])
        by_x, self._by_packed = self._location.second(self._x, self._packed, tangent, self._g, b)
        return by_x

    def by_parameters(self) -> list[Tensor]:
        """∂V̇/∂θ for each of the model's parameters."""
        sums: dict[int, Tensor] = {}
        for parameter, gradient in self._gradients():
            # A parameter can be that of several modules.
            before = sums.get(id(parameter))
            sums[id(parameter)] = gradient if before is None else before + gradient
        return [sums[id(parameter)] for parameter in self._parameters]

    def _gradients(self) -> Iterable[tuple[Tensor, Tensor]]:
        for operation, weight, bias in self._of_modules:
            yield weight, operation.by_weight
            yield bias, operation.by_bias
        for joint, maps in self._of_joint_maps:
            widths = [len(bias) for _, bias in maps]
            pieces = zip(joint.by_weight.split(widths), joint.by_bias.split(widths), strict=True)
            for (weight, bias), (by_weight, by_bias) in zip(maps, pieces, strict=True):
                yield weight, by_weight
                yield bias, by_bias
        heads = len(self._packed) // len(self._mlps)
        for mlp, numbers in zip(self._mlps, self._by_packed.split(heads), strict=True):
            yield from zip(mlp, head_mlp.unpacked(numbers, like=mlp), strict=True)

    def _block(self, block: nn.Module) -> tuple[Residual, Residual]:
        assert isinstance(block, LieTransformerBlock)
        attention = block.attention
        pairs = PairAttention(
            self._elements,
            attention.heads,
            attention.value.out_features,
            inputs_depend=bool(self._attention),  # in the first layer they do not
        )
        self._attention.append(pairs)
        attend = Residual(
            self._norm(block.attention_norm),
            self._joint([attention.query, attention.key, attention.value]),
            pairs,
            self._linear(attention.output),
        )
        return attend, Residual(self._norm(block.mlp_norm), *self._linear_and_swish(block.mlp))

    def _norm(self, module: nn.Module) -> LayerNorm:
        assert isinstance(module, nn.LayerNorm)
        norm = LayerNorm(_plain(module.weight), _plain(module.bias), module.eps)
        self._of_modules.append((norm, module.weight, module.bias))
        return norm

    def _linear(self, module: nn.Module) -> Linear:
        assert isinstance(module, nn.Linear)
        linear = Linear(_plain(module.weight), _plain(module.bias))
        self._of_modules.append((linear, module.weight, module.bias))
        return linear

    def _linear_and_swish(self, modules: Iterable[nn.Module]) -> list[Linear | Swish]:
        return [operation for module in modules for operation in (self._linear(module), Swish())]

    def _joint(self, modules: list[nn.Linear]) -> Linear:
        """Several maps of the same input as one."""
        maps: list[tuple[Tensor, Tensor]] = [(module.weight, module.bias) for module in modules]
        joint = Linear(
            torch.cat([weight.detach() for weight, _ in maps]),
            torch.cat([bias.detach() for _, bias in maps]),
        )
        self._of_joint_maps.append((joint, maps))
        return joint

    def _by_layer(self, scores: Tensor) -> tuple[Tensor, ...]:
        """(layers · heads, 1, columns) as scores (heads, batch, n, n) of each layer."""
        shape = (len(self._attention), -1, self._batch, self._elements, self._elements)
        return scores.view(shape).unbind()

    def _of_all_layers(self, scores: list[Tensor]) -> Tensor:
        return torch.stack(scores).view(len(self._packed), 1, -1)


def _location_parameters(block: nn.Module) -> list[Tensor]:
    assert isinstance(block, LieTransformerBlock)
    assert isinstance(block.attention.location, MLPLocation)
    return block.attention.location.mlp.layer_parameters()


def _plain(parameter: Tensor) -> Tensor:
    return parameter.detach().contiguous()
