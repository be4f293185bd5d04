"""Which potentials the passes are written for, and when they are used."""

from functools import cache
from typing import TypeGuard

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad

from lietransformer.groups import get_group
from lietransformer.models.lie_transformer import LieTransformer, LieTransformerConfig
from lietransformer.native import head_mlp
from lietransformer.neighbourhood import NeighbourhoodConfig
from lietransformer.nn.attention import AttentionConfig, LieSelfAttention
from lietransformer.nn.block import LieTransformerBlock
from lietransformer.nn.kernels import AdditiveCombination, DotProductContent, MLPLocation
from lietransformer.nn.mlp import PerHeadLinear, PerHeadMLP
from lietransformer.nn.pooling import PoolThenMLP
from lietransformer.second_order import network
from lietransformer.second_order.coordinates import are_affine

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

_EPSILON = 1e-5  # of layer norms, as in potential.c


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
    if type(model) is not LieTransformer or not takes(positions):
        return False
    samples = model.config.lift.samples_for(get_group(model.config.group))
    elements = positions.shape[1] * samples
    return (
        written_for(model.config)
        and 1 <= elements <= MOST_ELEMENTS
        and all(map(_is_plain, (features, *model.parameters())))
        and not features.requires_grad
        and all(map(_is_known, model.modules()))
        and _is_compiled(model.config, elements)
    )


def takes(positions: Tensor) -> bool:
    """Whether to use them for these positions, where they have been used for others before.

    Not inside of forward differentiation, vmap, autocast, or the compiler.
    """
    return (
        len(positions) > 0
        and _is_plain(positions)
        and forward_ad._current_level < 0
        and not torch.is_autocast_enabled("cpu")
        and not torch.compiler.is_compiling()
    )


def _is_plain(tensor: Tensor) -> bool:
    return (
        tensor.dtype == torch.float32
        and tensor.device.type == "cpu"
        and not torch._C._functorch.is_functorch_wrapped_tensor(tensor)
    )


def _is_known(module: nn.Module) -> bool:
    has_hooks = (
        module._forward_hooks
        or module._forward_pre_hooks
        or module._backward_hooks
        or module._backward_pre_hooks
    )
    is_known = type(module) in _KNOWN_MODULES and not has_hooks
    return is_known and not (isinstance(module, nn.LayerNorm) and module.eps != _EPSILON)


@cache
def _is_compiled(config: LieTransformerConfig, elements: int) -> bool:
    """Whether all C code for such a model can be had."""
    pair_dimension = get_group(config.group).pair_dimension(config.pair_features)
    mlp = head_mlp.compiled(pair_dimension, config.attention.kernel_width, 1)
    return mlp is not None and network.load(config, elements) is not None
