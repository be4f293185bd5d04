"""Learnt equations of motion: Hamilton's equations, what they conserve, gradients through them."""

import itertools
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from lietransformer.clouds import PointCloud
from lietransformer.dynamics import (
    DirectDynamics,
    HamiltonianDynamics,
    LearntDynamics,
    PotentialDynamics,
    SpringSystem,
    rollout,
    systems_last,
)
from lietransformer.dynamics.hamiltonian import centred, phase_cloud
from lietransformer.lift import LiftConfig
from lietransformer.models import (
    FullyConnected,
    FullyConnectedConfig,
    GraphNetwork,
    GraphNetworkConfig,
    LieResNet,
    LieResNetConfig,
    LieTransformer,
    LieTransformerConfig,
)
from tests.cases import seeded
from tests.dynamics.known_models import (
    DistancePotential,
    ExactHamiltonian,
    ExactPotential,
    ExactVelocity,
)

STEP = 0.02


def system(batch: int = 3, particles: int = 6) -> tuple[Tensor, Tensor, Tensor]:
    """State, masses and spring constants."""
    generator = seeded()
    draw = {"generator": generator, "dtype": torch.float64}
    state = torch.randn(batch, 2, particles, 2, **draw)  # type: ignore[call-overload]
    masses = 0.5 + torch.rand(batch, particles, **draw)  # type: ignore[call-overload]
    stiffness = torch.rand(batch, particles, **draw)  # type: ignore[call-overload]
    return state, masses, stiffness


def enlarged(model: nn.Module) -> nn.Module:
    """So that forces are not negligible."""
    model = model.double()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.mul_(2)
    return model


def lie_transformer(group: str = "T(2)", **changes: object) -> nn.Module:
    torch.manual_seed(0)
    config = LieTransformerConfig(group, 2, 1, 16, 2, 4, **changes)  # type: ignore[arg-type]
    return enlarged(LieTransformer(config))


def lie_conv(group: str = "T(2)", **changes: object) -> nn.Module:
    torch.manual_seed(0)
    return enlarged(LieResNet(LieResNetConfig(group, 2, 1, 16, 2, **changes)))  # type: ignore[arg-type]


def fully_connected(outputs: int = 1, features: int = 2) -> nn.Module:
    torch.manual_seed(0)
    return enlarged(FullyConnected(FullyConnectedConfig(6, 2, features, outputs, width=16)))


def graph_network(read_out: str, outputs: int) -> nn.Module:
    torch.manual_seed(0)
    config = GraphNetworkConfig(2, 4, outputs, read_out, width=16, layers=2)  # type: ignore[arg-type]
    return enlarged(GraphNetwork(config))


C2 = {"lift": LiftConfig("subgroup", 2), "pair_features": "canonical"}
ALL: dict[str, LearntDynamics] = {
    "LieTransformer-T2": PotentialDynamics(lie_transformer()),
    "LieTransformer-SE2": PotentialDynamics(lie_transformer("SE(2)", **C2)),
    "LieConv-T2": PotentialDynamics(lie_conv()),
    "LieConv-SE2": PotentialDynamics(lie_conv("SE(2)", **C2)),
    "HFC": PotentialDynamics(fully_connected()),
    "FC": DirectDynamics(fully_connected(outputs=24, features=4)),
    "HOGN": HamiltonianDynamics(graph_network("global", 1)),
    "OGN": DirectDynamics(graph_network("node", 4)),
}


@pytest.mark.parametrize(
    "dynamics",
    [
        PotentialDynamics(ExactPotential()),
        HamiltonianDynamics(ExactHamiltonian()),
        DirectDynamics(ExactVelocity()),
    ],
    ids=lambda dynamics: type(dynamics).__name__,
)
def test_with_the_true_function_the_motion_is_the_true_one(dynamics: LearntDynamics) -> None:
    state, masses, stiffness = system()
    truth = SpringSystem(masses.T, stiffness.T).velocity(systems_last(state).contiguous())
    expected = truth.movedim(-1, 0)
    torch.testing.assert_close(dynamics(state, masses, stiffness), expected)
    predicted = rollout(dynamics.field(masses, stiffness), state, step=STEP, states=20)
    true_field = SpringSystem(masses.T, stiffness.T).velocity
    true_states = rollout(true_field, systems_last(state).contiguous(), step=STEP, states=20)
    torch.testing.assert_close(predicted, true_states.movedim(-1, 1))


