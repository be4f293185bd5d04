"""G-pooling and the output heads."""

import pytest
import torch
from torch.nn import functional as F

from lietransformer.nn import LinearThenPool, PoolThenMLP, masked_mean
from tests.cases import seeded

VALUES = torch.tensor([[[1.0, 10.0], [3.0, 20.0], [1e9, torch.nan]]])
MASK = torch.tensor([[True, True, False]])


def test_the_mean_is_over_real_elements() -> None:
    assert masked_mean(VALUES, MASK).tolist() == [[2.0, 15.0]]


def test_the_mean_of_nothing_is_zero() -> None:
    assert masked_mean(VALUES, torch.zeros_like(MASK)).tolist() == [[0.0, 0.0]]
    assert masked_mean(torch.zeros(2, 0, 3), torch.zeros(2, 0, dtype=torch.bool)).shape == (2, 3)


@pytest.mark.parametrize("head", [PoolThenMLP, LinearThenPool])
def test_heads_are_what_the_paper_says(head: type[PoolThenMLP] | type[LinearThenPool]) -> None:
    torch.manual_seed(0)
    module = head(4, 2)
    features = torch.randn(3, 5, 4, generator=seeded())
    mask = torch.rand(3, 5, generator=seeded(1)) < 0.6
    output = module(features, mask)
    for example in range(3):
        real = features[example][mask[example]]
        if isinstance(module, PoolThenMLP):
            x = F.silu(real.mean(0))
            for layer in module.hidden:
                x = F.silu(layer(x))
            expected = module.output(x)
        else:
            expected = module.output(F.silu(real)).mean(0)
        torch.testing.assert_close(output[example], expected)
