"""LieSelfAttention (paper, Algorithm 1 and App. E)."""

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as F

from lietransformer.checkpointing import recomputed
from lietransformer.dispatch import replaceable
from lietransformer.errors import require_at_least_one, require_choice
from lietransformer.nn.chunking import queries_at_once
from lietransformer.nn.scores import (
    AdditiveCombination,
    ConcatContent,
    DotProductContent,
    LinearConcatLinearContent,
    MLPCombination,
    MLPLocation,
    MultiplicativeCombination,
    PlainLocation,
)
from lietransformer.pairs import PairGeometry

ContentKind = Literal["dot_product", "concat", "linear_concat_linear"]
LocationKind = Literal["plain", "mlp"]
CombinationKind = Literal["additive", "mlp", "multiplicative"]
NormalisationKind = Literal["softmax", "constant"]


@dataclass(frozen=True)
class AttentionConfig:
    """The choices of App. E, freely combined.

    Attributes:
        content: k_c(f(g), f(g')).
        location: k_l(g⁻¹g').
        combination: α_f(g, g') from the two.
        normalisation: the weights w_f(g, g') from α. Softmax weights add up to one, so
            where all features are equal they return the same value whatever the geometry:
            on points without features a model with softmax sees nothing at all.
        kernel_width: width of the hidden layers of the location and combination MLPs.
        query_key_width: width of W^Q f and W^K f in each head; left out, that of the values,
            d/M, as in the paper.
        score_width: d_s, the width of a linear-concat-linear score in each head; left out,
            a quarter of d/M, as in the authors' release.
    """

    content: ContentKind = "dot_product"
    location: LocationKind = "mlp"
    combination: CombinationKind = "additive"
    normalisation: NormalisationKind = "constant"
    kernel_width: int = 16
    query_key_width: int | None = None
    score_width: int | None = None

    def __post_init__(self) -> None:
        require_choice("attention content", self.content, ContentKind)
        require_choice("attention location", self.location, LocationKind)
        require_choice("attention combination", self.combination, CombinationKind)
        require_choice("attention normalisation", self.normalisation, NormalisationKind)
        require_at_least_one("attention kernel_width", self.kernel_width)
        require_at_least_one("attention query_key_width", self.query_key_width)
        require_at_least_one("attention score_width", self.score_width)

    def check_heads(self, width: int, heads: int) -> None:
        """Refuse a width and number of heads that these choices cannot be built with."""
        if heads < 1 or width < 1 or width % heads:
            raise ValueError(
                f"the number of heads must divide the width, got width={width} and heads={heads}. "
                f"{_nearest_widths(width, heads)}."
            )
        content_width = self.content_width(width // heads)
        if self.combination == "additive" and content_width != 1:
            raise ValueError(
                "the additive combination k_c + k_l needs a content score that is a number, got "
                f'content="{self.content}", a vector of {content_width} per head. Use '
                'content="dot_product", or combination "mlp" or "multiplicative".'
            )

    def content_width(self, head_width: int) -> int:
        """How many numbers a content score is, for heads of that width."""
        if self.content == "dot_product":
            return 1
        if self.content == "concat":
            return 2 * (self.query_key_width or head_width)
        return self.score_width or max(1, head_width // 4)


class LieSelfAttention(nn.Module):
    """f_out(g) = W^O Concat_m Σ_{g'} w^m(g, g') W^{V,m} f(g')  (Algorithm 1, App. E).

    Depends on group elements through g⁻¹g' alone, hence exactly equivariant for the set of
    elements it is given (Prop. 2). A query without a single key gets zero from its heads.

    Of each pair there is a score per head. What the scores are made of is wider; with many pairs
    it is there for some queries at a time only, and computed again for the backward pass.
    """

    def __init__(
        self, width: int, heads: int, pair_dimension: int, config: AttentionConfig
    ) -> None:
        super().__init__()
        config.check_heads(width, heads)
        head_width = width // heads
        content_width = config.content_width(head_width)
        self.heads = heads
        self.normalisation = config.normalisation
        query_key_width = config.query_key_width or head_width
        self.query = nn.Linear(width, heads * query_key_width)
        self.key = nn.Linear(width, heads * query_key_width)
        self.value = nn.Linear(width, width)
        self.output = nn.Linear(width, width)
        self.content = _content(config, query_key_width, content_width)
        location_width = _location_width(config, content_width, pair_dimension)
        self.location = _location(config, heads, pair_dimension, location_width)
        self.combination = _combination(config, heads, content_width, location_width)

    def forward(
        self, features: Float[Tensor, "batch g width"], geometry: PairGeometry
    ) -> Float[Tensor, "batch g width"]:
        return self.output(weighted_sums(self, self.project(features), geometry))

    def project(self, features: Float[Tensor, "batch g width"]) -> Float[Tensor, "batch g joint"]:
        """Queries, keys and values of all heads, by one matrix product instead of three."""
        maps = (self.query, self.key, self.value)
        if any(m.bias is None for m in maps):
            return torch.cat([m(features) for m in maps], dim=-1)
        weight, bias = torch.cat([m.weight for m in maps]), torch.cat([m.bias for m in maps])
        return F.linear(features, weight, bias)

    def heads_of(self, joint: Float[Tensor, "batch g joint"]) -> list[Tensor]:
        """Queries, keys and values of each head, from what `project` gives."""
        widths = [m.out_features for m in (self.query, self.key, self.value)]
        parts = (x.unflatten(-1, (self.heads, -1)) for x in joint.split(widths, dim=-1))
        return [x.permute(2, 0, 1, 3) for x in parts]

    def attend(
        self,
        query: Float[Tensor, "heads batch g c"],
        key: Float[Tensor, "heads batch n c"],
        value: Float[Tensor, "heads batch n v"],
        geometry: PairGeometry,
    ) -> Float[Tensor, "heads batch g v"]:
        """Σ_{g'} w^m(g, g') v(g') for every head m and the queries that are given."""
        location = self.location(geometry.coordinates)
        scores = self.combination(self.content(query, key, geometry), location, geometry)
        normalise = masked_softmax if self.normalisation == "softmax" else masked_average
        weights = normalise(scores, geometry.mask)
        if geometry.indices is None:
            return weights @ value
        return (weights[..., None, :] @ geometry.keys_of(value))[..., 0, :]

    def kept(self, geometry: PairGeometry) -> int:
        """About how many numbers of each pair wait for the backward pass."""
        numbers = 1 + self.location.kept(geometry.coordinates) + self.combination.kept
        if geometry.indices is not None:
            numbers += self.value.out_features // self.heads
        return self.heads * numbers


@replaceable
def weighted_sums(
    layer: LieSelfAttention, joint: Float[Tensor, "batch n joint"], geometry: PairGeometry
) -> Float[Tensor, "batch n width"]:
    """Concat_m Σ_{g'} w^m(g, g') W^{V,m} f(g'): scores, weights and weighted sums of a layer.

    If need be for some queries at a time.

    Args:
        layer: what scores and weights are made by.
        joint: queries, keys and values, of padded examples or packed as the geometry says.
        geometry: the pairs.
    """
    packing = geometry.packing
    query, key, value = layer.heads_of(joint if packing is None else packing.unpack(joint))
    rows = queries_at_once(geometry, layer.kept(geometry))
    if rows is None:
        sums = layer.attend(query, key, value, geometry)
    else:
        parts = zip(query.split(rows, dim=2), geometry.split(rows), strict=True)
        attend = layer.attend
        found = [recomputed(attend, queries, key, value, pairs) for queries, pairs in parts]
        sums = torch.cat(found, dim=2)
    together = side_by_side(sums)
    return together if packing is None else packing.pack(together)


def side_by_side(
    pooled: Float[Tensor, "heads batch g v"],
) -> Float[Tensor, "batch g width"]:
    """The results of all heads of an element as one row."""
    return pooled.permute(1, 2, 0, 3).flatten(2)


def masked_softmax(
    scores: Float[Tensor, "heads batch g key"], mask: Bool[Tensor, "batch #g key"]
) -> Float[Tensor, "heads batch g key"]:
    """softmax over the keys that count; zero, not NaN, where none does."""
    # The most negative number rather than −∞, which makes NaN of a row without keys.
    lowest = torch.finfo(scores.dtype).min
    return scores.masked_fill(~mask, lowest).softmax(dim=-1).masked_fill(~mask, 0)


def masked_average(
    scores: Float[Tensor, "heads batch g key"], mask: Bool[Tensor, "batch #g key"]
) -> Float[Tensor, "heads batch g key"]:
    """α / |G_f|, the number of keys that count ("constant" normalisation)."""
    count = mask.sum(dim=-1, keepdim=True).clamp(min=1)
    return scores * (mask.to(scores.dtype) / count)


def _nearest_widths(width: int, heads: int) -> str:
    if heads < 1 or width < 1:
        return "Use at least one head and a positive width"
    below = width // heads * heads
    nearest = f"{below} or {below + heads}" if below else f"{heads}"
    return f"Use a width of {nearest} for {heads} heads"


def _content(config: AttentionConfig, query_key_width: int, content_width: int) -> nn.Module:
    if config.content == "dot_product":
        return DotProductContent()
    if config.content == "concat":
        return ConcatContent()
    return LinearConcatLinearContent(query_key_width, content_width)


def _location_width(config: AttentionConfig, content_width: int, pair_dimension: int) -> int:
    """The width of the location score that the combination takes."""
    if config.location == "plain":
        takes_a_number = config.combination != "mlp" and content_width == 1
        return 1 if takes_a_number else pair_dimension
    return content_width if config.combination == "multiplicative" else 1


def _location(
    config: AttentionConfig, heads: int, pair_dimension: int, out_width: int
) -> PlainLocation | MLPLocation:
    if config.location == "plain":
        return PlainLocation(heads, pair_dimension, out_width)
    return MLPLocation(heads, pair_dimension, config.kernel_width, out_width)


def _combination(
    config: AttentionConfig, heads: int, content_width: int, location_width: int
) -> AdditiveCombination | MLPCombination | MultiplicativeCombination:
    if config.combination == "additive":
        return AdditiveCombination()
    if config.combination == "multiplicative":
        return MultiplicativeCombination(heads, content_width, location_width)
    return MLPCombination(heads, content_width, location_width, config.kernel_width)
