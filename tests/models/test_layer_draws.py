"""Sampled neighbours: no two layers of a model see the same draw."""

from itertools import combinations
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from lietransformer.clouds import PointCloud
from lietransformer.experiments.registry import get_preset
from lietransformer.training.architecture import changed
from tests.cases import seeded

MODELS = ("LieTransformer-T3", "LieTransformer-SE3", "LieConv-SE3")


def seen_by_layers(
    model: nn.Module, cloud: PointCloud, monkeypatch: pytest.MonkeyPatch
) -> list[Tensor]:
    """Which elements the queries of each layer see."""
    seen: dict[int, Tensor] = {}
    blocks = list(model.blocks)  # type: ignore[arg-type]
    kind = type(blocks[0])
    forward = kind.forward

    def watch(self: nn.Module, *arguments: Any) -> Any:
        geometry = arguments[-1]
        chosen = geometry.mask if geometry.indices is None else geometry.indices
        seen[blocks.index(self)] = chosen.clone()
        return forward(self, *arguments)

    # The method, not a hook: with hooks, features are not packed.
    monkeypatch.setattr(kind, "forward", watch)
    model(cloud, generator=seeded())
    return [seen[layer] for layer in range(len(blocks))]


@pytest.mark.parametrize("is_padded", [False, True], ids=["full", "padded"])
@pytest.mark.parametrize("name", MODELS)
def test_no_two_layers_share_a_draw(
    name: str, is_padded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    architecture = {"width": 16, "layers": 4}
    model = changed(get_preset("qm9", name), architecture).build(seed=0).eval()
    points = 60
    mask = torch.ones(2, points, dtype=torch.bool)
    if is_padded:
        mask[1, points // 2 :] = False
    cloud = PointCloud(
        torch.randn(2, points, 3, generator=seeded()),
        torch.randn(2, points, 15, generator=seeded()),
        mask,
    )
    for one, other in combinations(seen_by_layers(model, cloud, monkeypatch), 2):
        assert one.shape != other.shape or not torch.equal(one, other)
