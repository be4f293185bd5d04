"""The parameters of a LieTransformer as the C code has them (`struct parameters`).

Rows of numbers are filled up with zeros to whole machine vectors. Not among them: what the first
layer is given, and the MLPs of locations, which other code computes.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lietransformer.models.lie_transformer import LieTransformer
from lietransformer.nn.block import LieTransformerBlock
from lietransformer.nn.pooling import PoolThenMLP

_MULTIPLE = 16  # of which the C code has row lengths, see product.h


def row_length(width: int) -> int:
    """How many numbers the row of a width takes."""
    return -(-width // _MULTIPLE) * _MULTIPLE


def filled_up(rows: Tensor) -> Tensor:
    """The same rows, with zeros behind."""
    width = rows.shape[-1]
    return F.pad(rows, (0, row_length(width) - width))


@dataclass(frozen=True)
class _Field:
    """A part of the structure: vectors, or matrices one below the other.

    Attributes:
        tensors: the parameters; none where the structure has a place that is not used.
        width: of the model.
        count: how many vectors or matrices.
        is_matrix: which of both.
    """

    tensors: tuple[Tensor, ...]
    width: int
    count: int = 1
    is_matrix: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        length = row_length(self.width)
        return (self.count, length, length) if self.is_matrix else (self.count, length)

    @property
    def size(self) -> int:
        return torch.Size(self.shape).numel()

    def write(self, numbers: Tensor) -> None:
        """Put the parameters into their place, which is zero."""
        for place, tensor in zip(numbers.view(self.shape), self.tensors, strict=False):
            self._inner(place).copy_(tensor.detach().view_as(self._inner(place)))

    def read(self, numbers: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        """Each parameter with what stands in its place."""
        for place, tensor in zip(numbers.view(self.shape), self.tensors, strict=False):
            yield tensor, self._inner(place).reshape(tensor.shape)

    def _inner(self, place: Tensor) -> Tensor:
        return place[: self.width, : self.width] if self.is_matrix else place[: self.width]


class Parameters:
    """Those of a model that the C code uses, with the sums of their gradients.

    Attributes:
        tensors: the parameters themselves.
        packed: their numbers.
        transposes: those of the matrices again, transposed (`struct transposes`).
    """

    def __init__(self, model: LieTransformer) -> None:
        self._fields = list(_fields(model))
        self._sizes = [field.size for field in self._fields]
        self.tensors = tuple(dict.fromkeys(t for field in self._fields for t in field.tensors))
        self.packed = self.tensors[0].new_zeros(sum(self._sizes))
        pieces = self.packed.split(self._sizes)
        for field, piece in zip(self._fields, pieces, strict=True):
            field.write(piece)
        # All matrices of a field have the same input: their transposes stand side by side.
        self.transposes = torch.cat(
            [
                piece.view(-1, field.shape[-1]).t().flatten()
                for field, piece in zip(self._fields, pieces, strict=True)
                if field.is_matrix
            ]
        )

    def unpacked(self, numbers: Tensor) -> list[Tensor]:
        """Numbers in the places of parameters, for each parameter; where it has several, summed."""
        sums: dict[Tensor, Tensor] = {}
        for field, piece in zip(self._fields, numbers.split(self._sizes), strict=True):
            for tensor, found in field.read(piece):
                sums[tensor] = sums[tensor] + found if tensor in sums else found
        return [sums[tensor] for tensor in self.tensors]


def _fields(model: LieTransformer) -> Iterator[_Field]:
    """In the order of the structure."""
    for number, block in enumerate(model.blocks):
        assert isinstance(block, LieTransformerBlock)
        attention = block.attention
        # In the first layer, they are applied before the C code begins.
        is_used = number > 0
        yield from _norm(block.attention_norm, is_used=is_used)
        yield from _linear([attention.query, attention.key, attention.value], is_used=is_used)
        yield from _linear([attention.output])
        yield from _norm(block.mlp_norm)
        for layer in block.mlp:
            yield from _linear([layer])
    assert isinstance(model.head, PoolThenMLP)
    for layer in model.head.hidden:
        yield from _linear([layer])
    yield _Field((model.head.output.weight,), model.config.width)


def _norm(module: nn.Module, *, is_used: bool = True) -> Iterator[_Field]:
    assert isinstance(module, nn.LayerNorm)
    for tensor in (module.weight, module.bias):
        yield _Field((tensor,) if is_used else (), len(tensor))


def _linear(modules: Iterable[nn.Module], *, is_used: bool = True) -> Iterator[_Field]:
    linears = [module for module in modules if isinstance(module, nn.Linear)]
    width, count = linears[0].in_features, len(linears)
    weights = tuple(linear.weight for linear in linears) if is_used else ()
    biases = tuple(linear.bias for linear in linears) if is_used else ()
    yield _Field(weights, width, count, is_matrix=True)
    yield _Field(biases, width, count)