def momentum(states: Tensor) -> Tensor:
    return states[..., 1, :, :].sum(dim=-2)


def angular_momentum(states: Tensor) -> Tensor:
    q, p = states.unbind(dim=-3)
    return (q[..., 0] * p[..., 1] - q[..., 1] * p[..., 0]).sum(dim=-1)


def torque(dynamics: LearntDynamics) -> Tensor:
    state, masses, stiffness = system()
    velocity = dynamics(state, masses, stiffness)
    force = velocity[:, 1]
    assert force.abs().max() > 1e-3
    return (
        angular_momentum(torch.stack([state[:, 0], force], dim=1)).abs().max() / force.abs().max()
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n, d in ALL.items() if isinstance(d, PotentialDynamics)])
def test_a_translation_invariant_potential_conserves_momentum(name: str) -> None:
    state, masses, stiffness = system()
    field = ALL[name].field(masses, stiffness)
    with torch.no_grad():
        states = rollout(field, state, step=STEP, states=50)
    assert (states[-1] - states[0]).abs().max() > 0.1
    drift = (momentum(states) - momentum(states[0])).abs().max()
    assert drift < 1e-12


@pytest.mark.parametrize("name", ["FC", "OGN"])
def test_a_direct_field_does_not(name: str) -> None:
    state, masses, stiffness = system()
    with torch.no_grad():
        states = rollout(ALL[name].field(masses, stiffness), state, step=STEP, states=50)
    assert (momentum(states) - momentum(states[0])).abs().max() > 1e-3


def test_exact_rotation_invariance_conserves_angular_momentum() -> None:
    """SO(2) acts about the centre, to which positions are moved: no torque, to rounding."""
    for model in (lie_transformer("SO(2)"), lie_conv("SO(2)")):
        assert torque(PotentialDynamics(model)) < 1e-10


@pytest.mark.parametrize("name", ["LieTransformer-T2", "LieConv-T2", "HFC"])
def test_without_it_there_is_a_torque(name: str) -> None:
    assert torque(ALL[name]) > 1e-4


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model_type", "is_rotation_invariant"), [(lie_transformer, False), (DistancePotential, True)]
)
def test_drifts_shrink_at_fourth_order(
    model_type: Callable[[], nn.Module], is_rotation_invariant: bool
) -> None:
    """Of the energy, and of the angular momentum of a rotation-invariant potential.

    The potential has to be smooth for that: a LieTransformer on T(2), and one that sees
    distances only. (The logarithm of a rotation jumps at half turns.)
    """
    torch.manual_seed(0)
    model = model_type()
    dynamics = PotentialDynamics(model)
    state, masses, stiffness = system()
    features = torch.stack([masses, stiffness], dim=-1)

    def energy(z: Tensor) -> Tensor:
        kinetic = (z[:, 1].square().sum(dim=-1) / (2 * masses)).sum(dim=-1)
        return kinetic + model(PointCloud(centred(z[:, 0]), features))[:, 0]

    drifts = []
    with torch.no_grad():
        for steps in (20, 40, 80):
            field = dynamics.field(masses, stiffness)
            last = rollout(field, state, step=2 / steps, states=steps + 1)[-1]
            change = [energy(last) - energy(state)]
            if is_rotation_invariant:
                change.append(angular_momentum(last) - angular_momentum(state))
            drifts.append([part.abs().max().item() for part in change])
    for coarse, fine in itertools.pairwise(drifts):
        for before, after in zip(coarse, fine, strict=True):
            assert 11 < before / after < 50  # 16 for order 4, 32 for order 5


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL)
def test_gradients_through_a_rollout_of_5_steps_against_finite_differences(name: str) -> None:
    """In float64, along random directions in the space of all parameters."""
    dynamics = ALL[name]
    state, masses, stiffness = system(batch=2)
    parameters = list(dynamics.parameters())

    def loss() -> Tensor:
        states = rollout(dynamics.field(masses, stiffness), state, step=0.1, states=6)
        return states[1:].square().mean()

    gradients = torch.autograd.grad(loss(), parameters, allow_unused=True)
    generator = seeded(3)
    for _ in range(3):
        direction = [
            torch.randn(p.shape, generator=generator, dtype=torch.float64) for p in parameters
        ]
        analytic = sum(
            (g * d).sum().item() for g, d in zip(gradients, direction, strict=True) if g is not None
        )
        epsilon, values = 1e-5, []
        with torch.no_grad():
            for sign in (1, -1, -1, 1):  # there, through, and back
                for parameter, step in zip(parameters, direction, strict=True):
                    parameter.add_(sign * epsilon * step)
                values.append(loss().item())
        numeric = (values[0] - values[2]) / (2 * epsilon)
        assert abs(numeric) > 1e-8
        assert analytic == pytest.approx(numeric, rel=2e-5)


