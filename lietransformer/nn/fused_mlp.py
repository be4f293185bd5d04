"""`PerHeadMLP` in one pass over the pairs, for training and evaluation on a CPU.

With thousands of pairs, the MLP of pair coordinates is most of the work of attention, and nearly
all of that is memory traffic: every layer writes and reads a number for each pair, head and
hidden unit. C code takes a block of pairs through all layers at once, and stores nothing for the
backward pass but the input, from which it computes the rest again.
"""

import ctypes
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

from lietransformer.native import library

_LAYERS = 3
# Loops over widths are unrolled, so wide layers would make much code.
_WIDEST = 32
_FEWEST_COLUMNS = 1024
# Sums over columns are taken in parts of this size, whatever the number of threads is.
_PART = 4096

# The layers as PyTorch operations: takes x, then weight and bias of each layer.
Plain = Callable[..., Tensor]


def applies(x: Tensor, parameters: Sequence[Tensor]) -> bool:
    """Whether the C code is there, and can compute this."""
    return (
        not torch.compiler.is_compiling()
        and x.device.type == "cpu"
        and x.shape[0] == 1
        and x.shape[-1] >= _FEWEST_COLUMNS
        and all(tensor.dtype == torch.float32 for tensor in (x, *parameters))
        and not torch.is_autocast_enabled("cpu")
        and forward_ad._current_level < 0  # tangents go by PyTorch's own rules
        and _fits(parameters)
        and _library(*_widths(parameters)) is not None
    )


def fused_mlp(plain: Plain, x: Tensor, parameters: Sequence[Tensor]) -> Tensor:
    """The same as `plain(x, *parameters)`, to rounding."""
    return _FusedMLP.apply(plain, x, *parameters)  # type: ignore[no-untyped-call]


class _FusedMLP(torch.autograd.Function):
    @staticmethod
    def forward(plain: Plain, x: Tensor, *parameters: Tensor) -> Tensor:  # noqa: ARG004
        heads, (_, _, outputs) = parameters[0].shape[0], _widths(parameters)
        x = x.contiguous()
        result = x.new_empty(heads, outputs, x.shape[-1])
        packed = _packed(parameters)
        _code(parameters).forward(
            *(heads, x.shape[-1], _PART, torch.get_num_threads()),
            *map(_address, (x, packed, result)),
        )
        return result

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:  # noqa: ARG004
        ctx.plain = inputs[0]
        ctx.save_for_backward(*inputs[1:])

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, *parameters = ctx.saved_tensors
        if torch.is_grad_enabled():  # the gradient is to be differentiated in turn
            pull_back: Callable[[Tensor], tuple[Tensor, ...]]
            _, pull_back = torch.func.vjp(ctx.plain, x, *parameters)  # type: ignore[misc]
            return (None, *pull_back(gradient))
        return (None, *_gradients(x, parameters, gradient, of_x=ctx.needs_input_grad[1]))

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *inputs: Any) -> tuple[Tensor, int]:
        plain, *tensors = inputs
        batched = torch.func.vmap(plain, in_dims=in_dims[1:], randomness=info.randomness)
        return batched(*tensors), 0


def _gradients(
    x: Tensor, parameters: Sequence[Tensor], gradient: Tensor, *, of_x: bool
) -> list[Tensor | None]:
    heads, columns = parameters[0].shape[0], x.shape[-1]
    x, gradient = x.contiguous(), gradient.contiguous()
    packed = _packed(parameters)
    sums = x.new_empty(-(-columns // _PART), *packed.shape)
    gradient_x = torch.zeros_like(x) if of_x else None
    _code(parameters).backward(
        *(heads, columns, _PART, torch.get_num_threads()),
        *map(_address, (x, packed, gradient, gradient_x, sums)),
    )
    pieces = sums.sum(dim=0).split([p[0].numel() for p in parameters], dim=1)
    return [gradient_x, *(s.view_as(p) for s, p in zip(pieces, parameters, strict=True))]


def _fits(parameters: Sequence[Tensor]) -> bool:
    """Whether these are three layers with two hidden ones of the same width."""
    return len(parameters) == 2 * _LAYERS and len({*parameters[2].shape[1:]}) == 1


def _widths(parameters: Sequence[Tensor]) -> tuple[int, int, int]:
    """Inputs, hidden units and outputs, given weight and bias of each layer."""
    return parameters[0].shape[1], parameters[0].shape[2], parameters[-2].shape[2]


def _packed(parameters: Sequence[Tensor]) -> Tensor:
    """All parameters of a head one after the other, as `struct head` has them."""
    return torch.cat([parameter.flatten(1) for parameter in parameters], dim=1)


def _address(tensor: Tensor | None) -> int | None:
    return None if tensor is None else tensor.data_ptr()


def _code(parameters: Sequence[Tensor]) -> ctypes.CDLL:
    code = _library(*_widths(parameters))
    assert code is not None  # `applies` has been asked
    return code


@cache
def _library(inputs: int, hidden: int, outputs: int) -> ctypes.CDLL | None:
    if not all(1 <= width <= _WIDEST for width in (inputs, hidden, outputs)):
        return None
    widths = (("IN", inputs), ("HIDDEN", hidden), ("OUT", outputs))
    code = library.load("head_mlp.c", widths)
    if code is not None:
        sizes, arrays = [*3 * [ctypes.c_long], ctypes.c_int], ctypes.c_void_p
        code.forward.argtypes = [*sizes, *3 * [arrays]]
        code.backward.argtypes = [*sizes, *5 * [arrays]]
        code.forward.restype = code.backward.restype = None
    return code
