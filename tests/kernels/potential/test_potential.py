"""The force of a potential pass by pass is that of PyTorch, and so is its gradient."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from lietransformer.clouds import PointCloud
from lietransformer.dynamics.hamiltonian import PotentialDynamics, gradient
from lietransformer.experiments.registry import get_preset
from lietransformer.kernels import potential as second_order
from lietransformer.kernels.potential import replacement
from lietransformer.lift import LiftConfig
from lietransformer.models.lie_resnet import LieResNet
from lietransformer.models.lie_transformer import LieTransformer
from lietransformer.nn.attention import AttentionConfig
from tests.kernels.potential.potentials import (
    CONVOLUTION,
    PLAIN,
    ROUNDING,
    Config,
    Model,
    assert_agree,
    by_passes,
    by_pytorch,
    inputs,
    potential,
)
from tests.requirements import needs_compiler

pytestmark = needs_compiler

SUBGROUP = LiftConfig("subgroup", samples=3)

CONFIGS: dict[str, Config] = {
    "T(2)": PLAIN,
    "T(3)": replace(PLAIN, group="T(3)"),
    "one layer": replace(PLAIN, layers=1),
    "one head": replace(PLAIN, heads=1),
    "wide heads": replace(PLAIN, width=40, heads=2),
    "narrow kernel": replace(PLAIN, attention=AttentionConfig(kernel_width=5)),
    "SE(2) log": replace(PLAIN, group="SE(2)", lift=SUBGROUP),
    "SE(2) canonical": replace(PLAIN, group="SE(2)", lift=SUBGROUP, pair_features="canonical"),
    "T(2)xC4": replace(PLAIN, group="T(2)xC4"),
    "T(2)xD3": replace(PLAIN, group="T(2)xD3"),
    "LieConv": CONVOLUTION,
    "LieConv of one layer": replace(CONVOLUTION, layers=1),
    "LieConv of another width": replace(CONVOLUTION, width=72),
    "LieConv on SE(2)": replace(CONVOLUTION, group="SE(2)", lift=SUBGROUP),
    "LieConv on T(3)": replace(CONVOLUTION, group="T(3)"),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_agrees_with_pytorch(name: str) -> None:
    model = potential(CONFIGS[name])
    given = inputs(CONFIGS[name])
    assert_agree(model, by_passes(model, *given), by_pytorch(model, *given))


@pytest.mark.parametrize("config", [PLAIN, CONVOLUTION], ids=["LieTransformer", "LieConv"])
@pytest.mark.parametrize(("batch", "points"), [(1, 2), (1, 6), (3, 16), (2, 17), (50, 6), (131, 5)])
def test_sets_of_any_size(config: Config, batch: int, points: int) -> None:
    model, given = potential(config), inputs(config, batch, points)
    assert_agree(model, by_passes(model, *given), by_pytorch(model, *given))


@pytest.mark.parametrize(
    "name", ["LieTransformer-T2", "LieTransformer-SE2 small", "LieConv-T2", "LieConv-SE2 small"]
)
def test_the_papers_models(name: str) -> None:
    model = get_preset("springs", name).build(seed=0)
    assert isinstance(model, LieTransformer | LieResNet)
    given = inputs(model.config, 10, 6)
    assert_agree(model, by_passes(model, *given), by_pytorch(model, *given))


def test_positions_far_away() -> None:
    model = potential(PLAIN)
    positions, features, direction = inputs(PLAIN)
    near = by_passes(model, positions, features, direction)
    far = by_passes(model, positions + 100, features, direction)
    for a, b in zip(far, near, strict=True):
        assert (a - b).abs().max() <= 1e-3 * b.abs().max()


@pytest.mark.parametrize("config", [PLAIN, CONVOLUTION], ids=["LieTransformer", "LieConv"])
def test_numbers_depend_on_the_threads_by_rounding_at_most(config: Config) -> None:
    model, given = potential(config), inputs(config, 100, 6)
    before = torch.get_num_threads()
    results = []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            results.append(by_passes(model, *given))
    finally:
        torch.set_num_threads(before)
    for result in results[1:]:
        assert_agree(model, result, results[0])


@pytest.mark.parametrize("config", [PLAIN, CONVOLUTION], ids=["LieTransformer", "LieConv"])
def test_a_second_backward_pass_gives_the_same(config: Config) -> None:
    model, (positions, features, direction) = potential(config), inputs(config)
    q = positions.requires_grad_()
    force = second_order.Potential(model, features).gradient(q)
    total = (force * direction).sum()
    first = torch.autograd.grad(total, [q, *model.parameters()], retain_graph=True)
    second = torch.autograd.grad(total, [q, *model.parameters()])
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize("config", [PLAIN, CONVOLUTION], ids=["LieTransformer", "LieConv"])
def test_a_pass_to_positions_alone_changes_no_later_one(config: Config) -> None:
    model, (positions, features, direction) = potential(config), inputs(config)
    expected = by_passes(model, positions, features, direction)
    q = positions.requires_grad_()
    total = (second_order.Potential(model, features).gradient(q) * direction).sum()
    (by_positions,) = torch.autograd.grad(total, q, retain_graph=True)
    by_parameters = torch.autograd.grad(total, list(model.parameters()))
    torch.testing.assert_close([by_positions, *by_parameters], expected[1:], rtol=0, atol=0)


def test_several_threads_share_a_potential() -> None:
    model, (positions, features, direction) = potential(PLAIN), inputs(PLAIN, batch=50)
    states = [positions + 0.1 * number * direction for number in range(4)]
    expected = [by_passes(model, q, features, direction) for q in states]
    shared = second_order.Potential(model, features)

    def found(q: Tensor) -> list[Tensor]:
        q = q.clone().requires_grad_()
        force = shared.gradient(q)
        wanted = [q, *model.parameters()]
        total = (force * direction).sum()
        return [force, *torch.autograd.grad(total, wanted, retain_graph=True)]

    with ThreadPoolExecutor(len(states)) as pool:
        for result, alone in zip(pool.map(found, 5 * states), 5 * expected, strict=True):
            torch.testing.assert_close(result, alone, rtol=0, atol=0)


def test_two_states_at_once_do_not_mix() -> None:
    model, (positions, features, direction) = potential(PLAIN), inputs(PLAIN)
    apart = [by_passes(model, q, features, direction) for q in (positions, positions + direction)]
    forces = [
        second_order.Potential(model, features).gradient(q)
        for q in (positions, positions + direction)
    ]
    total = sum((force * direction).sum() for force in forces)
    assert isinstance(total, Tensor)
    together = torch.autograd.grad(total, list(model.parameters()))
    for both, one, other in zip(together, apart[0][2:], apart[1][2:], strict=True):
        assert (both - one - other).abs().max() <= ROUNDING * (one + other).abs().max()


def test_parameters_that_have_changed_since_are_noticed() -> None:
    model, (positions, features, _) = potential(PLAIN), inputs(PLAIN)
    force = second_order.Potential(model, features).gradient(positions)
    with torch.no_grad():
        model.get_parameter("blocks.1.mlp_norm.weight").add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        force.sum().backward()


def test_positions_that_have_changed_since_are_noticed() -> None:
    model, (positions, features, _) = potential(PLAIN), inputs(PLAIN)
    force = second_order.Potential(model, features).gradient(positions)
    positions += 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        force.sum().backward()


def test_no_third_derivatives() -> None:
    model, (positions, features, _) = potential(PLAIN), inputs(PLAIN)
    q = positions.requires_grad_()
    force = second_order.Potential(model, features).gradient(q)
    (by_q,) = torch.autograd.grad(force.square().sum(), q, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        by_q.sum().backward()


def test_parameters_that_layers_share() -> None:
    model = potential(PLAIN)
    model.blocks[1] = model.blocks[0]
    given = inputs(PLAIN)
    twin = LieTransformer(PLAIN)
    twin.blocks[1] = twin.blocks[0]
    twin.load_state_dict(model.state_dict())
    q = given[0].clone().requires_grad_()
    force = gradient(lambda q: twin(PointCloud(q, given[1])), q)
    expected = torch.autograd.grad(
        (force * given[2]).sum(), [q, *twin.parameters()], materialize_grads=True
    )
    assert_agree(model, by_passes(model, *given), [force, *expected])


def test_parameters_given_to_a_functional_call() -> None:
    model = potential(PLAIN)
    positions, features, direction = inputs(PLAIN)
    expected = by_passes(model, positions, features, direction)
    values = {name: p.detach().clone().requires_grad_() for name, p in model.named_parameters()}
    dynamics = PotentialDynamics(LieTransformer(PLAIN))
    state = torch.stack([positions, torch.zeros_like(positions)], dim=1)
    velocity = torch.func.functional_call(
        dynamics,
        {f"model.{name}": value for name, value in values.items()},
        (state, *features.unbind(dim=-1)),
    )
    total = -(velocity[:, 1] * direction).sum()
    found = torch.autograd.grad(total, list(values.values()))
    for a, b in zip(found, expected[2:], strict=True):
        assert (a - b).abs().max() <= ROUNDING * b.abs().max()


def rolled_out(dynamics: PotentialDynamics, state: Tensor, features: Tensor) -> Tensor:
    field = dynamics.field(*features.unbind(dim=-1))
    return field(state + 0.1 * field(state))


def test_a_field_is_prepared_once_for_all_states(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    original = second_order.Potential

    def counted(model: Model, features: Tensor) -> second_order.Potential:
        made.append(model)
        return original(model, features)

    monkeypatch.setattr(replacement, "Potential", counted)
    dynamics, (positions, features, momenta) = PotentialDynamics(potential(PLAIN)), inputs(PLAIN)
    state = torch.stack([positions, momenta], dim=1)
    found = rolled_out(dynamics, state, features)
    assert len(made) == 1
    once = dynamics(state, *features.unbind(dim=-1))
    twice = dynamics(state + 0.1 * once, *features.unbind(dim=-1))
    torch.testing.assert_close(found, twice, rtol=0, atol=0)
    by_field = torch.autograd.grad(found.square().sum(), list(dynamics.parameters()))
    by_calls = torch.autograd.grad(twice.square().sum(), list(dynamics.parameters()))
    torch.testing.assert_close(by_field, by_calls, rtol=1e-4, atol=1e-4)


def test_a_field_refuses_states_of_other_examples() -> None:
    """As PyTorch would: C code would write past the end of what there is."""
    dynamics, (positions, features, momenta) = PotentialDynamics(potential(PLAIN)), inputs(PLAIN)
    state = torch.stack([positions, momenta], dim=1)
    field = dynamics.field(*features.unbind(dim=-1))
    for prepares in (False, True):
        if prepares:
            field(state)
        for other in (state[:2], state[:, :, :3], torch.cat([state, state])):
            with pytest.raises(Exception, match=r"PointCloud|positions"):
                field(other)


def test_a_field_follows_its_parameters() -> None:
    """Whether they change in place, as an optimiser changes them, or are replaced."""
    model, (positions, features, momenta) = potential(PLAIN), inputs(PLAIN)
    dynamics = PotentialDynamics(model)
    masses, stiffness = features.unbind(dim=-1)
    state = torch.stack([positions, momenta], dim=1)
    field = dynamics.field(masses, stiffness)
    with torch.no_grad():
        before = field(state)
        model.get_parameter("blocks.1.mlp_norm.weight").mul_(2)
        changed = field(state)
        torch.testing.assert_close(changed, dynamics(state, masses, stiffness))
        output = model.get_submodule("head.output")
        output.weight = torch.nn.Parameter(3 * model.get_parameter("head.output.weight"))
        replaced = field(state)
    assert not torch.equal(before, changed)
    torch.testing.assert_close(replaced[:, 1], 3 * changed[:, 1])
    assert field(state).requires_grad, "though it was prepared where nothing is differentiated"
