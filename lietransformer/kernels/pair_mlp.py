"""`pair_mlp.c`: an MLP for each head on pairs, with terms of queries and keys, and its gradients.

In all functions `parameters` is what `head_mlp.packed` gives of the layers, the first of them with
a bias that is not used. Keys are (heads, batch, hidden, n): those of a query lie side by side.
"""

import ctypes
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor

from lietransformer.kernels import build as library
from lietransformer.kernels.calling import call
from lietransformer.kernels.head_mlp import WIDEST

# Examples are computed in parts, which threads share out among them. Their size follows from the
# number of examples alone, so that sums do not depend on the number of threads.
_PARTS = 16


@dataclass(frozen=True, eq=False)
class Pairs:
    """What the MLP is computed of, all of it contiguous.

    Attributes:
        query: (heads, batch, g, hidden).
        key: (heads, batch, hidden, n).
        location: (1 or heads, width, batch, g, n).
        counts: how many elements of each example are real, if they are the first ones and are
            both its queries and its keys; None if all are.
    """

    query: Tensor
    key: Tensor
    location: Tensor
    counts: Tensor | None

    @property
    def part(self) -> int:
        return max(1, -(-self.query.shape[1] // _PARTS))

    @property
    def parts(self) -> int:
        return -(-self.query.shape[1] // self.part)

    def arguments(self, parameters: Tensor) -> tuple[Tensor | int | None, ...]:
        """What both C functions begin with."""
        heads, batch, g, _ = self.query.shape
        is_shared = int(self.location.shape[0] == 1)
        sizes = (heads, batch, g, self.key.shape[-1], is_shared, self.part)
        tensors = (self.counts, self.query, self.key, self.location, parameters)
        return (*sizes, torch.get_num_threads(), *tensors)


@dataclass(frozen=True)
class PairMLP:
    """The compiled functions for layers of some widths."""

    code: ctypes.CDLL

    def value(self, pairs: Pairs, parameters: Tensor) -> Tensor:
        """(heads, batch, g, n); zero for pairs that are not of real elements."""
        location = pairs.location
        out = location.new_zeros(pairs.query.shape[0], *location.shape[2:])
        call(self.code.value, *pairs.arguments(parameters), self._scratch(pairs), out)
        return out

    def gradient(
        self, pairs: Pairs, parameters: Tensor, g: Tensor, *, of_location: bool
    ) -> tuple[Tensor, Tensor, Tensor | None, Tensor]:
        """Of g·value by queries, keys, locations if that is wanted, and parameters."""
        by_query, by_key = torch.zeros_like(pairs.query), torch.zeros_like(pairs.key)
        by_location = torch.zeros_like(pairs.location) if of_location else None
        sums = parameters.new_empty(pairs.parts, *parameters.shape)
        given = (*pairs.arguments(parameters), g, self._scratch(pairs))
        call(self.code.gradient, *given, by_query, by_key, by_location, sums)
        return by_query, by_key, by_location, sums.sum(dim=0)

    def _scratch(self, pairs: Pairs) -> Tensor:
        self.code.scratch_size.restype = ctypes.c_long
        size = int(self.code.scratch_size(ctypes.c_long(pairs.key.shape[-1])))
        return pairs.query.new_empty(torch.get_num_threads(), size)


@cache
def compiled(width: int, hidden: int) -> PairMLP | None:
    """The functions for locations and layers of these widths; None where C cannot be used."""
    if not all(1 <= number <= WIDEST for number in (width, hidden)):
        return None
    code = library.load("pair_mlp.c", (("IN", width), ("HIDDEN", hidden), ("OUT", 1)))
    return None if code is None else PairMLP(code)
