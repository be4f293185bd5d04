"""The force of a potential pass by pass is that of PyTorch, and so is its gradient."""

import os
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from lietransformer import second_order
from lietransformer.dynamics.hamiltonian import PotentialDynamics, gradient
from lietransformer.lift import LiftConfig
from lietransformer.models.lie_transformer import LieTransformer, LieTransformerConfig
from lietransformer.models.presets import get_preset
from lietransformer.native import head_mlp, library
from lietransformer.neighbourhood import NeighbourhoodConfig
from lietransformer.nn.attention import AttentionConfig
from lietransformer.second_order import conditions
from lietransformer.types import PointCloud

pytestmark = pytest.mark.skipif(
    not library.find_compiler() and "LIETRANSFORMER_REQUIRE_ALL" not in os.environ,
    reason="there is no C compiler",
)

ROUNDING = 5e-5
PLAIN = LieTransformerConfig("T(2)", input_width=2, output_width=1, width=24, layers=3, heads=3)
SUBGROUP = LiftConfig("subgroup", samples=3)

CONFIGS = {
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
}


def potential(config: LieTransformerConfig) -> LieTransformer:
    torch.manual_seed(0)
    model = LieTransformer(config)
    for parameter in model.parameters():  # large enough for positions to matter in every layer
        parameter.data = 1.5 * parameter.data + 0.1 * torch.randn_like(parameter)
    return model


def inputs(config: LieTransformerConfig, batch: int = 4, points: int = 5) -> tuple[Tensor, ...]:
    space = 3 if config.group == "T(3)" else 2
    torch.manual_seed(1)
    positions, direction = torch.randn(2, batch, points, space)
    return positions, torch.rand(batch, points, config.input_width) + 0.5, direction


def by_pytorch(
    model: LieTransformer, positions: Tensor, features: Tensor, direction: Tensor
) -> list[Tensor]:
    """The force and the gradients of its product with the direction, in double precision."""
    twin = LieTransformer(model.config)
    twin.load_state_dict(model.state_dict())
    twin.double()
    q = positions.double().requires_grad_()
    force = gradient(lambda q: twin(PointCloud(q, features.double())), q)
    wanted = [q, *twin.parameters()]
    total = (force * direction.double()).sum()
    return [force, *torch.autograd.grad(total, wanted, materialize_grads=True)]


def by_passes(
    model: LieTransformer, positions: Tensor, features: Tensor, direction: Tensor
) -> list[Tensor]:
    q = positions.clone().requires_grad_()
    assert second_order.applies(model, q, features)
    force = second_order.potential_gradient(model, q, features)
    wanted = [q, *model.parameters()]
    return [force, *torch.autograd.grad((force * direction).sum(), wanted)]


def assert_agree(model: LieTransformer, found: list[Tensor], expected: list[Tensor]) -> None:
    names = ["force", "positions", *(name for name, _ in model.named_parameters())]
    for name, a, b in zip(names, found, expected, strict=True):
        assert (a - b).abs().max() <= ROUNDING * b.abs().max(), name
    unused = [name for name, b in zip(names, expected, strict=True) if not b.any()]
    # A constant added to V changes no force; and all else has been tested.
    assert unused == ["head.output.bias"]


@pytest.mark.parametrize("name", CONFIGS)
def test_agrees_with_pytorch(name: str) -> None:
    model = potential(CONFIGS[name])
    given = inputs(CONFIGS[name])
    assert_agree(model, by_passes(model, *given), by_pytorch(model, *given))


@pytest.mark.parametrize(("batch", "points"), [(1, 2), (1, 6), (3, 16), (2, 17), (50, 6), (131, 5)])
def test_sets_of_any_size(batch: int, points: int) -> None:
    model, given = potential(PLAIN), inputs(PLAIN, batch, points)
    assert_agree(model, by_passes(model, *given), by_pytorch(model, *given))


@pytest.mark.parametrize(
    "name", ["LieTransformer-T2", "LieTransformer-T2 small", "LieTransformer-SE2 small"]
)
def test_the_papers_models(name: str) -> None:
    model = get_preset("springs", name).build(seed=0)
    assert isinstance(model, LieTransformer)
    given = inputs(model.config, 10, 6)
    assert_agree(model, by_passes(model, *given), by_pytorch(model, *given))


