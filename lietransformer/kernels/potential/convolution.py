"""The network of LieConv layers for `convolution.c`."""

import ctypes
from collections.abc import Iterator

from torch import Tensor, nn
from torch.nn import functional as F

from lietransformer.kernels import build as library
from lietransformer.kernels.potential.parameters import Field, filled_up, row_length
from lietransformer.models.lie_resnet import BottleneckBlock, LieResNet, LieResNetConfig
from lietransformer.nn.lieconv import LieConv, WeightNet
from lietransformer.pairs import NeighbourhoodConfig

# What the C code knows, as in `transformer.py`.
MODULES = {nn.ModuleList, nn.Linear, LieResNet, BottleneckBlock, LieConv, WeightNet}

_BOTTLENECK = 4  # WIDE / NARROW
_HIDDEN, _KERNEL = 32, 16  # widths of LieConv's weight net


def written_for(config: LieResNetConfig) -> bool:
    """Whether the C code computes a model of these settings."""
    return (
        config.neighbourhood == NeighbourhoodConfig()
        and config.fill is None
        and config.norm == "none"
    )


def mlp_widths(config: LieResNetConfig) -> tuple[int, int]:  # noqa: ARG001 – the same for all
    """Of the weight nets: of hidden layers, and of the outputs."""
    return _HIDDEN, _KERNEL


def load(config: LieResNetConfig, elements: int) -> ctypes.CDLL | None:
    """The code for models of these settings and examples of so many elements; None without C."""
    definitions = {
        "POINTS": elements,
        "LAYERS": config.layers,
        "KERNEL": _KERNEL,
        "NARROW": _narrow_length(config),
    }
    return library.load("convolution.c", tuple(definitions.items()))


def inputs(model: LieResNet, features: Tensor, elements: int) -> tuple[Tensor, Tensor]:
    """What the first layer is given: features as rows, and what it sums over elements.

    That is, of each example, (kernel, element, row): features mapped by each kernel's matrix.
    """
    length = _narrow_length(model.config)
    rows = model.embedding(features)
    first = _blocks(model)[0]
    narrow = F.silu(first.narrow(F.silu(rows)))
    weight = first.convolution.linear.weight
    by_kernel = weight.view(len(weight), _KERNEL, -1).permute(2, 1, 0).flatten(1) / elements
    mapped = (narrow @ by_kernel).view(-1, elements, _KERNEL, len(weight)).transpose(1, 2)
    return filled_up(rows, _BOTTLENECK * length).contiguous(), filled_up(
        mapped, length
    ).contiguous()


def mlps(model: LieResNet) -> list[list[Tensor]]:
    """The weights and biases of the weight nets, layer by layer."""
    return [
        [
            tensor[None]
            for linear in block.convolution.weight_net.layers
            if isinstance(linear, nn.Linear)
            for tensor in (linear.weight.t(), linear.bias)
        ]
        for block in _blocks(model)
    ]


def fields(model: LieResNet, elements: int) -> Iterator[Field]:
    """`struct parameters`; of means over all elements, the C code computes the sum."""
    wide, length = model.config.width, _narrow_length(model.config)
    narrow, wide_length = wide // _BOTTLENECK, _BOTTLENECK * length
    share = 1 / elements
    for number, block in enumerate(_blocks(model)):
        convolve, widen = block.convolution.linear, block.widen
        # In the first layer, some are applied before the C code begins.
        is_used = number > 0
        weight, bias = ((block.narrow.weight,), (block.narrow.bias,)) if is_used else ((), ())
        yield Field((length, wide_length), 1, weight, (narrow, wide))
        yield Field((length,), 1, bias, (narrow,))
        kernels = (convolve.weight,) if is_used else ()
        shape = (narrow, _KERNEL, narrow)
        yield Field((length, _KERNEL, length), 1, kernels, shape, share)
        yield Field((length,), 1, (convolve.bias,), (narrow,), share)
        yield Field((wide_length, length), 1, (widen.weight,), (wide, narrow))
        yield Field((wide_length,), 1, (widen.bias,), (wide,))
    yield Field((wide_length,), 1, (model.output.weight,), (wide,), share)


def output_bias(model: LieResNet) -> Tensor:
    """The constant that is added to V."""
    return model.output.bias


def _blocks(model: LieResNet) -> list[BottleneckBlock]:
    return [block for block in model.blocks if isinstance(block, BottleneckBlock)]


def _narrow_length(config: LieResNetConfig) -> int:
    return row_length(config.width // _BOTTLENECK)
