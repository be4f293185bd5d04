"""The MLP of `MLPCombination`, for a part of the batch at a time.

Each of its layers makes a number for each pair, head and hidden unit. PyTorch would store four such
tensors for the backward pass, in each layer of the model, which is most of the memory of training.
Here nothing of that size is stored, or even there: the layers see a few examples at a time. The
backward pass computes them again; because a part fits into the cache, that takes no more time.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from lietransformer.dispatch import has_tangents, replaceable
from lietransformer.nn.mlp import per_head_matmul, per_head_mlp
from lietransformer.pairs import PairGeometry, keys_of

# Numbers of one layer that are computed at once. Not by the number of threads, on which sums would
# depend.
_NUMBERS_AT_ONCE = 2**19

# The axis of the batch in each of the first tensors; the others are parameters.
_BATCH_AXES = (1, 1, 2, 0)
# So many tensors are of the first layer.
_FIRST = len(_BATCH_AXES) + 1


@replaceable
def pair_mlp(
    query: Float[Tensor, "heads batch g hidden"],
    key: Float[Tensor, "heads batch n hidden"],
    location: Float[Tensor, "#heads width batch g key"],
    geometry: PairGeometry,
    of_location: Float[Tensor, "heads width hidden"],
    rest: Sequence[Tensor],
) -> Float[Tensor, "heads out batch g key"]:
    """An MLP whose first layer is query[i] + key[j] + W·location[i, j], before its swish.

    Args:
        query: a term for each query, which has the bias of the first layer.
        key: a term for each key.
        location: a vector for each pair.
        geometry: the pairs. What comes out for those that do not count is of no use.
        of_location: W.
        rest: weight and bias of each further layer, all of them followed by swish.
    """
    function = _InParts.apply if _applies(query, location) else all_examples
    return function(query, key, location, geometry.indices, of_location, *rest)


def _applies(query: Tensor, location: Tensor) -> bool:
    """Whether there is more than one part, and nothing that only PyTorch's own rules can do."""
    return (
        not torch.compiler.is_compiling()
        and query.device.type == "cpu"
        and not torch.is_autocast_enabled("cpu")
        and not has_tangents()
        and _examples_at_once(query, location) < query.shape[1]
    )


def _examples_at_once(query: Tensor, location: Tensor) -> int:
    numbers = query.shape[0] * query.shape[-1] * location.shape[-2] * location.shape[-1]
    return max(1, _NUMBERS_AT_ONCE // max(1, numbers))


def all_examples(
    query: Tensor,
    key: Tensor,
    location: Tensor,
    indices: Tensor | None,
    of_location: Tensor,
    *rest: Tensor,
) -> Tensor:
    """The same for all examples at once."""
    hidden = _first_layer(query, key, location, indices, of_location)
    return per_head_mlp(F.silu(hidden.flatten(2)), *rest).unflatten(2, location.shape[2:])


def _first_layer(
    query: Tensor, key: Tensor, location: Tensor, indices: Tensor | None, of_location: Tensor
) -> Tensor:
    """(heads, hidden, batch, query, key), before swish."""
    hidden = per_head_matmul(of_location, location.flatten(2)).unflatten(2, location.shape[2:])
    hidden = hidden + query.movedim(-1, 1)[..., None]
    return hidden + keys_of(key, indices).movedim(-1, 1)


class _InParts(torch.autograd.Function):
    @staticmethod
    def forward(*tensors: Any) -> Tensor:
        return torch.cat([_value(part) for _, part in _parts(tensors)], dim=2)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:  # noqa: ARG004
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        tensors: tuple[Any, ...] = ctx.saved_tensors
        if torch.is_grad_enabled():  # the gradient is to be differentiated in turn
            return _differentiable_gradients(tensors, gradient)
        gradients = [
            torch.zeros_like(tensor) if needed else None
            for tensor, needed in zip(tensors, ctx.needs_input_grad, strict=True)
        ]
        for examples, part in _parts(tensors):
            sums = _of_examples(gradients, examples)
            _add_gradients(sums, part, gradient[:, :, examples])
        return tuple(gradients)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *tensors: Any) -> tuple[Tensor, int]:
        batched = torch.func.vmap(all_examples, in_dims=in_dims, randomness=info.randomness)
        return batched(*tensors), 0