def test_positions_far_away() -> None:
    model = potential(PLAIN)
    positions, features, direction = inputs(PLAIN)
    near = by_passes(model, positions, features, direction)
    far = by_passes(model, positions + 100, features, direction)
    for a, b in zip(far, near, strict=True):
        assert (a - b).abs().max() <= 1e-3 * b.abs().max()


def test_numbers_depend_on_the_threads_by_rounding_at_most() -> None:
    model, given = potential(PLAIN), inputs(PLAIN, 100, 6)
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


def test_a_second_backward_pass_gives_the_same() -> None:
    model, (positions, features, direction) = potential(PLAIN), inputs(PLAIN)
    q = positions.requires_grad_()
    force = second_order.potential_gradient(model, q, features)
    total = (force * direction).sum()
    first = torch.autograd.grad(total, [q, *model.parameters()], retain_graph=True)
    second = torch.autograd.grad(total, [q, *model.parameters()])
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


def test_two_states_at_once_do_not_mix() -> None:
    model, (positions, features, direction) = potential(PLAIN), inputs(PLAIN)
    apart = [by_passes(model, q, features, direction) for q in (positions, positions + direction)]
    forces = [
        second_order.potential_gradient(model, q, features)
        for q in (positions, positions + direction)
    ]
    total = sum((force * direction).sum() for force in forces)
    assert isinstance(total, Tensor)
    together = torch.autograd.grad(total, list(model.parameters()))
    for both, one, other in zip(together, apart[0][2:], apart[1][2:], strict=True):
        assert (both - one - other).abs().max() <= ROUNDING * (one + other).abs().max()


def test_parameters_that_have_changed_since_are_noticed() -> None:
    model, (positions, features, _) = potential(PLAIN), inputs(PLAIN)
    force = second_order.potential_gradient(model, positions, features)
    with torch.no_grad():
        model.embedding.weight += 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        force.sum().backward()


def test_positions_that_have_changed_since_are_noticed() -> None:
    model, (positions, features, _) = potential(PLAIN), inputs(PLAIN)
    force = second_order.potential_gradient(model, positions, features)
    positions += 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        force.sum().backward()


