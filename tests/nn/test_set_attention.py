"""Attention between sets: the formula, and sets behind masks."""

import math

import torch
from torch.nn import functional as F

from lietransformer.nn.set_attention import AttentionPooling, InducedSelfAttention, SetAttention
from tests.cases import seeded


def test_attention_by_its_formula() -> None:
    """One query and two heads, head by head with the scores divided by √d."""
    torch.manual_seed(0)
    attention = SetAttention(3, 5, 8, heads=2).double()
    x = torch.randn(2, 4, 3, generator=seeded(), dtype=torch.float64)
    y = torch.randn(2, 6, 5, generator=seeded(1), dtype=torch.float64)
    mask = torch.tensor([[True] * 6, [True, False, True, True, False, True]])
    output = attention(x, y, mask)
    for example in range(2):
        keys = y[example][mask[example]]
        query = attention.query(x[example])
        key, value = attention.key(keys), attention.value(keys)
        heads = []
        for head in (slice(0, 4), slice(4, 8)):
            weights = (query[:, head] @ key[:, head].T / math.sqrt(8)).softmax(dim=-1)
            heads.append(weights @ value[:, head])
        hidden = query + torch.cat(heads, dim=-1)
        expected = hidden + F.relu(attention.output(hidden))
        torch.testing.assert_close(output[example], expected)


def test_pooling_gives_one_vector_for_each_seed() -> None:
    torch.manual_seed(0)
    pooling = AttentionPooling(8, heads=2, seeds=3).double()
    x = torch.randn(2, 5, 8, generator=seeded(), dtype=torch.float64)
    mask = torch.ones(2, 5, dtype=torch.bool)
    pooled = pooling(x, mask)
    assert pooled.shape == (2, 3, 8)
    torch.testing.assert_close(pooled, pooling(x.flip(1), mask))
    assert not torch.allclose(pooled[:, 0], pooled[:, 1])


def test_inducing_points_are_equivariant_to_permutations() -> None:
    torch.manual_seed(0)
    layer = InducedSelfAttention(3, 8, heads=2, inducing_points=4).double()
    x = torch.randn(2, 5, 3, generator=seeded(), dtype=torch.float64)
    mask = torch.tensor([[True] * 5, [True, True, True, False, False]])
    order = torch.tensor([4, 2, 0, 1, 3])
    torch.testing.assert_close(layer(x, mask)[:, order], layer(x[:, order], mask[:, order]))
    changed = x.clone()
    changed[1, 3:] = 100.0  # padding
    torch.testing.assert_close(layer(changed, mask)[mask], layer(x, mask)[mask])
