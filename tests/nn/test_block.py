"""The residual block and the per-head layers, against their formulas."""

from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from lietransformer.groups import get_group
from lietransformer.lift import LiftConfig, lift
from lietransformer.nn import AttentionConfig, LieTransformerBlock
from lietransformer.nn.mlp import PerHeadLinear, PerHeadMLP
from lietransformer.nn.scores import MLPCombination, MLPLocation
from lietransformer.pairs import NeighbourhoodConfig, pair_geometry
from tests.cases import random_cloud, seeded

pytestmark = pytest.mark.usefixtures("both_ways")


@pytest.mark.parametrize("norm", ["layer", "none"])
def test_block(norm: str) -> None:
    """x + attention(LN(x)), then x + swish(W₂ swish(W₁ LN(x)))."""
    torch.manual_seed(0)
    group = get_group("T(2)")
    lifted = lift(random_cloud("T(2)"), group, LiftConfig())
    geometry = pair_geometry(lifted, group, NeighbourhoodConfig())
    block = LieTransformerBlock(8, 2, 2, AttentionConfig(), norm=norm).double()  # type: ignore[arg-type]
    assert any(isinstance(module, nn.LayerNorm) for module in block.modules()) == (norm == "layer")
    x = torch.randn(3, 5, 8, generator=seeded(), dtype=torch.float64)

    def normalise(x: torch.Tensor) -> torch.Tensor:
        return F.layer_norm(x, (8,)) if norm == "layer" else x

    expected = x + block.attention(normalise(x), geometry)
    first, second = block.mlp
    expected = expected + F.silu(second(F.silu(first(normalise(expected)))))
    torch.testing.assert_close(block(x, geometry), expected)


@pytest.mark.parametrize("shared", [True, False])
def test_per_head_layers_are_a_linear_layer_for_every_head(shared: bool) -> None:
    torch.manual_seed(0)
    mlp = PerHeadMLP(3, [4, 5, 2]).double()
    x = torch.randn(1 if shared else 3, 4, 7, generator=seeded(), dtype=torch.float64)
    output = mlp(x)
    for head in range(3):
        expected = x[0 if shared else head].T
        for layer in mlp.layers:
            assert isinstance(layer, PerHeadLinear)
            assert layer.bias is not None
            expected = F.silu(expected @ layer.weight[head] + layer.bias[head])
        torch.testing.assert_close(output[head].T, expected)


def test_per_head_layers_start_like_linear_layers() -> None:
    """Uniform within ±1/√inputs."""
    torch.manual_seed(0)
    _require_uniform(PerHeadLinear(10, 25, 400), 1 / 5)


@pytest.mark.parametrize(
    "build",
    [
        lambda: PerHeadMLP(10, [25, 400]),
        lambda: MLPLocation(10, 25, kernel_width=400, out_width=1).mlp.layers[0],
        lambda: MLPCombination(10, 24, 1, kernel_width=400).first,
    ],
)
def test_per_head_mlps_start_by_their_outputs(build: Callable[[], nn.Module]) -> None:
    """Uniform within ±1/√outputs, weights and biases, as in the authors' release."""
    torch.manual_seed(0)
    _require_uniform(build(), 1 / 20)


def _require_uniform(module: nn.Module, bound: float) -> None:
    for parameter in module.parameters():
        assert parameter.abs().max().item() <= bound
        assert parameter.std().item() == pytest.approx(bound / 3**0.5, rel=0.05)
