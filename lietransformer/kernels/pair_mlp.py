"""The MLP of `MLPCombination` in one pass over the pairs, for training and evaluation on a CPU.

The C code in `pair_mlp.c` takes a block of pairs through all layers while it is in the nearest
cache, and stores nothing for the backward pass but what it was given, from which it computes the
rest again.

In all functions of `PairMLP`, `parameters` is what `head_mlp.packed` gives of the layers, the first
of them with a bias that is not used. Keys are (heads, batch, hidden, n): those of a query lie side
by side.
"""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import Tensor

from lietransformer.kernels import build as library
from lietransformer.kernels import head_mlp
from lietransformer.kernels.autograd_fallback import WithPlain
from lietransformer.kernels.calling import call
from lietransformer.kernels.conditions import are_ordinary, real_elements
from lietransformer.nn.pair_mlp import all_examples
from lietransformer.pairs import PairGeometry

# Examples are computed in parts, which threads share out among them. Their size follows from the
# number of examples alone, so that sums do not depend on the number of threads.
_PARTS = 16
# A layer has two of them.
_FURTHER_PARAMETERS = 4


def supported(
    query: Tensor,
    key: Tensor,
    location: Tensor,
    geometry: PairGeometry,
    of_location: Tensor,
    rest: Sequence[Tensor],
) -> bool:
    """Whether the C code is there, and can compute `pair_mlp` of these."""
    return (
        geometry.indices is None
        and are_ordinary(query, key, location, of_location, *rest)
        and _find(of_location, rest) is not None
    )


def compute(
    query: Tensor,
    key: Tensor,
    location: Tensor,
    geometry: PairGeometry,
    of_location: Tensor,
    rest: Sequence[Tensor],
) -> Tensor:
    """`pair_mlp`, to rounding; zero for pairs that are known not to be of real elements."""
    of_real = _OfRealElements(real_elements(geometry))
    result: Tensor = _PairMLP.apply(  # type: ignore[no-untyped-call]
        of_real, query, key, location, of_location, *rest
    )
    return result


@dataclass(frozen=True, eq=False)
class _OfRealElements:
    """What the C code computes, as PyTorch operations.

    Attributes:
        counts: see `Pairs`.
    """

    counts: Tensor | None

    def __call__(self, query: Tensor, key: Tensor, location: Tensor, *rest: Tensor) -> Tensor:
        scores = all_examples(query, key, location, None, *rest)
        if self.counts is None:
            return scores
        is_real = torch.arange(scores.shape[-1]) < self.counts[:, None]
        return scores.masked_fill(~(is_real[:, :, None] & is_real[:, None]), 0)


class _PairMLP(WithPlain):
    @staticmethod
    def forward(of_real: _OfRealElements, *tensors: Tensor) -> Tensor:
        code, pairs, parameters = _arguments(of_real.counts, tensors)
        return code.value(pairs, head_mlp.packed(parameters))[:, None]

    @staticmethod
    def gradients(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        code, pairs, parameters = _arguments(ctx.plain.counts, ctx.saved_tensors)
        by_query, by_key, by_location, sums = code.gradient(
            pairs,
            head_mlp.packed(parameters),
            gradient[:, 0].contiguous(),
            of_location=ctx.needs_input_grad[3],
        )
        by_weight, _, *by_rest = head_mlp.unpacked(sums, like=parameters)
        return (by_query, by_key.mT, by_location, by_weight, *by_rest)


def _arguments(
    counts: Tensor | None, tensors: Sequence[Tensor]
) -> tuple["PairMLP", "Pairs", list[Tensor]]:
    """The C code, what it is computed of, and weights and biases of all layers."""
    query, key, location, of_location, *rest = tensors
    code = _find(of_location, rest)
    assert code is not None  # `supported` has been asked
    pairs = Pairs(query.contiguous(), key.mT.contiguous(), location.contiguous(), counts)
    # Queries have the bias of the first layer.
    return code, pairs, [of_location, torch.zeros_like(of_location[:, :1]), *rest]


def _find(of_location: Tensor, rest: Sequence[Tensor]) -> "PairMLP | None":
    """The functions for these layers; None where C cannot be used."""
    _, width, hidden = of_location.shape
    if len(rest) != _FURTHER_PARAMETERS:
        return None
    if rest[0].shape[1:] != (hidden, hidden) or rest[2].shape[2] != 1:
        return None
    return compiled(width, hidden)


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
    if not all(1 <= number <= head_mlp.WIDEST for number in (width, hidden)):
        return None
    code = library.load("pair_mlp.c", (("IN", width), ("HIDDEN", hidden), ("OUT", 1)))
    return None if code is None else PairMLP(code)
