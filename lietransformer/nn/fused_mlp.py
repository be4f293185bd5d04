"""`PerHeadMLP` in one pass over the pairs, for training and evaluation on a CPU.

With thousands of pairs, the MLP of pair coordinates is most of the work of attention, and nearly
all of that is memory traffic: every layer writes and reads a number for each pair, head and
hidden unit. C code takes a block of pairs through all layers at once, and stores nothing for the
backward pass but the input, from which it computes the rest again.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

from lietransformer.native import head_mlp

_FEWEST_COLUMNS = 1024

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
        and head_mlp.find(parameters) is not None
    )


def fused_mlp(plain: Plain, x: Tensor, parameters: Sequence[Tensor]) -> Tensor:
    """The same as `plain(x, *parameters)`, to rounding."""
    return _FusedMLP.apply(plain, x, *parameters)  # type: ignore[no-untyped-call]


class _FusedMLP(torch.autograd.Function):
    @staticmethod
    def forward(plain: Plain, x: Tensor, *parameters: Tensor) -> Tensor:  # noqa: ARG004
        return _code(parameters).value(x[0].contiguous(), head_mlp.packed(parameters))

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
        by_x, by_parameters = _code(parameters).gradient(
            x[0].contiguous(),
            head_mlp.packed(parameters),
            gradient.contiguous(),
            of_x=ctx.needs_input_grad[1],
            of_parameters=True,
        )
        assert by_parameters is not None
        by_x = None if by_x is None else by_x[None]
        return (None, by_x, *head_mlp.unpacked(by_parameters, like=parameters))

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *inputs: Any) -> tuple[Tensor, int]:
        plain, *tensors = inputs
        batched = torch.func.vmap(plain, in_dims=in_dims[1:], randomness=info.randomness)
        return batched(*tensors), 0


def _code(parameters: Sequence[Tensor]) -> head_mlp.HeadMLP:
    code = head_mlp.find(parameters)
    assert code is not None  # `applies` has been asked
    return code
