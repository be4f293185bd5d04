"""Layers that look at some queries at a time are the layers that look at all of them."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from lietransformer.groups import get_group
from lietransformer.lift import lift
from lietransformer.nn import AttentionConfig, LieSelfAttention
from lietransformer.nn import chunking as long_sets
from lietransformer.nn.lieconv import LieConv
from lietransformer.pairs import NeighbourhoodConfig, PairGeometry, pair_geometry
from tests.cases import case_id, default_lift, pairwise_attention, random_cloud, seeded

# Of the 18 elements; half of them or more are masked out of all pairs, fewer are gathered.
NEIGHBOURHOODS = {
    "all": NeighbourhoodConfig(),
    "most": NeighbourhoodConfig(ball=12),
    "few": NeighbourhoodConfig(ball=5),
}
WIDTH = 8

Layer = Callable[[Tensor], Tensor]


@pytest.fixture(params=NEIGHBOURHOODS)
def pairs(request: pytest.FixtureRequest) -> tuple[Tensor, Tensor, PairGeometry]:
    """Features and mask of elements, of which some are absent, and their pairs."""
    group = get_group("SE(2)")
    cloud = random_cloud("SE(2)", batch=2, points=9)
    lifted = lift(cloud, group, default_lift("SE(2)"), generator=seeded())
    features = torch.randn(*lifted.mask.shape, WIDTH, generator=seeded(1), dtype=torch.float64)
    return features, lifted.mask, pair_geometry(lifted, group, NEIGHBOURHOODS[request.param])


def split(monkeypatch: pytest.MonkeyPatch, numbers: int) -> None:
    """From now on, layers split their work into parts of about so many numbers."""
    monkeypatch.setattr(long_sets, "_MOST_NUMBERS", 0)
    monkeypatch.setattr(long_sets, "_NUMBERS_AT_ONCE", numbers)


def attention(config: AttentionConfig, geometry: PairGeometry) -> LieSelfAttention:
    torch.manual_seed(0)
    return LieSelfAttention(WIDTH, 2, geometry.coordinates.shape[-1], config).double()


def convolution(geometry: PairGeometry, *, batch_norm: bool = False) -> LieConv:
    torch.manual_seed(0)
    dimension = geometry.coordinates.shape[-1]
    return LieConv(WIDTH, WIDTH, dimension, batch_norm=batch_norm).double()


def value_and_gradients(layer: Layer, module: nn.Module, features: Tensor) -> list[Tensor]:
    given = features.clone().requires_grad_()
    value = layer(given)
    weights = torch.randn(value.shape, generator=seeded(2), dtype=value.dtype)
    gradients = torch.autograd.grad(value, [given, *module.parameters()], weights)
    return [value, *gradients]


@pytest.mark.parametrize(
    ("pairs", "numbers", "config"),
    pairwise_attention(NEIGHBOURHOODS, [1, 2000]),
    ids=case_id,
    indirect=["pairs"],
)
def test_attention_in_parts(
    pairs: tuple[Tensor, Tensor, PairGeometry],
    config: AttentionConfig,
    numbers: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    features, _, geometry = pairs
    module = attention(config, geometry)
    whole = value_and_gradients(lambda x: module(x, geometry), module, features)
    split(monkeypatch, numbers)
    parts = value_and_gradients(lambda x: module(x, geometry), module, features)
    torch.testing.assert_close(parts, whole, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("numbers", [1, 20_000])
def test_convolution_in_parts(
    pairs: tuple[Tensor, Tensor, PairGeometry], numbers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    features, mask, geometry = pairs
    module = convolution(geometry)
    whole = value_and_gradients(lambda x: module(x, mask, geometry), module, features)
    split(monkeypatch, numbers)
    parts = value_and_gradients(lambda x: module(x, mask, geometry), module, features)
    torch.testing.assert_close(parts, whole, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("training", [True, False])
def test_convolution_with_batch_norm(
    pairs: tuple[Tensor, Tensor, PairGeometry], training: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While it trains its moments are those of all pairs, not those of a part."""
    features, mask, geometry = pairs
    whole = convolution(geometry, batch_norm=True).train(training)(features, mask, geometry)
    split(monkeypatch, 1)
    parts = convolution(geometry, batch_norm=True).train(training)(features, mask, geometry)
    torch.testing.assert_close(parts, whole, rtol=1e-12, atol=1e-12)


