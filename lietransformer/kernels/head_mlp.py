"""`head_mlp.c`: an MLP for each head on columns of pair coordinates, and its derivatives.

In all functions `x` is (inputs, columns), `parameters` is what `packed` gives, and outputs are
(heads, outputs, columns).
"""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor

from lietransformer.kernels import build as library
from lietransformer.kernels.calling import call

_LAYERS = 3
# Loops over widths are unrolled, so wide layers would make much code.
WIDEST = 32
# Columns are computed in parts, which threads share out among them. Their size follows from the
# number of columns alone, so that sums do not depend on the number of threads. It is one of whole
# vectors (see head_mlp.h), and such that 2, 4 or 8 threads have as many parts each.
_BLOCK, _PARTS, _LARGEST_PART = 64, 8, 4096


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
