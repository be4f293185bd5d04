"""Which potentials the passes are written for, and when they are used."""

from functools import cache
from types import ModuleType
from typing import TypeGuard

import torch
from torch import Tensor, nn

from lietransformer.dispatch import has_tangents
from lietransformer.groups import get_group
from lietransformer.kernels import head_mlp
from lietransformer.kernels.conditions import is_wrapped
from lietransformer.kernels.potential import convolution, transformer
from lietransformer.kernels.potential.coordinates import are_affine
from lietransformer.models.lie_resnet import LieResNet, LieResNetConfig
from lietransformer.models.lie_transformer import LieTransformer, LieTransformerConfig

# Elements of an example. The passes are for small sets: scores of a head are kept on the stack,
# and coordinates are a dense matrix of all pairs by all positions.
MOST_ELEMENTS = 32

_EPSILON = 1e-5  # of layer norms, as in transformer.c


Model = LieTransformer | LieResNet


def code_for(config: object) -> ModuleType | None:
    """The module that prepares models of a kind for their C code."""
    if isinstance(config, LieTransformerConfig):
        return transformer
    return convolution if isinstance(config, LieResNetConfig) else None


def written_for(config: object) -> bool:
    """Whether a model of these settings is a potential that the passes are written for."""
    code = code_for(config)
    return (
        isinstance(config, LieTransformerConfig | LieResNetConfig)
        and code is not None
        and code.written_for(config)
        and max(code.mlp_widths(config)) <= head_mlp.WIDEST
        and config.output_width == 1
        and are_affine(config)
    )


def applies(model: nn.Module, positions: Tensor, features: Tensor) -> TypeGuard[Model]:
    """Whether to use them here: for numbers in single precision on a CPU, with a C compiler.

    Only for plain training and evaluation: what goes beyond, such as gradients by features,
    PyTorch does in its general way.
    """
    if type(model) not in (LieTransformer, LieResNet) or not takes(positions):
        return False
    assert isinstance(model, LieTransformer | LieResNet)
    samples = model.config.lift.samples_for(get_group(model.config.group))
    elements = positions.shape[1] * samples
    return (
        positions.shape[:-1] == features.shape[:-1]
        and written_for(model.config)
        and 1 <= elements <= MOST_ELEMENTS
        and all(map(_is_plain, (features, *model.parameters())))
        and not features.requires_grad
        and all(_is_known(module, model.config) for module in model.modules())
        and _is_compiled(model.config, elements)
    )


def takes(positions: Tensor) -> bool:
    """Whether to use them for these positions, where they have been used for others before.

    Not inside of forward differentiation, vmap, autocast, or the compiler.
    """
    return (
        not torch.compiler.is_compiling()  # first: it cannot trace the rest
        and len(positions) > 0
        and _is_plain(positions)
        and not has_tangents()
        and not torch.is_autocast_enabled("cpu")
    )


def _is_plain(tensor: Tensor) -> bool:
    return tensor.dtype == torch.float32 and tensor.device.type == "cpu" and not is_wrapped(tensor)


def _is_known(module: nn.Module, config: object) -> bool:
    code = code_for(config)
    assert code is not None
    has_hooks = (
        module._forward_hooks
        or module._forward_pre_hooks
        or module._backward_hooks
        or module._backward_pre_hooks
    )
    # The C code has places for all of them; a map may do without a bias, a norm without both.
    lacks_any = any(getattr(module, name, 0) is None for name in ("weight", "bias"))
    is_known = type(module) in code.MODULES and not has_hooks and not lacks_any
    return is_known and not (isinstance(module, nn.LayerNorm) and module.eps != _EPSILON)


@cache
def _is_compiled(config: LieTransformerConfig | LieResNetConfig, elements: int) -> bool:
    """Whether all C code for such a model can be had."""
    code = code_for(config)
    assert code is not None
    pair_dimension = get_group(config.group).pair_dimension(config.pair_features)
    mlp = head_mlp.compiled(pair_dimension, *code.mlp_widths(config))
    return mlp is not None and code.load(config, elements) is not None
