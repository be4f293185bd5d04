"""`PerHeadMLP` in one pass over the pairs, for training and evaluation on a CPU.

With thousands of pairs, the MLP of pair coordinates is most of the work of attention, and nearly
all of that is memory traffic: every layer writes and reads a number for each pair, head and
hidden unit. C code takes a block of pairs through all layers at once, and stores nothing for the
backward pass but the input, from which it computes the rest again.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

from lietransformer.kernels import head_mlp
from lietransformer.kernels.autograd_fallback import Plain, WithPlain

_FEWEST_COLUMNS = 1024


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
    """The same as `plain(x, *parameters)`, to rounding: weight and bias of each layer."""
    return _FusedMLP.apply(plain, x, *parameters)  # type: ignore[no-untyped-call]


class _FusedMLP(WithPlain):
    @staticmethod
    def forward(plain: Plain, x: Tensor, *parameters: Tensor) -> Tensor:  # noqa: ARG004
        return _code(parameters).value(x[0].contiguous(), head_mlp.packed(parameters))

    @staticmethod
    def gradients(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, *parameters = ctx.saved_tensors
        by_x, by_parameters = _code(parameters).gradient(
            x[0].contiguous(),
            head_mlp.packed(parameters),
            gradient.contiguous(),
            of_x=ctx.needs_input_grad[1],
            of_parameters=True,
        )
        assert by_parameters is not None
        by_x = None if by_x is None else by_x[None]
        return (by_x, *head_mlp.unpacked(by_parameters, like=parameters))


def _code(parameters: Sequence[Tensor]) -> head_mlp.HeadMLP:
    code = head_mlp.find(parameters)
    assert code is not None  # `applies` has been asked
    return code