@pytest.mark.usefixtures("both_ways")
def test_forces_need_no_gradients_switched_on() -> None:
    dynamics = ALL["LieTransformer-T2"]
    state, masses, stiffness = system()
    with_gradients = dynamics(state, masses, stiffness)
    with torch.no_grad():
        without = dynamics(state, masses, stiffness)
    assert with_gradients.requires_grad
    assert not without.requires_grad
    torch.testing.assert_close(with_gradients, without)


@pytest.mark.usefixtures("both_ways")
def test_examples_do_not_mix() -> None:
    state, masses, stiffness = system()
    for name, dynamics in ALL.items():
        together = dynamics(state, masses, stiffness)
        alone = dynamics(state[1:2], masses[1:2], stiffness[1:2])
        torch.testing.assert_close(together[1:2], alone, msg=name)


@pytest.mark.parametrize(
    ("dynamics", "message"),
    [
        (PotentialDynamics(fully_connected(outputs=3)), "1 outputs for each example, an energy"),
        (HamiltonianDynamics(graph_network("node", 1)), "1 outputs for each example, an energy"),
        (DirectDynamics(graph_network("global", 4)), "24 outputs for each example"),
    ],
)
def test_models_with_other_outputs_are_refused(dynamics: LearntDynamics, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        dynamics(*system())


@pytest.mark.usefixtures("both_ways")
def test_models_that_change_while_they_are_differentiated_are_refused() -> None:
    for changes in ({"norm": "batch"}, {"fill": 0.5}):
        with pytest.raises(ValueError, match="batch norm or a radius that adapts"):
            PotentialDynamics(lie_conv(**changes))


@pytest.mark.usefixtures("both_ways")
def test_a_random_model_is_one_function_during_a_rollout() -> None:
    """And another one in the next."""
    model = lie_transformer("SE(2)", lift=LiftConfig("random", 2))
    dynamics = PotentialDynamics(model)
    state, masses, stiffness = system()
    generator = seeded()
    first, second = (dynamics.field(masses, stiffness, generator=generator) for _ in range(2))
    torch.testing.assert_close(first(state), first(state), rtol=0, atol=0)
    assert not torch.equal(first(state), second(state))
    again = dynamics.field(masses, stiffness, generator=seeded())
    torch.testing.assert_close(again(state), first(state), rtol=0, atol=0)


def test_a_hamiltonian_gets_the_generator() -> None:
    class Noise(nn.Module):
        def forward(self, cloud: PointCloud, *, generator: torch.Generator) -> Tensor:
            drawn = torch.rand(1, generator=generator, dtype=torch.float64)
            return drawn * cloud.features.square().sum(dim=(1, 2))[:, None]

    for kind in (HamiltonianDynamics, PotentialDynamics, DirectDynamics):
        model = Noise() if kind is not DirectDynamics else _Repeated(Noise())
        one, other = (kind(model)(*system(), generator=seeded(seed)) for seed in (0, 1))
        if kind is not PotentialDynamics:  # whose gradient by q alone is zero here
            assert not torch.equal(one, other)


class _Repeated(nn.Module):
    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, cloud: PointCloud, *, generator: torch.Generator) -> Tensor:
        return self.model(cloud, generator=generator).expand(-1, 24).contiguous()


@pytest.mark.slow
def test_forces_of_all_models_compile_to_one_graph() -> None:
    """In a process of its own, since the suite's shape checks cannot be compiled."""
    program = Path(__file__).with_name("compile_program.py")
    subprocess.run([sys.executable, program], check=True)


def test_what_a_model_of_phase_space_sees() -> None:
    state, masses, stiffness = system()
    cloud = phase_cloud(state, masses, stiffness)
    torch.testing.assert_close(cloud.positions.mean(dim=1), torch.zeros(3, 2, dtype=torch.float64))
    torch.testing.assert_close(cloud.features[..., :2], state[:, 1])
    torch.testing.assert_close(cloud.features[..., 2], masses)
    torch.testing.assert_close(cloud.features[..., 3], stiffness)
