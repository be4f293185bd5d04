"""`PerHeadMLP` in one pass over the pairs, for training and evaluation on a CPU.

With thousands of pairs, the MLP of pair coordinates is most of the work of attention, and nearly
all of that is memory traffic: every layer writes and reads a number for each pair, head and
hidden unit. The C code in `head_mlp.c` takes a block of pairs through all layers at once, and
stores nothing for the backward pass but the input, from which it computes the rest again.

In all functions of `HeadMLP`, `x` is (inputs, columns), `parameters` is what `packed` gives, and
outputs are (heads, outputs, columns).
"""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import Tensor

from lietransformer.dispatch import has_hooks
from lietransformer.kernels import build as library
from lietransformer.kernels.autograd_fallback import Plain, WithPlain
from lietransformer.kernels.calling import call
from lietransformer.kernels.conditions import are_ordinary
from lietransformer.nn.mlp import PerHeadLinear, PerHeadMLP, per_head_mlp

_LAYERS = 3
# Loops over widths are unrolled, so wide layers would make much code.
WIDEST = 32
# Columns are computed in parts, which threads share out among them. Their size follows from the
# number of columns alone, so that sums do not depend on the number of threads. It is one of whole
# vectors (see head_mlp.h), and such that 2, 4 or 8 threads have as many parts each.
_BLOCK, _PARTS, _LARGEST_PART = 64, 8, 4096
# With fewer, PyTorch is as fast.
_FEWEST_COLUMNS = 1024


def supported(mlp: PerHeadMLP, x: Tensor) -> bool:
    """Whether the C code is there, and can compute `through_layers` of these."""
    if x.shape[0] != 1 or x.shape[-1] < _FEWEST_COLUMNS:
        return False
    parameters = layer_parameters(mlp)
    return parameters is not None and are_ordinary(x, *parameters) and find(parameters) is not None


def compute(mlp: PerHeadMLP, x: Tensor) -> Tensor:
    """`through_layers`, to rounding."""
    parameters = mlp.layer_parameters()
    return _HeadMLP.apply(per_head_mlp, x, *parameters)  # type: ignore[no-untyped-call]


def layer_parameters(mlp: torch.nn.Module) -> list[Tensor] | None:
    """Weight and bias of each layer; None unless they are all that there is to the layers.

    A derived class, such as torch makes one for parametrisations, may compute something else.
    """
    if type(mlp) is not PerHeadMLP or has_hooks(*mlp.layers):
        return None
    is_known = all(type(layer) is PerHeadLinear and layer.bias is not None for layer in mlp.layers)
    return mlp.layer_parameters() if is_known else None


