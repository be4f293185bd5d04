"""Operations of a network with four passes each.

- `value`: y from x.
- `gradient`: ∂V/∂x from g = ∂V/∂y.
- `tangent`: ẏ from ẋ.
- `second`: the gradient of V̇ by x from b = ∂V̇/∂y, where V̇ is the tangent of V; and, kept as
  attributes, those by the parameters. (The gradient of V̇ by ẋ is that of V by x, known already.)

They are called in this order. Where x does not depend on the positions, ẋ is None and `gradient`
need not be called. Tensors are rows of features, contiguous and in single precision.
"""

import ctypes
from abc import ABC, abstractmethod

import torch
from torch import Tensor

from lietransformer.native import library
from lietransformer.native.calling import call

# Rows whose contributions to a sum over all rows are added up first: the order of a sum must not
# depend on the number of threads.
_ROWS_OF_A_PART = 64


# A file of C code and the numbers it is compiled for.
Source = tuple[str, tuple[tuple[str, int], ...]]


def _load(source: Source) -> ctypes.CDLL:
    code = library.load(*source)
    assert code is not None  # `applies` has been asked
    return code


class Operation(ABC):
    """See the module's description."""

    @abstractmethod
    def value(self, x: Tensor) -> Tensor: ...

    @abstractmethod
    def gradient(self, g: Tensor) -> Tensor | None:
        """None where x does not depend on the positions."""

    @abstractmethod
    def tangent(self, t: Tensor | None) -> Tensor | None: ...

    @abstractmethod
    def second(self, b: Tensor) -> Tensor: ...


class Chain(Operation):
    """One operation after the other."""

    def __init__(self, *operations: Operation) -> None:
        self.operations = operations

    def value(self, x: Tensor) -> Tensor:
        for operation in self.operations:
            x = operation.value(x)
        return x

    def gradient(self, g: Tensor) -> Tensor | None:
        for operation in reversed(self.operations):
            before = operation.gradient(g)
            if before is None:
                return None
            g = before
        return g

    def tangent(self, t: Tensor | None) -> Tensor | None:
        for operation in self.operations:
            t = operation.tangent(t)
        return t

    def second(self, b: Tensor) -> Tensor:
        for operation in reversed(self.operations):
            b = operation.second(b)
        return b


class Residual(Chain):
    """y = x + f(x), where f is a chain."""

    def value(self, x: Tensor) -> Tensor:
        return super().value(x).add_(x)

    def gradient(self, g: Tensor) -> Tensor | None:
        before = super().gradient(g)
        return None if before is None else before.add_(g)

    def tangent(self, t: Tensor | None) -> Tensor | None:
        change = super().tangent(t)
        return change if change is None or t is None else change.add_(t)

    def second(self, b: Tensor) -> Tensor:
        return super().second(b).add_(b)


class Linear(Operation):
    """y = Wx + c."""

    by_weight: Tensor
    by_bias: Tensor

    def __init__(self, weight: Tensor, bias: Tensor) -> None:
        self._weight, self._bias = weight, bias
        self._g: Tensor | None = None

    def value(self, x: Tensor) -> Tensor:
        self._x = x
        return torch.addmm(self._bias, x, self._weight.t())

    def gradient(self, g: Tensor) -> Tensor:
        self._g = g
        return g @ self._weight

    def tangent(self, t: Tensor | None) -> Tensor | None:
        self._t = t
        return None if t is None else t @ self._weight.t()

    def second(self, b: Tensor) -> Tensor:
        self.by_weight = b.t() @ self._x
        if self._t is not None and self._g is not None:
            self.by_weight.addmm_(self._g.t(), self._t)
        self.by_bias = b.sum(dim=0)
        return b @ self._weight


class Swish(Operation):
    """y = x·sigmoid(x), of inputs that depend on the positions."""

    def __init__(self) -> None:
        self._code = _load(self.source())

    @staticmethod
    def source() -> Source:
        """The C code."""
        return "swish.c", ()

    def value(self, x: Tensor) -> Tensor:
        self._x = x
        return self._call(self._code.value)

    def gradient(self, g: Tensor) -> Tensor:
        self._g = g
        return self._call(self._code.slope, g)

    def tangent(self, t: Tensor | None) -> Tensor | None:
        assert t is not None
        self._t = t
        return self._call(self._code.slope, t)

    def second(self, b: Tensor) -> Tensor:
        return self._call(self._code.second, self._t, self._g, b)

    def _call(self, function: object, *tensors: Tensor) -> Tensor:
        out = torch.empty_like(self._x)
        call(function, out.numel(), torch.get_num_threads(), self._x, *tensors, out)
        return out


