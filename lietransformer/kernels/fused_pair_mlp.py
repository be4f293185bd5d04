"""The MLP of `MLPCombination` in one pass over the pairs, for training and evaluation on a CPU.

C code takes a block of pairs through all layers while it is in the nearest cache, and stores
nothing for the backward pass but what it was given, from which it computes the rest again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

from lietransformer.kernels import head_mlp, pair_mlp
from lietransformer.kernels.autograd_fallback import Plain, WithPlain

# A layer has two of them.
_FURTHER_PARAMETERS = 4


def applies(
    query: Tensor, key: Tensor, location: Tensor, of_location: Tensor, rest: Sequence[Tensor]
) -> bool:
    """Whether the C code is there, and can compute this."""
    tensors = (query, key, location, of_location, *rest)
    return (
        not torch.compiler.is_compiling()
        and all(tensor.device.type == "cpu" for tensor in tensors)
        and all(tensor.dtype == torch.float32 for tensor in tensors)
        and not torch.is_autocast_enabled("cpu")
        and forward_ad._current_level < 0  # tangents go by PyTorch's own rules
        and _find(of_location, rest) is not None
    )


def fused_pair_mlp(
    plain: Plain,
    counts: Tensor | None,
    query: Tensor,
    key: Tensor,
    location: Tensor,
    of_location: Tensor,
    rest: Sequence[Tensor],
) -> Tensor:
    """The same as `plain(query, key, location, of_location, *rest)`, to rounding.

    Zero for pairs that are not of real elements, if those are counted (see `pair_mlp`).
    """
    of_real = _OfRealElements(plain, counts)
    result: Tensor = _FusedPairMLP.apply(  # type: ignore[no-untyped-call]
        of_real, query, key, location, of_location, *rest
    )
    return result


@dataclass(frozen=True, eq=False)
class _OfRealElements:
    """What the C code computes, as PyTorch operations."""

    plain: Plain
    counts: Tensor | None

    def __call__(self, *tensors: Tensor) -> Tensor:
        scores = self.plain(*tensors)
        if self.counts is None:
            return scores
        is_real = torch.arange(scores.shape[-1]) < self.counts[:, None]
        return scores.masked_fill(~(is_real[:, :, None] & is_real[:, None]), 0)


class _FusedPairMLP(WithPlain):
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
) -> tuple[pair_mlp.PairMLP, pair_mlp.Pairs, list[Tensor]]:
    """The C code, what it is computed of, and weights and biases of all layers."""
    query, key, location, of_location, *rest = tensors
    code = _find(of_location, rest)
    assert code is not None  # `applies` has been asked
    pairs = pair_mlp.Pairs(query.contiguous(), key.mT.contiguous(), location.contiguous(), counts)
    # Queries have the bias of the first layer.
    return code, pairs, [of_location, torch.zeros_like(of_location[:, :1]), *rest]


def _find(of_location: Tensor, rest: Sequence[Tensor]) -> pair_mlp.PairMLP | None:
    """The functions for these layers; None where C cannot be used."""
    _, width, hidden = of_location.shape
    if len(rest) != _FURTHER_PARAMETERS:
        return None
    if rest[0].shape[1:] != (hidden, hidden) or rest[2].shape[2] != 1:
        return None
    return pair_mlp.compiled(width, hidden)
