"""LieSelfAttention on thousands of elements of SE(2), without memory for all their pairs.

With constant normalisation and an additive combination of the dot product, attention (App. E) is

    out(g) = 1/|G_f| Σ_g' [ q(g)ᵀk(g')/√c + k_l(g⁻¹g') ] v(g')

The sum of the first term is q(g)ᵀ(Σ k vᵀ): no pairs. That of the second is computed for some
queries at a time. The result is that of the layer itself, to rounding.
"""

import math
from typing import cast

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from lietransformer.clouds import LiftedCloud
from lietransformer.dispatch import replaceable
from lietransformer.groups import Group
from lietransformer.groups.se2 import SE2
from lietransformer.models import LieTransformer
from lietransformer.nn.attention import LieSelfAttention
from lietransformer.nn.block import LieTransformerBlock
from lietransformer.nn.scores import AdditiveCombination, DotProductContent, MLPLocation

# What is computed at once: some 100 bytes for each pair, head and hidden unit.
_PAIRS_AT_ONCE = 2**17


@torch.no_grad()
def logits(model: LieTransformer, lifted: LiftedCloud) -> Float[Tensor, "1 out"]:
    """The output of a model for one example, all of whose points are there.

    As invariant as the model. Memory grows with the number of elements, not with that of pairs.
    """
    _require_known_form(model, lifted)
    features = model.embedding(lifted.features)
    for block in _blocks(model):
        normalised = block.attention_norm(features)
        features = features + _attend(block.attention, normalised, lifted.elements, model.group)
        hidden = block.mlp_norm(features)
        for layer in block.mlp:
            hidden = F.silu(layer(hidden))
        features = features + hidden
    return model.pool(features, lifted.mask)


def _blocks(model: LieTransformer) -> list[LieTransformerBlock]:
    return cast(list[LieTransformerBlock], list(model.blocks))


def _require_known_form(model: LieTransformer, lifted: LiftedCloud) -> None:
    attention = _blocks(model)[0].attention
    is_known = (
        isinstance(model.group, SE2)
        and model.config.pair_features == "log"
        and model.config.neighbourhood.is_everything(lifted.mask.shape[1])
        and attention.normalisation == "constant"
        and isinstance(attention.content, DotProductContent)
        and isinstance(attention.location, MLPLocation)
        and isinstance(attention.combination, AdditiveCombination)
        and lifted.elements.dtype == torch.float64
        and lifted.elements.device.type == "cpu"
        and len(lifted.mask) == 1
        and bool(lifted.mask.all())
    )
    if not is_known:
        raise ValueError(
            "this needs one example without padding, in float64 on a CPU, and a LieTransformer on "
            "SE(2) whose attention is a dot product plus an MLP of the logarithm, divided by the "
            "number of elements. Otherwise call the model itself."
        )


def _attend(
    attention: LieSelfAttention,
    features: Float[Tensor, "1 g width"],
    elements: Float[Tensor, "1 g m m"],
    group: Group,
) -> Float[Tensor, "1 g width"]:
    joint = attention.project(features)
    query, key, value = (x[:, 0] for x in attention.heads_of(joint))
    of_content = (query / math.sqrt(query.shape[-1])) @ (key.mT @ value)
    of_location = location_sums(attention, value, elements[0], group)
    pooled = (of_content + of_location) / value.shape[1]
    return attention.output(pooled.permute(1, 0, 2).flatten(1))[None]


@replaceable
def location_sums(
    attention: LieSelfAttention,
    value: Float[Tensor, "heads g c"],
    elements: Float[Tensor, "g m m"],
    group: Group,
) -> Float[Tensor, "heads g c"]:
    """Σ_g' k_l(g⁻¹g')·v(g') for each g, for as many at a time as there is memory for."""
    queries_at_once = max(1, _PAIRS_AT_ONCE // len(elements))
    parts = []
    for queries in elements.split(queries_at_once):
        coordinates = group.pair_coordinates(queries[:, None], elements[None])
        weights = attention.location(coordinates[None])[:, 0, 0]
        parts.append(weights @ value)
    return torch.cat(parts, dim=1)
