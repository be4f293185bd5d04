"""Where the passes are used, and where PyTorch computes in its general way."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from lietransformer.dynamics.hamiltonian import PotentialDynamics
from lietransformer.kernels import build as library
from lietransformer.kernels import head_mlp
from lietransformer.kernels import potential as second_order
from lietransformer.kernels.potential import conditions, replacement
from lietransformer.lift import LiftConfig
from lietransformer.models.lie_transformer import LieTransformer
from lietransformer.nn.attention import AttentionConfig
from lietransformer.nn.block import LieTransformerBlock
from lietransformer.nn.mlp import PerHeadLinear
from lietransformer.nn.scores import MLPLocation
from lietransformer.pairs import NeighbourhoodConfig
from tests.kernels.potential.potentials import (
    CONVOLUTION,
    PLAIN,
    ROUNDING,
    Config,
    by_pytorch,
    inputs,
    potential,
    untrained,
)
from tests.requirements import needs_compiler

pytestmark = needs_compiler

OTHER_CONFIGS: dict[str, Config] = {
    "softmax": replace(PLAIN, attention=AttentionConfig(normalisation="softmax")),
    "multiplicative": replace(PLAIN, attention=AttentionConfig(combination="multiplicative")),
    "wide heads": replace(PLAIN, width=3 * 257),
    "a wide kernel": replace(PLAIN, attention=AttentionConfig(kernel_width=64)),
    "no norm": replace(PLAIN, norm="none"),
    "another head": replace(PLAIN, head="linear_then_pool"),
    "two outputs": replace(PLAIN, output_width=2),
    "neighbours": replace(PLAIN, neighbourhood=NeighbourhoodConfig(ball=3)),
    "a random lift": replace(PLAIN, group="SE(2)", lift=LiftConfig("random", samples=2)),
    "coordinates that bend": replace(
        PLAIN, group="SO(2)", lift=LiftConfig("exact"), pair_features="log"
    ),
    "LieConv with batch norm": replace(CONVOLUTION, norm="batch"),
    "LieConv whose radius adapts": replace(CONVOLUTION, fill=0.5),
    "LieConv with neighbours": replace(CONVOLUTION, neighbourhood=NeighbourhoodConfig(ball=3)),
}


@pytest.mark.parametrize("name", OTHER_CONFIGS)
def test_other_models(name: str) -> None:
    config = OTHER_CONFIGS[name]
    assert not second_order.written_for(config)
    assert not second_order.applies(untrained(config), *inputs(config)[:2])


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


def without_bias(model: LieTransformer) -> None:
    model.embedding = nn.Linear(2, PLAIN.width, bias=False)


def without_bias_of_queries(model: LieTransformer) -> None:
    block = model.blocks[1]
    assert isinstance(block, LieTransformerBlock)
    block.attention.query = nn.Linear(PLAIN.width, PLAIN.width, bias=False)


def without_affine(model: LieTransformer) -> None:
    block = model.blocks[1]
    assert isinstance(block, LieTransformerBlock)
    block.mlp_norm = nn.LayerNorm(PLAIN.width, elementwise_affine=False)


def without_bias_of_norm(model: LieTransformer) -> None:
    block = model.blocks[0]
    assert isinstance(block, LieTransformerBlock)
    block.attention_norm = nn.LayerNorm(PLAIN.width, bias=False)


def without_bias_of_locations(model: LieTransformer) -> None:
    block = model.blocks[0]
    assert isinstance(block, LieTransformerBlock)
    assert isinstance(block.attention.location, MLPLocation)
    layers = block.attention.location.mlp.layers
    before = layers[1]
    assert isinstance(before, PerHeadLinear)
    layers[1] = PerHeadLinear(*before.weight.shape, bias=False)


@pytest.mark.parametrize(
    "change",
    [
        *(without_bias, without_bias_of_queries, without_affine),
        *(without_bias_of_norm, without_bias_of_locations),
    ],
)
def test_models_that_lack_parameters(change: Callable[[LieTransformer], None]) -> None:
    """PyTorch computes their forces."""
    torch.manual_seed(0)
    model = LieTransformer(PLAIN)
    change(model)
    positions, features, _ = inputs(PLAIN)
    assert not second_order.applies(model, positions, features)
    state = torch.stack([positions, torch.zeros_like(positions)], dim=1)
    velocity = PotentialDynamics(model)(state, *features.unbind(dim=-1))
    assert velocity[:, 1].abs().max() > 0
    velocity.square().sum().backward()


def test_convolutions_that_lack_parameters() -> None:
    model = untrained(CONVOLUTION)
    model.embedding = nn.Linear(2, CONVOLUTION.width, bias=False)
    assert not second_order.applies(model, *inputs(CONVOLUTION)[:2])


def test_heads_as_wide_as_can_be() -> None:
    assert second_order.written_for(replace(PLAIN, width=3 * 256))


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


@pytest.mark.parametrize("missing", ["transformer.c", "head_mlp.c"])
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
    original = second_order.Potential

    def counted(*arguments: Any) -> second_order.Potential:
        calls.append(arguments)
        return original(*arguments)

    monkeypatch.setattr(replacement, "Potential", counted)
    if not used:
        monkeypatch.setattr(replacement, "applies", lambda *_: False)
    model, (positions, features, momenta) = potential(PLAIN), inputs(PLAIN)
    state = torch.stack([positions, momenta], dim=1)
    velocity = PotentialDynamics(model)(state, *features.unbind(dim=-1))
    assert bool(calls) == used
    expected, *_ = by_pytorch(model, positions, features, momenta)
    assert (velocity[:, 1] + expected).abs().max() <= ROUNDING * expected.abs().max()
