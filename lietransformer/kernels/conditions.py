"""Conditions and sizes that several kernels ask for."""

from collections.abc import Callable
from functools import wraps
from typing import TypeVar
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from lietransformer.dispatch import has_tangents, is_transformed
from lietransformer.packing import Packing
from lietransformer.pairs import PairGeometry

K = TypeVar("K")
V = TypeVar("V")


def are_ordinary(*tensors: Tensor) -> bool:
    """Whether all are in single precision on a CPU, outside of autocast and forward derivatives."""
    return (
        not torch.compiler.is_compiling()  # first: it cannot trace the rest
        and all(tensor.device.type == "cpu" for tensor in tensors)
        and all(tensor.dtype == torch.float32 for tensor in tensors)
        and not torch.is_autocast_enabled("cpu")
        and not has_tangents()  # which PyTorch's own rules compute
    )


def is_wrapped(tensor: Tensor) -> bool:
    """Whether `torch.func` differentiates by it or maps over it."""
    return bool(torch._C._functorch.is_functorch_wrapped_tensor(tensor))


def _once(function: Callable[[K], V]) -> Callable[[K], V]:
    """Remember the result for an object as long as it lives: layers share their geometry."""
    known: WeakKeyDictionary[K, V] = WeakKeyDictionary()

    @wraps(function)
    def remembered(given: K) -> V:
        if given not in known:
            known[given] = function(given)
        return known[given]

    return remembered


@_once
def leading_keys(geometry: PairGeometry) -> Tensor | None:
    """How many keys each example has, if they are its first elements for every query."""
    if geometry.indices is not None or geometry.mask.shape[1] != 1:
        return None
    return _leading(geometry.mask[:, 0])


@_once
def _leading_elements(packing: Packing) -> Tensor | None:
    """The number of real elements of each example, if they are its first ones."""
    return _leading(packing.mask)


def real_elements(geometry: PairGeometry) -> Tensor | None:
    """How many each example has, if they are its first ones and both its queries and its keys.

    None where that is not to be asked: torch.func cannot trace the answer.
    """
    _, queries, keys, _ = geometry.coordinates.shape
    if geometry.mask.device.type != "cpu" or is_transformed() or queries != keys:
        return None
    if geometry.packing is None:
        return leading_keys(geometry)
    return _leading_elements(geometry.packing)


def _leading(mask: Tensor) -> Tensor | None:
    counts = mask.sum(dim=1)
    are_first = mask == (torch.arange(mask.shape[1], device=mask.device) < counts[:, None])
    return counts if bool(are_first.all()) else None
