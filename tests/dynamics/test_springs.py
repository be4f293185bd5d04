"""The spring system against its definition, and the integration against the exact solution."""

import itertools

import numpy as np
import pytest
import scipy.linalg
import torch
from torch import Tensor

from lietransformer.dynamics import SpringSystem, rollout, systems_last
from tests.cases import seeded


def random_system(
    particles: int = 6, space: int = 2, systems: int = 3
) -> tuple[SpringSystem, Tensor]:
    generator = seeded()
    draw = {"generator": generator, "dtype": torch.float64}
    masses = 0.1 + 3 * torch.rand(particles, systems, **draw)  # type: ignore[call-overload]
    stiffness = 5 * torch.rand(particles, systems, **draw)  # type: ignore[call-overload]
    state = torch.randn(2, particles, space, systems, **draw)  # type: ignore[call-overload]
    return SpringSystem(masses, stiffness), state


def energy_by_pairs(system: SpringSystem, state: Tensor) -> Tensor:
    """Fidelity to the formula: ½ Σ over ordered pairs."""
    position, momentum = state
    difference = position[:, None] - position[None]
    weights = system.stiffness[:, None] * system.stiffness[None]
    potential = 0.5 * (weights * difference.square().sum(dim=2)).sum(dim=(0, 1))
    return potential + (momentum.square().sum(dim=1) / (2 * system.masses)).sum(dim=0)


@pytest.mark.parametrize(("particles", "space"), [(2, 1), (6, 2), (5, 3)])
def test_energy_is_the_sum_over_pairs(particles: int, space: int) -> None:
    system, state = random_system(particles, space)
    torch.testing.assert_close(system.energy(state), energy_by_pairs(system, state))


def test_energy_does_not_cancel_far_from_the_origin() -> None:
    system, state = random_system()
    far = state.clone()
    far[0] += 1e4
    torch.testing.assert_close(system.energy(far), system.energy(state), rtol=1e-8, atol=0)


def test_velocity_is_the_hamiltonian_vector_field() -> None:
    system, state = random_system()
    state.requires_grad_()
    (gradient,) = torch.autograd.grad(energy_by_pairs(system, state).sum(), state)
    velocity = system.velocity(state.detach())
    torch.testing.assert_close(velocity[0], gradient[1])
    torch.testing.assert_close(velocity[1], -gradient[0])


def exact_states(system: SpringSystem, state: Tensor, times: list[float]) -> Tensor:
    """exp(tA)·z of the linear system ż = Az, for the first of the systems."""
    masses, k = system.masses[:, 0].numpy(), system.stiffness[:, 0].numpy()
    count = len(masses)
    laplacian = 2 * (np.diag(k * k.sum()) - np.outer(k, k))
    generator = np.block(
        [
            [np.zeros((count, count)), np.diag(1 / masses)],
            [-laplacian, np.zeros((count, count))],
        ]
    )
    initial = state[..., 0].numpy().reshape(2 * count, -1)
    solution = [scipy.linalg.expm(generator * time) @ initial for time in times]
    return torch.from_numpy(np.stack(solution)).unflatten(1, (2, count))


def test_agreement_with_the_exact_solution_at_fourth_order() -> None:
    """Halve the step, and the error falls by 16."""
    system, state = random_system()
    exact = exact_states(system, state, [1.0])[0]
    errors = []
    for steps in (200, 400, 800):
        last = rollout(system.velocity, state, step=1 / steps, states=steps + 1)[-1]
        errors.append((last[..., 0] - exact).abs().max().item())
    ratios = [coarse / fine for coarse, fine in itertools.pairwise(errors)]
    assert ratios == pytest.approx([16, 16], rel=0.1)
    assert errors[-1] < 1e-6


def test_momentum_is_conserved_and_energy_drifts_at_higher_order() -> None:
    system, state = random_system(systems=20)
    drifts = []
    for steps in (250, 500):
        states = rollout(system.velocity, state, step=2.5 / steps, states=steps + 1)
        momentum = states[:, 1].sum(dim=1)
        torch.testing.assert_close(momentum, momentum[:1].expand_as(momentum), rtol=0, atol=1e-11)
        energy = torch.stack([system.energy(at_one_time) for at_one_time in states])
        drifts.append(((energy[-1] - energy[0]) / energy[0]).abs().median().item())
    # The rule loses energy at its fifth order: by a factor of 32 for half the step.
    assert drifts[0] / drifts[1] == pytest.approx(32, rel=0.15)
    assert drifts[1] < 1e-5


def test_systems_last() -> None:
    states = torch.randn(7, 5, 2, 6, 3)
    moved = systems_last(states)
    assert moved.shape == (2, 6, 3, 7, 5)
    assert moved[1, 4, 2, 6, 3] == states[6, 3, 1, 4, 2]