class _HeadMLP(WithPlain):
    @staticmethod
    def forward(plain: Plain, x: Tensor, *parameters: Tensor) -> Tensor:  # noqa: ARG004
        return _found(parameters).value(x[0].contiguous(), packed(parameters))

    @staticmethod
    def gradients(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, *parameters = ctx.saved_tensors
        by_x, by_parameters = _found(parameters).gradient(
            x[0].contiguous(),
            packed(parameters),
            gradient.contiguous(),
            of_x=ctx.needs_input_grad[1],
            of_parameters=True,
        )
        assert by_parameters is not None
        by_x = None if by_x is None else by_x[None]
        return (by_x, *unpacked(by_parameters, like=parameters))


def _found(parameters: Sequence[Tensor]) -> "HeadMLP":
    code = find(parameters)
    assert code is not None  # `supported` has been asked
    return code


@dataclass(frozen=True)
class HeadMLP:
    """The compiled functions for layers of some widths."""

    code: ctypes.CDLL
    outputs: int

    def value(self, x: Tensor, parameters: Tensor) -> Tensor:
        """The outputs."""
        out = self._outputs(x, parameters)
        call(self.code.value, *_sizes(x, parameters), x, parameters, out)
        return out

    def gradient(
        self, x: Tensor, parameters: Tensor, g: Tensor, *, of_x: bool, of_parameters: bool
    ) -> tuple[Tensor | None, Tensor | None]:
        """The gradients of g·value by x and by the parameters, where they are wanted."""
        by_x = torch.zeros_like(x) if of_x else None
        sums = _sums(x, parameters) if of_parameters else None
        call(self.code.gradient, *_sizes(x, parameters), x, parameters, g, by_x, sums)
        return by_x, None if sums is None else sums.sum(dim=0)

    def value_and_jacobian(self, x: Tensor, parameters: Tensor) -> tuple[Tensor, Tensor]:
        """The outputs, and their derivatives by x: (heads, outputs, inputs, columns)."""
        out = self._outputs(x, parameters)
        jacobian = out.new_empty(*out.shape[:-1], *x.shape)
        sizes = _sizes(x, parameters)
        call(self.code.value_and_jacobian, *sizes, x, parameters, out, jacobian)
        return out, jacobian

    def pull_back(self, jacobian: Tensor, g: Tensor) -> Tensor:
        """The gradient of g·value by x."""
        by_x = jacobian.new_zeros(jacobian.shape[2:])
        call(self.code.pull_back, *_sizes(by_x, jacobian), jacobian, g, by_x)
        return by_x

    def push_forward(self, jacobian: Tensor, t: Tensor) -> Tensor:
        """The tangent of the outputs for the tangent t of x."""
        out = t.new_zeros(*jacobian.shape[:2], t.shape[-1])
        call(self.code.push_forward, *_sizes(t, jacobian), jacobian, t, out)
        return out

    def second(
        self, x: Tensor, parameters: Tensor, t: Tensor, g: Tensor, b: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The gradients of b·value + g·(its tangent for t) by x and by the parameters."""
        by_x, sums = torch.zeros_like(x), _sums(x, parameters)
        sizes = _sizes(x, parameters)
        call(self.code.second, *sizes, x, parameters, t, g, b, by_x, sums)
        return by_x, sums.sum(dim=0)

    def _outputs(self, x: Tensor, parameters: Tensor) -> Tensor:
        return x.new_empty(parameters.shape[0], self.outputs, x.shape[-1])


def packed(parameters: Sequence[Tensor]) -> Tensor:
    """(heads, numbers): weight and bias of each layer one after the other, as in `struct head`."""
    return torch.cat([parameter.flatten(1) for parameter in parameters], dim=1)


def unpacked(numbers: Tensor, like: Sequence[Tensor]) -> list[Tensor]:
    """Weight and bias of each layer, of the shapes of the given ones."""
    pieces = numbers.split([tensor[0].numel() for tensor in like], dim=1)
    return [piece.view_as(tensor) for piece, tensor in zip(pieces, like, strict=True)]


def widths(parameters: Sequence[Tensor]) -> tuple[int, int, int] | None:
    """Of inputs, hidden layers and outputs; None if the C code is not written for them.

    It is for three layers with two hidden ones of the same width, not too wide.
    """
    if len(parameters) != 2 * _LAYERS or len({*parameters[2].shape[1:]}) != 1:
        return None
    found = (parameters[0].shape[1], parameters[0].shape[2], parameters[-2].shape[2])
    return found if all(1 <= width <= WIDEST for width in found) else None


def find(parameters: Sequence[Tensor]) -> HeadMLP | None:
    """The functions for weights and biases of these shapes; None where C cannot be used."""
    found = widths(parameters)
    return None if found is None else compiled(*found)


@cache
def compiled(inputs: int, hidden: int, outputs: int) -> HeadMLP | None:
    """The functions for layers of these widths; None where C cannot be used."""
    if not all(1 <= width <= WIDEST for width in (inputs, hidden, outputs)):
        return None
    code = library.load("head_mlp.c", (("IN", inputs), ("HIDDEN", hidden), ("OUT", outputs)))
    return None if code is None else HeadMLP(code, outputs)


def _sizes(x: Tensor, parameters: Tensor) -> tuple[int, int, int, int]:
    return parameters.shape[0], x.shape[-1], _part(x), torch.get_num_threads()


def _part(x: Tensor) -> int:
    blocks = x.shape[-1] // _PARTS // _BLOCK
    return min(max(blocks, 1) * _BLOCK, _LARGEST_PART)


def _sums(x: Tensor, parameters: Tensor) -> Tensor:
    return x.new_empty(-(-x.shape[-1] // _part(x)), *parameters.shape)
