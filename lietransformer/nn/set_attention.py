"""Attention between sets (Lee et al., 2019): the parts of the SetTransformer."""

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as F

from lietransformer.nn.attention import masked_softmax


class SetAttention(nn.Module):
    """MAB(X, Y): H = XW^Q + Attention(X, Y); H + relu(HW^O), as in the authors' release.

    Scores are divided by √d, not by √(d/M), and there is no layer norm. Depends on Y as on a
    set, and treats the elements of X alike.
    """

    def __init__(self, query_width: int, key_width: int, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(query_width, width)
        self.key = nn.Linear(key_width, width)
        self.value = nn.Linear(key_width, width)
        self.output = nn.Linear(width, width)

    def forward(
        self,
        x: Float[Tensor, "batch n query_width"],
        y: Float[Tensor, "batch m key_width"],
        mask: Bool[Tensor, "batch m"],
    ) -> Float[Tensor, "batch n width"]:
        """Let each element of x attend to the elements of y that the mask leaves."""
        query = self.query(x)
        by_head = self._split(query)
        scores = by_head @ self._split(self.key(y)).mT / math.sqrt(query.shape[-1])
        weights = masked_softmax(scores, mask[:, None])
        attended = (weights @ self._split(self.value(y))).permute(1, 2, 0, 3).flatten(2)
        hidden = query + attended
        return hidden + F.relu(self.output(hidden))

    def _split(self, x: Tensor) -> Tensor:
        """From (batch, n, width) to (heads, batch, n, width / heads)."""
        return x.unflatten(-1, (self.heads, -1)).permute(2, 0, 1, 3)


class SelfAttention(nn.Module):
    """SAB(X) = MAB(X, X). Permutation equivariant."""

    def __init__(self, in_width: int, width: int, heads: int) -> None:
        super().__init__()
        self.attention = SetAttention(in_width, in_width, width, heads)

    def forward(
        self, x: Float[Tensor, "batch n in_width"], mask: Bool[Tensor, "batch n"]
    ) -> Float[Tensor, "batch n width"]:
        return self.attention(x, x, mask)


class InducedSelfAttention(nn.Module):
    """ISAB(X) = MAB(X, MAB(I, X)) with learnt points I: cost n·m instead of n². Equivariant."""

    def __init__(self, in_width: int, width: int, heads: int, inducing_points: int) -> None:
        super().__init__()
        self.points = nn.Parameter(torch.empty(1, inducing_points, width))
        nn.init.xavier_uniform_(self.points)
        self.gather = SetAttention(width, in_width, width, heads)
        self.spread = SetAttention(in_width, width, width, heads)

    def forward(
        self, x: Float[Tensor, "batch n in_width"], mask: Bool[Tensor, "batch n"]
    ) -> Float[Tensor, "batch n width"]:
        points = self.points.expand(len(x), -1, -1)
        summary = self.gather(points, x, mask)
        everything = torch.ones_like(summary[..., 0], dtype=torch.bool)
        return self.spread(x, summary, everything)


class AttentionPooling(nn.Module):
    """PMA(X) = MAB(S, X) with learnt seeds S. Permutation invariant."""

    def __init__(self, width: int, heads: int, seeds: int) -> None:
        super().__init__()
        self.seeds = nn.Parameter(torch.empty(1, seeds, width))
        nn.init.xavier_uniform_(self.seeds)
        self.attention = SetAttention(width, width, width, heads)

    def forward(
        self, x: Float[Tensor, "batch n width"], mask: Bool[Tensor, "batch n"]
    ) -> Float[Tensor, "batch seeds width"]:
        return self.attention(self.seeds.expand(len(x), -1, -1), x, mask)