def test_parts_are_all_pairs(pairs: tuple[Tensor, Tensor, PairGeometry]) -> None:
    *_, geometry = pairs
    parts = list(geometry.split(7))
    assert [part.coordinates.shape[1] for part in parts] == [7, 7, 4]
    assert torch.equal(torch.cat([part.coordinates for part in parts], 1), geometry.coordinates)
    masks = torch.cat([part.mask.expand(part.coordinates.shape[:-1]) for part in parts], 1)
    assert torch.equal(masks, geometry.mask.expand(geometry.coordinates.shape[:-1]))
    if geometry.indices is not None:
        assert torch.equal(
            torch.cat([part.indices for part in parts if part.indices is not None], 1),
            geometry.indices,
        )


def test_parts_are_computed_again_instead_of_kept(
    pairs: tuple[Tensor, Tensor, PairGeometry], monkeypatch: pytest.MonkeyPatch
) -> None:
    features, _, geometry = pairs
    module = attention(AttentionConfig("concat", "mlp", "mlp"), geometry)
    split(monkeypatch, 1)
    calls = []
    attend = module.attend

    def counted(*args: Any) -> Tensor:
        calls.append(args)
        return attend(*args)

    monkeypatch.setattr(module, "attend", counted)
    value = module(features, geometry).sum()
    assert len(calls) == features.shape[1]
    value.backward()
    assert len(calls) == 2 * features.shape[1]


def test_gradients_of_gradients_in_parts(
    pairs: tuple[Tensor, Tensor, PairGeometry], monkeypatch: pytest.MonkeyPatch
) -> None:
    features, _, geometry = pairs
    module = attention(AttentionConfig("linear_concat_linear", "plain", "mlp"), geometry)

    def second() -> tuple[Tensor, ...]:
        given = features.clone().requires_grad_()
        value = module(given, geometry).square().sum()
        (slope,) = torch.autograd.grad(value, given, create_graph=True)
        wanted = [given, *module.query.parameters(), *module.combination.parameters()]
        return torch.autograd.grad(slope.square().sum(), wanted)

    whole = second()
    split(monkeypatch, 1)
    torch.testing.assert_close(second(), whole, rtol=1e-12, atol=1e-12)


def test_what_cannot_be_computed_again_is_left_whole(
    pairs: tuple[Tensor, Tensor, PairGeometry], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`torch.func` would refuse parts."""
    features, mask, geometry = pairs
    module, other = attention(AttentionConfig(), geometry), convolution(geometry)

    def both(x: Tensor) -> Tensor:
        return module(x, geometry).square().sum() + other(x, mask, geometry).square().sum()

    whole = torch.func.grad(both)(features)
    split(monkeypatch, 1)
    torch.testing.assert_close(torch.func.grad(both)(features), whole)


def test_without_gradients_parts_are_the_same(
    pairs: tuple[Tensor, Tensor, PairGeometry], monkeypatch: pytest.MonkeyPatch
) -> None:
    features, mask, geometry = pairs
    module, other = attention(AttentionConfig(), geometry), convolution(geometry)
    with torch.no_grad():
        whole = module(features, geometry), other(features, mask, geometry)
        split(monkeypatch, 1)
        parts = module(features, geometry), other(features, mask, geometry)
    torch.testing.assert_close(parts, whole, rtol=1e-12, atol=1e-12)


def test_how_many_queries_at_once(pairs: tuple[Tensor, Tensor, PairGeometry]) -> None:
    *_, geometry = pairs
    batch, count, keys = geometry.coordinates.shape[:3]
    most = long_sets._MOST_NUMBERS // (batch * count * keys)
    assert long_sets.queries_at_once(geometry, most) is None
    rows = long_sets.queries_at_once(geometry, most + 1)
    assert rows == long_sets._NUMBERS_AT_ONCE // (batch * keys * (most + 1))
    assert long_sets.queries_at_once(geometry, 1000 * most) == 1
