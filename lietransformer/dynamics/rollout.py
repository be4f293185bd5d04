"""Integration in time at a fixed step: the same rule for the data and for the models.

A dataset carries the discretisation error of the rule that made it. A model that is
integrated by the same rule with the same step can match the data far below that error.
"""

from collections.abc import Callable, Iterator

import torch
from jaxtyping import Float
from torch import Tensor

from lietransformer.errors import require_at_least_one

VectorField = Callable[[Tensor], Tensor]


def runge_kutta_step(
    field: VectorField, state: Float[Tensor, "*shape"], step: float
) -> Float[Tensor, "*shape"]:
    """One step of Kutta's 3/8 rule for ż = f(z): z + h/8·(k₁ + 3k₂ + 3k₃ + k₄), order 4.

    k₁ = f(z), k₂ = f(z + h/3·k₁), k₃ = f(z + h·(k₂ − k₁/3)), k₄ = f(z + h·(k₁ − k₂ + k₃)).
    """
    # `add` with `alpha` multiplies and adds in one pass over memory.
    k1 = field(state)
    k2 = field(state.add(k1, alpha=step / 3))
    k3 = field(state.add(k2.add(k1, alpha=-1 / 3), alpha=step))
    k4 = field(state.add(k1 - k2 + k3, alpha=step))
    return state.add(k1 + k4, alpha=step / 8).add(k2 + k3, alpha=3 * step / 8)


def trajectory(
    field: VectorField, initial: Float[Tensor, "*shape"], *, step: float, states: int
) -> Iterator[Float[Tensor, "*shape"]]:
    """The states z(0), z(h), z(2h), … one by one, the initial one first."""
    require_at_least_one("states", states)
    state = initial
    yield state
    for _ in range(states - 1):
        state = runge_kutta_step(field, state, step)
        yield state


def rollout(
    field: VectorField, initial: Float[Tensor, "*shape"], *, step: float, states: int
) -> Float[Tensor, "states *shape"]:
    """The states z(0), z(h), z(2h), … along a new first axis."""
    return torch.stack(list(trajectory(field, initial, step=step, states=states)))
