"""The 3/8 rule: its coefficients and its order."""

import itertools
import math

import pytest
import torch
from torch import Tensor

from lietransformer.dynamics import rollout, runge_kutta_step, trajectory


def test_one_step_by_hand() -> None:
    """ż = z²: k₁ = 1, k₂ = (4/3)², k₃ = (1 + k₂ − 1/3)², k₄ = (1 + 1 − k₂ + k₃)² for z = h = 1."""
    k2 = (4 / 3) ** 2
    k3 = (1 + k2 - 1 / 3) ** 2
    k4 = (1 + 1 - k2 + k3) ** 2
    state = torch.ones(1, dtype=torch.float64)
    stepped = runge_kutta_step(torch.square, state, 1.0)
    assert stepped.item() == pytest.approx(1 + (1 + 3 * k2 + 3 * k3 + k4) / 8, rel=1e-14)


def test_order_four_on_a_nonlinear_equation() -> None:
    """ż = −z² from z(0) = 1 has the solution 1/(1 + t)."""

    def field(state: Tensor) -> Tensor:
        return -state.square()

    errors = []
    for steps in (40, 80, 160):
        initial = torch.ones((), dtype=torch.float64)
        last = rollout(field, initial, step=1 / steps, states=steps + 1)[-1]
        errors.append(abs(last.item() - 0.5))
    orders = [math.log2(coarse / fine) for coarse, fine in itertools.pairwise(errors)]
    assert orders == pytest.approx([4, 4], abs=0.15)


def test_the_rule_is_differentiable() -> None:
    rate = torch.tensor(0.3, dtype=torch.float64, requires_grad=True)

    def last(value: Tensor) -> Tensor:
        initial = torch.ones(2, dtype=torch.float64)
        return rollout(lambda z: -value * z, initial, step=0.1, states=4)[-1]

    assert torch.autograd.gradcheck(last, (rate,))


def test_no_states_are_refused() -> None:
    with pytest.raises(ValueError, match="states must be at least 1"):
        rollout(torch.ones_like, torch.zeros(3), step=0.5, states=0)


def test_states_are_counted_from_the_initial_one() -> None:
    initial = torch.zeros(3)
    states = list(trajectory(torch.ones_like, initial, step=0.5, states=3))
    assert [state[0].item() for state in states] == [0.0, 0.5, 1.0]
    assert states[0] is initial
    assert torch.equal(rollout(torch.ones_like, initial, step=0.5, states=3), torch.stack(states))
