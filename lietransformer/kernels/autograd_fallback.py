"""Functions in C, with PyTorch operations for what only PyTorch's own rules can do."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

# The same as PyTorch operations, of the same tensors.
Plain = Callable[..., Tensor]


class WithPlain(torch.autograd.Function):
    """A function whose first argument is itself as PyTorch operations, the others tensors.

    Those are used where a gradient is differentiated in turn, and by vmap.
    """

    @staticmethod
    def gradients(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        """By each of the tensors, which are those that `ctx` has saved."""
        raise NotImplementedError

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:  # noqa: ARG004
        ctx.plain, *tensors = inputs
        ctx.save_for_backward(*tensors)

    @classmethod
    def backward(cls, ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        if torch.is_grad_enabled():
            pull_back: Callable[[Tensor], tuple[Tensor, ...]]
            _, pull_back = torch.func.vjp(ctx.plain, *ctx.saved_tensors)  # type: ignore[misc]
            return (None, *pull_back(gradient))
        return (None, *cls.gradients(ctx, gradient))

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *inputs: Any) -> tuple[Tensor, int]:
        plain, *tensors = inputs
        batched = torch.func.vmap(plain, in_dims=in_dims[1:], randomness=info.randomness)
        return batched(*tensors), 0
