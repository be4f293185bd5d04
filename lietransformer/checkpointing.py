"""Activation checkpointing: the pairs of a long set in parts, recomputed in the backward pass."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from lietransformer.dispatch import is_transformed


def can_be_split() -> bool:
    """Whether work may be done in parts: not where torch compiles or transforms it.

    A compiler plans the memory itself, and `torch.func` cannot compute anything again.
    """
    return not is_transformed()


def recomputed(function: Callable[..., Tensor], *args: Any) -> Tensor:
    """function(*args), computed once more for the backward pass instead of kept until then.

    The function must not draw random numbers.
    """
    if not torch.is_grad_enabled():
        return function(*args)
    result: Tensor = checkpoint(function, *args, use_reentrant=False, preserve_rng_state=False)
    return result
