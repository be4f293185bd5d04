"""Functions whose PyTorch bodies may be replaced by faster code with the same result.

The method decorates such a function with `@replaceable`. Which ones are replaced, by what, and for
which arguments, is known to `lietransformer.kernels.dispatch` alone. It is imported when such a
function is first called, and not at all where the environment variable LIETRANSFORMER_NATIVE is 0.

Questions about the state of PyTorch that only its private names answer are asked here, too.
"""

import os
from collections.abc import Callable
from functools import update_wrapper
from typing import Any, Generic, ParamSpec, Protocol, TypeVar, runtime_checkable

import torch
from torch import nn
from torch.autograd import forward_ad

from lietransformer.kernels import SWITCH

P = ParamSpec("P")
R = TypeVar("R")


@runtime_checkable
class Replacement(Protocol):
    """A module that replaces the body of a function."""

    @property
    def supported(self) -> Callable[..., bool]:
        """Whether it computes the function of these arguments."""

    @property
    def compute(self) -> Callable[..., Any]:
        """The function of these arguments, which are supported."""


class Replaceable(Generic[P, R]):
    """A function whose body in PyTorch, `plain`, is used unless there is a replacement."""

    def __init__(self, plain: Callable[P, R]) -> None:
        update_wrapper(self, plain)
        self.plain = plain
        self.name = f"{plain.__module__}.{plain.__qualname__}"

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        found = self._replacement(*args, **kwargs)
        body = self.plain if found is None else found.compute
        return body(*args, **kwargs)

    def is_replaced(self, *args: P.args, **kwargs: P.kwargs) -> bool:
        """Whether a call is replaced, which then keeps only its arguments for the backward pass."""
        return self._replacement(*args, **kwargs) is not None

    def _replacement(self, *args: Any, **kwargs: Any) -> Replacement | None:
        # Compilers can neither trace what follows nor gain from it.
        if torch.compiler.is_compiling() or os.environ.get(SWITCH) == "0":
            return None
        from lietransformer.kernels.dispatch import find  # noqa: PLC0415 – on first use

        found = find(self.name)
        return found if found is not None and found.supported(*args, **kwargs) else None


replaceable = Replaceable


def is_transformed() -> bool:
    """Whether operations are compiled, or transformed by `torch.func`."""
    return torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active()


def has_tangents() -> bool:
    """Whether forward differentiation is active."""
    return forward_ad._current_level >= 0


def has_hooks(*modules: nn.Module) -> bool:
    """Whether forward hooks watch any of the modules or their parts."""
    parts = (part for module in modules for part in module.modules())
    return any(part._forward_hooks or part._forward_pre_hooks for part in parts)
