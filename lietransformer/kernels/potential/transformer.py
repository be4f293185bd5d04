"""The LieTransformer for `transformer.c`."""

import ctypes
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from lietransformer.kernels import build as library
from lietransformer.kernels.potential.parameters import Field, filled_up, row_length
from lietransformer.models.lie_transformer import LieTransformer, LieTransformerConfig
from lietransformer.nn.attention import AttentionConfig, LieSelfAttention
from lietransformer.nn.block import LieTransformerBlock
from lietransformer.nn.mlp import PerHeadLinear, PerHeadMLP
from lietransformer.nn.pooling import PoolThenMLP
from lietransformer.nn.scores import AdditiveCombination, DotProductContent, MLPLocation
from lietransformer.pairs import NeighbourhoodConfig

# What the C code knows the parameters and the computation of. Exactly these types: classes derived
# from them, those that torch derives for parametrisations included, may compute something else.
MODULES = {
    *(nn.ModuleList, nn.Linear, nn.LayerNorm, LieTransformer, LieTransformerBlock),
    *(LieSelfAttention, DotProductContent, MLPLocation, AdditiveCombination),
    *(PerHeadMLP, PerHeadLinear, PoolThenMLP),
}

# The backward pass keeps a dozen arrays of (elements, channels of a head) on the stack of a thread:
# with as many elements as there may be, 0.4 megabytes for heads of this width. Some systems give
# a thread no more than one or two.
_WIDEST_HEAD = 256


def written_for(config: LieTransformerConfig) -> bool:
    """Whether the C code computes a model of these settings."""
    return (
        config.width // config.heads <= _WIDEST_HEAD
        and config.attention == AttentionConfig(kernel_width=config.attention.kernel_width)
        and config.neighbourhood == NeighbourhoodConfig()
        and config.head == "pool_then_mlp"
        and config.norm == "layer"
    )


def mlp_widths(config: LieTransformerConfig) -> tuple[int, int]:
    """Of the MLPs that scores of locations come from: of hidden layers, and of the outputs."""
    return config.attention.kernel_width, 1


def load(config: LieTransformerConfig, elements: int) -> ctypes.CDLL | None:
    """The code for models of these settings and examples of so many elements; None without C."""
    definitions = {
        "POINTS": elements,
        "LAYERS": config.layers,
        "HEADS": config.heads,
        "HEAD_WIDTH": config.width // config.heads,
        "ROW_LENGTH": row_length(config.width),
    }
    return library.load("transformer.c", tuple(definitions.items()))


def inputs(
    model: LieTransformer,
    features: Tensor,
    elements: int,  # noqa: ARG001 – any
) -> tuple[Tensor, Tensor]:
    """What the first layer is given, as rows: features, and their queries, keys and values."""
    block = _blocks(model)[0]
    rows = model.embedding(features)
    normal, attention = block.attention_norm(rows), block.attention
    length = row_length(model.config.width)
    maps = (attention.query, attention.key, attention.value)
    joint = torch.cat([filled_up(map_(normal), length) for map_ in maps], dim=1)
    return filled_up(rows, length).contiguous(), joint


def mlps(model: LieTransformer) -> list[list[Tensor]]:
    """The weights and biases of the MLPs of locations, layer by layer."""
    found = []
    for block in _blocks(model):
        assert isinstance(block.attention.location, MLPLocation)
        found.append(block.attention.location.mlp.layer_parameters())
    return found


def fields(model: LieTransformer, elements: int) -> Iterator[Field]:  # noqa: ARG001 – any
    """`struct parameters`."""
    for number, block in enumerate(_blocks(model)):
        attention = block.attention
        # In the first layer, they are applied before the C code begins.
        is_used = number > 0
        yield from _norm(block.attention_norm, is_used=is_used)
        yield from _linear(attention.query, attention.key, attention.value, is_used=is_used)
        yield from _linear(attention.output)
        yield from _norm(block.mlp_norm)
        for layer in block.mlp:
            yield from _linear(layer)
    assert isinstance(model.head, PoolThenMLP)
    for layer in model.head.hidden:
        yield from _linear(layer)
    width = model.config.width
    yield Field((row_length(width),), tensors=(model.head.output.weight,), shape=(width,))


def output_bias(model: LieTransformer) -> Tensor:
    """The constant that is added to V."""
    assert isinstance(model.head, PoolThenMLP)
    return model.head.output.bias


def _blocks(model: LieTransformer) -> list[LieTransformerBlock]:
    return [block for block in model.blocks if isinstance(block, LieTransformerBlock)]


def _norm(module: nn.Module, *, is_used: bool = True) -> Iterator[Field]:
    assert isinstance(module, nn.LayerNorm)
    (width,) = module.normalized_shape
    for tensor in (module.weight, module.bias):
        yield Field((row_length(width),), 1, (tensor,) if is_used else (), (width,))


def _linear(*modules: nn.Module, is_used: bool = True) -> Iterator[Field]:
    linears = [module for module in modules if isinstance(module, nn.Linear)]
    width, count = linears[0].in_features, len(linears)
    length = row_length(width)
    weights = tuple(linear.weight for linear in linears) if is_used else ()
    biases = tuple(linear.bias for linear in linears) if is_used else ()
    yield Field((length, length), count, weights, (width, width))
    yield Field((length,), count, biases, (width,))
