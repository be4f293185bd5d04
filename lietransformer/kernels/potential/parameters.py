"""The parameters of a model as the C code has them: one structure of numbers.

Rows of numbers are filled up with zeros to whole machine vectors.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

import torch
from torch import Tensor
from torch.nn import functional as F

_MULTIPLE = 16  # of which the C code has row lengths, see product.h


def row_length(width: int) -> int:
    """How many numbers the row of a width takes."""
    return -(-width // _MULTIPLE) * _MULTIPLE


def filled_up(rows: Tensor, length: int) -> Tensor:
    """The same rows, with zeros behind up to a length."""
    return F.pad(rows, (0, length - rows.shape[-1]))


@dataclass(frozen=True, eq=False)
class Field:
    """A part of the structure: places of one size, each for a parameter.

    Attributes:
        place: the shape of a place. Of a matrix, the first number is that of its rows.
        count: how many places.
        tensors: the parameters; none where the structure has places that are not used.
        shape: what the numbers of a parameter are viewed as; those of the place that it takes.
        scale: what the C code wants to have its numbers multiplied by.
    """

    place: tuple[int, ...]
    count: int = 1
    tensors: tuple[Tensor, ...] = ()
    shape: tuple[int, ...] = ()
    scale: float = 1.0

    @property
    def is_matrix(self) -> bool:
        return len(self.place) > 1

    @property
    def size(self) -> int:
        return self.count * prod(self.place)

    def write(self, numbers: Tensor) -> None:
        """Put the parameters into their places, which are zero."""
        for place, tensor in self._taken(numbers):
            place.copy_(self.scale * tensor.detach().view(self.shape))

    def read(self, numbers: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        """Each parameter with its gradient, from gradients by what stands in its place."""
        for place, tensor in self._taken(numbers):
            yield tensor, self.scale * place.reshape(tensor.shape)

    def _taken(self, numbers: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        inner = tuple(map(slice, self.shape))
        for place, tensor in zip(
            numbers.view(self.count, *self.place), self.tensors, strict=bool(self.tensors)
        ):
            yield place[inner], tensor


class Parameters:
    """Those of a model that the C code uses.

    Attributes:
        tensors: the parameters themselves.
        packed: their numbers (`struct parameters`).
        transposes: those of the matrices again, transposed (`struct transposes`).
    """

    def __init__(self, fields: Sequence[Field]) -> None:
        self._fields = fields
        self._sizes = [field.size for field in fields]
        self.tensors = tuple(dict.fromkeys(t for field in fields for t in field.tensors))
        self.packed = self.tensors[0].new_zeros(sum(self._sizes))
        pieces = self.packed.split(self._sizes)
        for field, piece in zip(fields, pieces, strict=True):
            field.write(piece)
        # All matrices of a field have the same input: their transposes stand side by side.
        self.transposes = torch.cat(
            [
                piece.view(field.count * field.place[0], -1).t().flatten()
                for field, piece in zip(fields, pieces, strict=True)
                if field.is_matrix
            ]
        )

    def unpacked(self, numbers: Tensor) -> list[Tensor]:
        """Gradients by the packed numbers as those by each parameter."""
        sums: dict[Tensor, Tensor] = {}
        for field, piece in zip(self._fields, numbers.split(self._sizes), strict=True):
            for tensor, found in field.read(piece):  # a parameter can have several places
                sums[tensor] = sums[tensor] + found if tensor in sums else found
        return [sums[tensor] for tensor in self.tensors]