def _parts(tensors: Sequence[Any]) -> Iterator[tuple[slice, list[Any]]]:
    """Examples that are computed at once, and what there is for them."""
    query, _, location, *_ = tensors
    size = _examples_at_once(query, location)
    for start in range(0, query.shape[1], size):
        examples = slice(start, start + size)
        yield examples, _of_examples(tensors, examples)


def _of_examples(tensors: Sequence[Any], examples: slice) -> list[Any]:
    """Views of some examples, and the parameters as they are."""
    axes = (*_BATCH_AXES, *(len(tensors) - len(_BATCH_AXES)) * [None])
    return [
        tensor if tensor is None or axis is None else tensor[(slice(None),) * axis + (examples,)]
        for tensor, axis in zip(tensors, axes, strict=True)
    ]


def _value(part: Sequence[Any]) -> Tensor:
    """What `all_examples` gives, with swish in the place of its input: nothing has to be kept."""
    first, rest = part[:_FIRST], part[_FIRST:]
    hidden = _first_layer(*first)
    x = F.silu(hidden.flatten(2), inplace=True)
    for weight, bias in zip(rest[::2], rest[1::2], strict=True):
        x = F.silu(torch.baddbmm(bias.mT, weight.mT, x), inplace=True)
    return x.unflatten(2, hidden.shape[2:])


def _add_gradients(sums: Sequence[Tensor | None], part: Sequence[Any], gradient: Tensor) -> None:
    """Add the gradients of one part to those that are wanted.

    The layers but the first are differentiated here, with less memory than PyTorch's own rules
    take, and so in less time: gradients take the place of values that are no longer needed.
    """
    first, rest = part[:_FIRST], part[_FIRST:]
    wanted = [number for number, total in enumerate(sums[:_FIRST]) if total is not None]
    with torch.enable_grad():
        first = [None if tensor is None else tensor.detach() for tensor in first]
        for number in wanted:
            first[number].requires_grad_()
        hidden = _first_layer(*first)
    before = [hidden.detach().flatten(2)]
    after = []
    for weight, bias in zip(rest[::2], rest[1::2], strict=True):
        after.append(F.silu(before[-1]))
        before.append(torch.baddbmm(bias.mT, weight.mT, after[-1]))
    gradient = _swish_gradient(gradient.flatten(2), before.pop())
    for number in reversed(range(len(after))):
        by_weight, by_bias = sums[_FIRST + 2 * number :][:2]
        if by_weight is not None:
            by_weight.baddbmm_(after[number], gradient.mT)
        if by_bias is not None:
            by_bias += gradient.sum(dim=-1)[:, None]
        torch.bmm(rest[2 * number], gradient, out=after[number])
        gradient = _swish_gradient(after.pop(), before.pop())
    if wanted:
        found = torch.autograd.grad(
            hidden, [first[number] for number in wanted], gradient.view_as(hidden)
        )
        for number, tensor in zip(wanted, found, strict=True):
            total = sums[number]
            assert total is not None
            total += tensor


def _swish_gradient(gradient: Tensor, x: Tensor) -> Tensor:
    """gradient · swish'(x), in the memory of x."""
    return torch.ops.aten.silu_backward.grad_input(gradient, x, grad_input=x)


def _differentiable_gradients(
    tensors: Sequence[Any], gradient: Tensor
) -> tuple[Tensor | None, ...]:
    """The gradients by PyTorch's own rules, all examples at once."""
    *examples, indices = tensors[: len(_BATCH_AXES)]
    parameters = tensors[len(_BATCH_AXES) :]

    def function(query: Tensor, key: Tensor, location: Tensor, *rest: Tensor) -> Tensor:
        return all_examples(query, key, location, indices, *rest)

    pull_back: Callable[[Tensor], tuple[Tensor, ...]]
    _, pull_back = torch.func.vjp(function, *examples, *parameters)  # type: ignore[misc]
    by_query, by_key, by_location, *by_parameters = pull_back(gradient)
    return by_query, by_key, by_location, None, *by_parameters
