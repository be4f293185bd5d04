"""Which potentials the passes are written for, and when they are used."""

from functools import cache
from typing import TypeGuard

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad

from lietransformer.groups import get_group
from lietransformer.models.lie_transformer import LieTransformer, LieTransformerConfig
from lietransformer.native import head_mlp, library
from lietransformer.neighbourhood import NeighbourhoodConfig
from lietransformer.nn.attention import AttentionConfig, LieSelfAttention
from lietransformer.nn.block import LieTransformerBlock
from lietransformer.nn.kernels import AdditiveCombination, DotProductContent, MLPLocation
from lietransformer.nn.mlp import PerHeadLinear, PerHeadMLP
from lietransformer.nn.pooling import PoolThenMLP
from lietransformer.second_order.coordinates import are_affine
from lietransformer.second_order.operations import LayerNorm, PairAttention, Swish

# Elements of an example. The passes are for small sets: scores of a head are kept on the stack,
# and coordinates are a dense matrix of all pairs by all positions.
MOST_ELEMENTS = 32

# What the passes know the parameters and the computation of. Exactly these types: classes derived
# from them, those that torch derives for parametrisations included, may compute something else.
_KNOWN_MODULES = {
    *(nn.ModuleList, nn.Linear, nn.LayerNorm, LieTransformer, LieTransformerBlock),
    *(LieSelfAttention, DotProductContent, MLPLocation, AdditiveCombination),
    *(PerHeadMLP, PerHeadLinear, PoolThenMLP),
}


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


def applies(model: nn.Module, positions: Tensor, features: Tensor) -> TypeGuard[LieTransformer]:
    """Whether to use them here: for numbers in single precision on a CPU, with a C compiler.

    Only for plain training and evaluation: what goes beyond, such as gradients by features,
    PyTorch does in its general way.
    """
    if type(model) is not LieTransformer or torch.compiler.is_compiling():
        return False
    tensors = (positions, features, *model.parameters())
    samples = model.config.lift.samples_for(get_group(model.config.group))
    elements = positions.shape[1] * samples
    return (
        written_for(model.config)
        and 1 <= elements <= MOST_ELEMENTS
        and len(positions) > 0
        and all(tensor.dtype == torch.float32 for tensor in tensors)
        and all(tensor.device.type == "cpu" for tensor in tensors)
        and not features.requires_grad
        and _nothing_else_is_going_on(tensors)
        and all(map(_is_known, model.modules()))
        and _is_compiled(model.config, elements)
    )


def _nothing_else_is_going_on(tensors: tuple[Tensor, ...]) -> bool:
    """No forward differentiation, no vmap, no autocast."""
    return (
        forward_ad._current_level < 0
        and not torch.is_autocast_enabled("cpu")
        and not any(map(torch._C._functorch.is_functorch_wrapped_tensor, tensors))
    )


def _is_known(module: nn.Module) -> bool:
    has_hooks = (
        module._forward_hooks
        or module._forward_pre_hooks
        or module._backward_hooks
        or module._backward_pre_hooks
    )
    return type(module) in _KNOWN_MODULES and not has_hooks


@cache
def _is_compiled(config: LieTransformerConfig, elements: int) -> bool:
    """Whether all C code for such a model can be had."""
    pair_dimension = get_group(config.group).pair_dimension(config.pair_features)
    return all(
        code is not None
        for code in (
            library.load(*Swish.source()),
            library.load(*LayerNorm.source(config.width)),
            library.load(*PairAttention.source(elements, config.heads, config.width)),
            head_mlp.compiled(pair_dimension, config.attention.kernel_width, 1),
        )
    )
