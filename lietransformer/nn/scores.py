"""The choices of App. E: content scores, location scores, and their combination.

Tensors of pairs have the axes (head, batch, query, key), and one after the heads where the
score is a vector. Both vector-valued content scores are a term of the query plus a term of the key,
and are kept as such (`PairwiseSum`) until a linear map has made them narrow: they are never
concatenated for all pairs. `kept` counts the numbers of each pair and head that wait for the
backward pass.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from lietransformer.nn.mlp import PerHeadLinear, PerHeadMLP, per_head_matmul
from lietransformer.nn.pair_mlp import pair_mlp
from lietransformer.pairs import PairGeometry

# The paper says three layers for the location MLP; the authors' release has as many in both.
MLP_LAYERS = 3


@dataclass(frozen=True)
class PairwiseSum:
    """A vector per pair and head: query[i] + key[j]."""

    query: Float[Tensor, "heads batch g width"]
    key: Float[Tensor, "heads batch n width"]

    def map(self, weight: Float[Tensor, "heads width out"]) -> "PairwiseSum":
        """A linear map of the sum, taken term by term: one product per point, none per pair."""
        return PairwiseSum(_map_points(self.query, weight), _map_points(self.key, weight))

    def expand(self, geometry: PairGeometry) -> Float[Tensor, "heads width batch g key"]:
        """The sum itself, for every pair."""
        query = self.query.movedim(-1, 1)[..., None]
        return query + geometry.keys_of(self.key).movedim(-1, 1)


def _map_points(x: Tensor, weight: Tensor) -> Tensor:
    return torch.bmm(x.flatten(1, 2), weight).unflatten(1, x.shape[1:3])


def map_pairs(module: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """A map of columns applied to all pairs, given as (heads, width, batch, query, key)."""
    return module(x.flatten(2)).unflatten(2, x.shape[2:])


# A content score is a number per pair and head, or a vector of this form.
ContentScore = Tensor | PairwiseSum


class DotProductContent(nn.Module):
    """k_c = (W^Q f(g))ᵀ W^K f(g') / √(d/M), a number."""

    def forward(
        self,
        query: Float[Tensor, "heads batch g c"],
        key: Float[Tensor, "heads batch n c"],
        geometry: PairGeometry,
    ) -> Float[Tensor, "heads batch g key"]:
        query = query / math.sqrt(query.shape[-1])
        if geometry.indices is None:
            return query @ key.mT
        return (geometry.keys_of(key) @ query[..., None])[..., 0]


class ConcatContent(nn.Module):
    """k_c = Concat[W^Q f(g), W^K f(g')] ∈ R^{2d/M}, written as [q, 0] + [0, k]."""

    def forward(
        self,
        query: Float[Tensor, "heads batch g c"],
        key: Float[Tensor, "heads batch n c"],
        geometry: PairGeometry,
    ) -> PairwiseSum:
        width = query.shape[-1]
        return PairwiseSum(F.pad(query, (0, width)), F.pad(key, (width, 0)))


class LinearConcatLinearContent(nn.Module):
    """k_c = W·Concat[W^Q f(g), W^K f(g')] ∈ R^{d_s}, written as W₁q + W₂k.

    W is the same for all heads: App. E gives only W^Q, W^K and W^V a head index.
    """

    def __init__(self, query_key_width: int, score_width: int) -> None:
        super().__init__()
        self.mix = nn.Linear(2 * query_key_width, score_width)

    def forward(
        self,
        query: Float[Tensor, "heads batch g c"],
        key: Float[Tensor, "heads batch n c"],
        geometry: PairGeometry,
    ) -> PairwiseSum:
        of_query, of_key = self.mix.weight.chunk(2, dim=1)
        return PairwiseSum(F.linear(query, of_query, self.mix.bias), F.linear(key, of_key))


class PlainLocation(nn.Module):
    """k_l = ν[log(g⁻¹g')], the same for all heads.

    Where the combination takes a number, the coordinates are first made one by a linear map
    without bias, each head its own.
    """

    def __init__(self, heads: int, pair_dimension: int, out_width: int) -> None:
        super().__init__()
        self.readout = (
            None
            if out_width == pair_dimension
            else PerHeadLinear(heads, pair_dimension, out_width, bias=False)
        )

    def forward(
        self, coordinates: Float[Tensor, "batch g key pair"]
    ) -> Float[Tensor, "#heads width batch g key"]:
        vectors = coordinates.movedim(-1, 0)[None]
        return vectors if self.readout is None else map_pairs(self.readout, vectors)

    def kept(self, coordinates: Float[Tensor, "batch g key pair"]) -> int:
        return 0  # the coordinates themselves, which are there once for all heads


class MLPLocation(nn.Module):
    """k_l = MLP(ν[log(g⁻¹g')]), each head with its own weights."""

    def __init__(self, heads: int, pair_dimension: int, kernel_width: int, out_width: int) -> None:
        super().__init__()
        hidden = [kernel_width] * (MLP_LAYERS - 1)
        self.mlp = PerHeadMLP(heads, [pair_dimension, *hidden, out_width])

    def forward(
        self, coordinates: Float[Tensor, "batch g key pair"]
    ) -> Float[Tensor, "heads width batch g key"]:
        return map_pairs(self.mlp, coordinates.movedim(-1, 0)[None])

    def kept(self, coordinates: Float[Tensor, "batch g key pair"]) -> int:
        return self.mlp.kept(coordinates.flatten(0, 2).mT[None])


class AdditiveCombination(nn.Module):
    """α = k_c + k_l, for scores that are numbers."""

    kept = 0

    def forward(
        self,
        content: ContentScore,
        location: Float[Tensor, "#heads 1 batch g key"],
        geometry: PairGeometry,
    ) -> Float[Tensor, "heads batch g key"]:
        if isinstance(content, PairwiseSum):
            content = content.expand(geometry)[:, 0]
        return content + location[:, 0]


class MultiplicativeCombination(nn.Module):
    """α = k_c·k_l, the product of numbers or the inner product of vectors.

    Vectors of different width meet through a linear map without bias of the content, each
    head its own.
    """

    def __init__(self, heads: int, content_width: int, location_width: int) -> None:
        super().__init__()
        self.match = (
            None
            if content_width == location_width
            else PerHeadLinear(heads, content_width, location_width, bias=False)
        )
        self.kept = 2 * location_width  # both factors

    def forward(
        self,
        content: ContentScore,
        location: Float[Tensor, "#heads width batch g key"],
        geometry: PairGeometry,
    ) -> Float[Tensor, "heads batch g key"]:
        if not isinstance(content, PairwiseSum):
            return content * location[:, 0]
        if self.match is not None:
            content = content.map(self.match.weight)
        return (content.expand(geometry) * location).sum(dim=1)


class MLPCombination(nn.Module):
    """α = MLP[Concat[k_c, k_l]], each head with its own weights.

    The first layer is linear in the concatenation, so it is computed as the sum of a map of
    the content and a map of the location, without concatenating.
    """

    def __init__(
        self, heads: int, content_width: int, location_width: int, kernel_width: int
    ) -> None:
        super().__init__()
        self.widths = [content_width, location_width]
        # The first layer of a `PerHeadMLP`, initialised like the others.
        self.first = PerHeadLinear(heads, sum(self.widths), kernel_width, fan=kernel_width)
        self.rest = PerHeadMLP(heads, [kernel_width] * (MLP_LAYERS - 1) + [1])
        self.kept = 2 * (MLP_LAYERS - 1) * kernel_width  # each layer before and after swish

    def forward(
        self,
        content: ContentScore,
        location: Float[Tensor, "#heads width batch g key"],
        geometry: PairGeometry,
    ) -> Float[Tensor, "heads batch g key"]:
        of_content, of_location = self.first.weight.split(self.widths, dim=1)
        assert self.first.bias is not None
        if isinstance(content, PairwiseSum):
            content = content.map(of_content)
            query = content.query + self.first.bias[:, None]
            rest = self.rest.layer_parameters()
            return pair_mlp(query, content.key, location, geometry, of_location, rest)[:, 0]
        hidden = per_head_matmul(of_location, location.flatten(2)) + self.first.bias.mT
        hidden = hidden.unflatten(2, location.shape[2:])
        hidden = hidden + content[:, None] * of_content.mT[..., None, None]
        return map_pairs(self.rest, F.silu(hidden))[:, 0]
