"""Rows of real elements in place of padded sets: the same numbers, and no work for padding."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from lietransformer.clouds import PointCloud
from lietransformer.models import LieTransformer, LieTransformerConfig
from lietransformer.nn.attention import AttentionConfig
from lietransformer.packing import Packing
from lietransformer.pairs import NeighbourhoodConfig
from tests.cases import random_cloud, seeded
from tests.models.builders import lie_resnet

MASKS = {
    "first": torch.arange(9) < torch.tensor([[4], [9], [0]]),
    "scattered": torch.rand(3, 9, generator=seeded(4)) < 0.6,
}


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
def test_there_and_back(mask: Tensor) -> None:
    packing = Packing.of(mask)
    assert packing is not None
    padded = torch.randn(3, 9, 2, 5, generator=seeded())
    rows = packing.pack(padded)
    assert torch.equal(rows[0], padded[mask])
    assert torch.equal(packing.unpack(rows), padded * mask[..., None, None])


def test_not_packed_without_padding_and_where_it_cannot_be_traced() -> None:
    assert Packing.of(torch.ones(2, 3, dtype=torch.bool)) is None
    assert Packing.of(torch.zeros(2, 3, dtype=torch.bool, device="meta")) is None
    seen: list[Packing | None] = []

    def function(x: Tensor) -> Tensor:
        seen.append(Packing.of(MASKS["first"]))
        return x.sum()

    torch.func.vmap(function)(torch.ones(2, 3))
    assert seen == [None]


def transformer(attention: AttentionConfig, neighbourhood: NeighbourhoodConfig) -> LieTransformer:
    torch.manual_seed(0)
    config = LieTransformerConfig(
        "T(2)", 2, 3, 16, 2, 2, attention=attention, neighbourhood=neighbourhood
    )
    return LieTransformer(config).double()


MODELS: dict[str, Any] = {
    "dot product": lambda: transformer(AttentionConfig(), NeighbourhoodConfig()),
    "softmax": lambda: transformer(AttentionConfig(normalisation="softmax"), NeighbourhoodConfig()),
    "QM9, sampled": lambda: transformer(
        AttentionConfig("linear_concat_linear", "plain", "mlp"), NeighbourhoodConfig(samples=6)
    ),
    "QM9, gathered": lambda: transformer(
        AttentionConfig("linear_concat_linear", "plain", "mlp"), NeighbourhoodConfig(ball=4)
    ),
    "LieConv": lambda: lie_resnet("T(2)"),
    "LieConv with batch norm": lambda: lie_resnet("T(2)", norm="batch").train(),
    "LieConv, sampled balls": lambda: lie_resnet(
        "T(2)", norm="batch", fill=0.5, neighbourhood=NeighbourhoodConfig(samples=3)
    ).train(),
}


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
@pytest.mark.parametrize("build", MODELS.values(), ids=MODELS)
def test_a_model_computes_the_same(
    build: Any, mask: Tensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Outputs, gradients by positions and parameters, and what batch norm has learnt."""

    def results() -> list[Tensor]:
        model = build()
        cloud = replace(random_cloud("T(2)", points=9), mask=mask)
        cloud = replace(cloud, positions=cloud.positions.clone().requires_grad_())
        out = model(cloud, generator=seeded())
        wanted = [cloud.positions, *model.parameters()]
        gradients = torch.autograd.grad(out.square().sum(), wanted, materialize_grads=True)
        return [out, *gradients, *model.buffers()]

    unpacked: list[tuple[int, ...]] = []
    unpack = Packing.unpack

    def watched(self: Packing, rows: Tensor) -> Tensor:
        unpacked.append(tuple(rows.shape))
        return unpack(self, rows)

    monkeypatch.setattr(Packing, "unpack", watched)
    packed = results()
    assert unpacked[-1][:2] == (1, int(mask.sum()))  # the features after the last block
    monkeypatch.setattr(Packing, "of", staticmethod(lambda _: None))
    padded = results()
    for one, other in zip(packed, padded, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("name", ["dot product", "LieConv"])
def test_hooks_see_padded_features(name: str) -> None:
    model = MODELS[name]()
    cloud = replace(random_cloud("T(2)", points=9), mask=MASKS["first"])
    expected = model(cloud)
    shapes: list[tuple[int, ...]] = []
    model.blocks[1].register_forward_pre_hook(lambda _, given: shapes.append(given[0].shape[:2]))
    torch.testing.assert_close(model(cloud), expected)
    assert shapes == [(3, 9)]


class Foreign(nn.Module):
    """Somebody's own block, which wants its examples apart."""

    def forward(self, features: Tensor, _: Any) -> Tensor:
        assert features.shape[0] == 3
        return features


def test_blocks_of_other_classes_get_padded_features() -> None:
    model = transformer(AttentionConfig(), NeighbourhoodConfig())
    model.blocks[1] = Foreign()
    cloud = random_cloud("T(2)", points=9)
    model(PointCloud(cloud.positions, cloud.features, MASKS["first"]))