class LayerNorm(Operation):
    """y = s·(x − mean) / σ + c for each row."""

    by_weight: Tensor
    by_bias: Tensor

    def __init__(self, weight: Tensor, bias: Tensor, epsilon: float) -> None:
        self._code = _load(self.source(len(weight)))
        self._weight, self._bias, self._epsilon = weight, bias, epsilon
        self._g: Tensor | None = None

    @staticmethod
    def source(width: int) -> Source:
        """The C code for rows of that width."""
        return "layer_norm.c", (("WIDTH", width),)

    def value(self, x: Tensor) -> Tensor:
        y, self._normal = torch.empty_like(x), torch.empty_like(x)
        self._inverse = x.new_empty(x.shape[0])
        threads, scale = torch.get_num_threads(), (self._weight, self._bias)
        kept = (self._normal, self._inverse)
        call(self._code.value, x.shape[0], threads, self._epsilon, x, *scale, y, *kept)
        return y

    def gradient(self, g: Tensor) -> Tensor:
        self._g = g
        return self._call(self._code.gradient, g)

    def tangent(self, t: Tensor | None) -> Tensor | None:
        self._t = t
        return None if t is None else self._call(self._code.tangent, t)

    def second(self, b: Tensor) -> Tensor:
        out = torch.empty_like(b)
        rows, width = b.shape
        sums = b.new_empty(-(-rows // _ROWS_OF_A_PART), 2, width)
        t, g = (self._t, self._g) if self._t is not None else 2 * (torch.zeros_like(b),)
        kept = (self._normal, self._inverse, self._weight)
        sizes = (rows, _ROWS_OF_A_PART, torch.get_num_threads())
        call(self._code.second, *sizes, *kept, t, g, b, out, sums)
        self.by_weight, self.by_bias = sums.sum(dim=0)
        return out

    def _call(self, function: object, d: Tensor) -> Tensor:
        out = torch.empty_like(d)
        kept = (self._normal, self._inverse, self._weight)
        call(function, d.shape[0], torch.get_num_threads(), *kept, d, out)
        return out


class PairAttention(Operation):
    """out(i) = 1/n Σⱼ (q(i)·k(j)/√c + l(i, j))·v(j), of rows that are (q, k, v) of all heads.

    Location scores l are (heads, batch, n, n); they are a further input.

    Args:
        inputs_depend: whether q, k and v depend on the positions.
    """

    def __init__(self, elements: int, heads: int, width: int, *, inputs_depend: bool) -> None:
        self._code = _load(self.source(elements, heads, width))
        self._inputs_depend = inputs_depend
        self._width = width
        self.location: Tensor
        self.location_tangent: Tensor
        self.by_location: Tensor
        self.second_by_location: Tensor

    @staticmethod
    def source(elements: int, heads: int, width: int) -> Source:
        """The C code for that many elements of an example, and heads of that width together."""
        sizes = (("POINTS", elements), ("HEADS", heads), ("HEAD_WIDTH", width // heads))
        return "pair_attention.c", sizes

    def value(self, x: Tensor) -> Tensor:
        self._x, self._scores = x, torch.empty_like(self.location)
        out = x.new_empty(x.shape[0], self._width)
        self._call(self._code.value, x, self.location, self._scores, out)
        return out

    def gradient(self, g: Tensor) -> Tensor | None:
        self._g, self.by_location = g, torch.empty_like(self._scores)
        by_x = torch.empty_like(self._x) if self._inputs_depend else None
        self._call(self._code.gradient, self._x, self._scores, g, self.by_location, by_x)
        return by_x

    def tangent(self, t: Tensor | None) -> Tensor:
        self._t, self._scores_tangent = t, torch.empty_like(self._scores)
        out = self._x.new_empty(self._x.shape[0], self._width)
        given = (self._x, t, self._scores, self.location_tangent)
        self._call(self._code.tangent, *given, self._scores_tangent, out)
        return out

    def second(self, b: Tensor) -> Tensor:
        by_x, self.second_by_location = torch.empty_like(self._x), torch.empty_like(self._scores)
        kept = (self._x, self._t, self._scores, self._scores_tangent, self._g, self.by_location)
        self._call(self._code.second, *kept, b, self.second_by_location, by_x)
        return by_x

    def _call(self, function: object, *tensors: Tensor | None) -> None:
        call(function, self._scores.shape[1], torch.get_num_threads(), *tensors)


class MeanOfExample(Operation):
    """The mean over the rows of each example."""

    def __init__(self, points: int) -> None:
        self._points = points

    def value(self, x: Tensor) -> Tensor:
        return x.unflatten(0, (-1, self._points)).mean(dim=1)

    def gradient(self, g: Tensor) -> Tensor:
        return (g / self._points).repeat_interleave(self._points, dim=0)

    def tangent(self, t: Tensor | None) -> Tensor | None:
        assert t is not None
        return self.value(t)

    def second(self, b: Tensor) -> Tensor:
        return self.gradient(b)