def test_no_third_derivatives() -> None:
    model, (positions, features, _) = potential(PLAIN), inputs(PLAIN)
    q = positions.requires_grad_()
    force = second_order.potential_gradient(model, q, features)
    (by_q,) = torch.autograd.grad(force.square().sum(), q, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        by_q.sum().backward()


# What the passes are not written for, or not in these circumstances.

OTHER_CONFIGS = {
    "softmax": replace(PLAIN, attention=AttentionConfig(normalisation="softmax")),
    "multiplicative": replace(PLAIN, attention=AttentionConfig(combination="multiplicative")),
    "a wide kernel": replace(PLAIN, attention=AttentionConfig(kernel_width=64)),
    "no norm": replace(PLAIN, norm="none"),
    "another head": replace(PLAIN, head="linear_then_pool"),
    "two outputs": replace(PLAIN, output_width=2),
    "neighbours": replace(PLAIN, neighbourhood=NeighbourhoodConfig(ball=3)),
    "a random lift": replace(PLAIN, group="SE(2)", lift=LiftConfig("random", samples=2)),
    "coordinates that bend": replace(
        PLAIN, group="SO(2)", lift=LiftConfig("exact"), pair_features="log"
    ),
}


@pytest.mark.parametrize("name", OTHER_CONFIGS)
def test_other_models(name: str) -> None:
    config = OTHER_CONFIGS[name]
    assert not second_order.written_for(config)
    assert not second_order.applies(LieTransformer(config), *inputs(config)[:2])


# PyTorch's own rules of forward differentiation are written in a way that it warns of itself.
@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:DeprecationWarning")
def test_other_circumstances() -> None:
    model = potential(PLAIN)
    positions, features, _ = inputs(PLAIN)
    double = LieTransformer(PLAIN).double()
    assert second_order.applies(model, positions, features)
    assert not second_order.applies(nn.Linear(2, 2), positions, features)
    assert not second_order.applies(model, positions.double(), features)
    assert not second_order.applies(double, positions, features)
    assert not second_order.applies(double, positions.double(), features.double())
    assert not second_order.applies(model, positions.to("meta"), features)
    assert not second_order.applies(model, positions, features.clone().requires_grad_())
    assert not second_order.applies(model, positions[:0], features[:0])
    assert not second_order.applies(model, torch.zeros(2, 33, 2), torch.ones(2, 33, 2))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert not second_order.applies(model, positions, features)
    asked = []

    def ask(q: Tensor) -> Tensor:
        asked.append(second_order.applies(model, q, features))
        return q

    torch.func.vmap(ask)(positions)
    torch.func.jvp(ask, (positions,), (positions,))
    assert asked == [False, False]


class Doubled(LieTransformer):
    """Computes something else."""

    def pool(self, features: Tensor, mask: Tensor) -> Tensor:
        return 2 * super().pool(features, mask)


def with_hook(model: LieTransformer) -> LieTransformer:
    model.blocks[1].register_forward_hook(lambda *_: None)
    return model


def with_weight_norm(model: LieTransformer) -> LieTransformer:
    torch.nn.utils.parametrizations.weight_norm(model.embedding)
    return model


@pytest.mark.parametrize(
    "model",
    [Doubled(PLAIN), with_hook(LieTransformer(PLAIN)), with_weight_norm(LieTransformer(PLAIN))],
    ids=["a derived class", "a hook", "a parametrisation"],
)
def test_models_that_compute_something_else(model: LieTransformer) -> None:
    assert not second_order.applies(model, *inputs(PLAIN)[:2])


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


def test_parameters_of_several_models_at_once() -> None:
    """As when seeds are trained together: PyTorch's general way."""
    models = [potential(PLAIN), LieTransformer(PLAIN)]
    positions, features, _ = inputs(PLAIN)
    state = torch.stack([positions, torch.zeros_like(positions)], dim=1)
    parameters, _ = torch.func.stack_module_state([PotentialDynamics(m) for m in models])

    def velocity(values: dict[str, Tensor]) -> Any:
        given = (state, *features.unbind(dim=-1))
        return torch.func.functional_call(PotentialDynamics(models[0]), values, given)

    together = torch.func.vmap(velocity)(parameters)
    for found, model in zip(together, models, strict=True):
        expected = PotentialDynamics(model)(state, *features.unbind(dim=-1))
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def test_gradients_by_masses_and_stiffness() -> None:
    model = potential(PLAIN)
    positions, features, direction = inputs(PLAIN)
    masses, stiffness = (x.clone().requires_grad_() for x in features.unbind(dim=-1))
    state = torch.stack([positions, torch.zeros_like(positions)], dim=1)
    velocity = PotentialDynamics(model)(state, masses, stiffness)
    total = (velocity[:, 1] * direction).sum()
    assert all(g.abs().max() > 1e-4 for g in torch.autograd.grad(total, [masses, stiffness]))


@pytest.mark.parametrize("missing", ["swish.c", "layer_norm.c", "pair_attention.c", "head_mlp.c"])
def test_code_that_cannot_be_compiled(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    original = library.load

    def load(source: str, *definitions: Any) -> Any:
        return None if source == missing else original(source, *definitions)

    def forget() -> None:
        conditions._is_compiled.cache_clear()
        head_mlp.compiled.cache_clear()

    forget()
    monkeypatch.setattr(library, "load", load)
    try:
        assert not second_order.applies(potential(PLAIN), *inputs(PLAIN)[:2])
    finally:
        forget()


@pytest.mark.parametrize("used", [True, False])
def test_dynamics_use_it(used: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []
    original = second_order.potential_gradient

    def counted(*arguments: Any) -> Tensor:
        calls.append(arguments)
        return original(*arguments)

    monkeypatch.setattr(second_order, "potential_gradient", counted)
    if not used:
        monkeypatch.setattr(second_order, "applies", lambda *_: False)
    model, (positions, features, momenta) = potential(PLAIN), inputs(PLAIN)
    state = torch.stack([positions, momenta], dim=1)
    velocity = PotentialDynamics(model)(state, *features.unbind(dim=-1))
    assert bool(calls) == used
    expected, *_ = by_pytorch(model, positions, features, momenta)
    assert (velocity[:, 1] + expected).abs().max() <= ROUNDING * expected.abs().max()
