"""LieSelfAttention against numbers worked out by hand and against its definition, pair by pair."""

import math

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from lietransformer.groups import get_group
from lietransformer.lift import lift
from lietransformer.nn import AttentionConfig, LieSelfAttention
from lietransformer.nn.mlp import PerHeadLinear, PerHeadMLP
from lietransformer.nn.scores import (
    LinearConcatLinearContent,
    MLPCombination,
    MLPLocation,
    MultiplicativeCombination,
    PlainLocation,
)
from lietransformer.pairs import NeighbourhoodConfig, PairGeometry, pair_geometry
from tests.cases import attention_choices, default_lift, describe, is_possible, random_cloud, seeded

POSSIBLE = [config for config in attention_choices() if is_possible(config)]
IMPOSSIBLE = [config for config in attention_choices() if not is_possible(config)]


def line_of_two_points() -> PairGeometry:
    """x = 0 and 1 on the line with T(1): the only coordinate of a pair is x' − x."""
    coordinates = torch.tensor([[[[0.0], [1.0]], [[-1.0], [0.0]]]], dtype=torch.float64)
    return PairGeometry(coordinates, torch.ones(1, 1, 2, dtype=torch.bool))


@torch.no_grad()
def attention_of_ones(normalisation: str) -> LieSelfAttention:
    """One head of width 1 whose maps are all the identity: q = k = v = f and W^O = 1."""
    config = AttentionConfig("dot_product", "plain", "additive", normalisation)  # type: ignore[arg-type]
    attention = LieSelfAttention(1, 1, 1, config).double()
    for linear in (attention.query, attention.key, attention.value, attention.output):
        linear.weight.fill_(1.0)
        linear.bias.fill_(0.0)
    return attention


def test_constant_normalisation_by_hand() -> None:
    """Features 1 and 2 at x = 0 and 1.

    Content f·f':      1·1 = 1, 1·2 = 2   |   2·1 = 2, 2·2 = 4
    Location x' − x:         0,       1   |        −1,       0
    Sum α:                   1,       3   |         1,       4
    Output Σ α f' / 2:  (1·1 + 3·2)/2 = 3.5   |   (1·1 + 4·2)/2 = 4.5
    """
    features = torch.tensor([[[1.0], [2.0]]], dtype=torch.float64)
    output = attention_of_ones("constant")(features, line_of_two_points())
    assert output.flatten().tolist() == [3.5, 4.5]


def test_softmax_normalisation_by_hand() -> None:
    """The same α: weights (e¹, e³)/(e¹ + e³) and (e¹, e⁴)/(e¹ + e⁴) on the values 1 and 2.

    Outputs 1 + 1/(1 + e⁻²) = 1.880797… and 1 + 1/(1 + e⁻³) = 1.952574…
    """
    features = torch.tensor([[[1.0], [2.0]]], dtype=torch.float64)
    output = attention_of_ones("softmax")(features, line_of_two_points())
    assert output.flatten().tolist() == pytest.approx([1.8807970779778823, 1.9525741268224333])


def test_a_masked_key_by_hand() -> None:
    """Without the second key: constant gives 1·1/1 = 1 and 1·1/1 = 1, softmax the value 1."""
    features = torch.tensor([[[1.0], [2.0]]], dtype=torch.float64)
    geometry = line_of_two_points()
    geometry = PairGeometry(geometry.coordinates, torch.tensor([[[True, False]]]))
    for normalisation in ("constant", "softmax"):
        output = attention_of_ones(normalisation)(features, geometry)
        assert output.flatten().tolist() == [1.0, 1.0]


def linear_of(module: PerHeadLinear, head: int, x: Tensor) -> Tensor:
    y = x @ module.weight[head]
    return y if module.bias is None else y + module.bias[head, 0]


def mlp_of(module: PerHeadMLP, head: int, x: Tensor) -> Tensor:
    for layer in module.layers:
        assert isinstance(layer, PerHeadLinear)
        x = F.silu(linear_of(layer, head, x))
    return x


def score_by_definition(
    attention: LieSelfAttention, head: int, query: Tensor, key: Tensor, coordinates: Tensor
) -> Tensor:
    """α of one pair and head as App. E writes it: concatenating, then mapping."""
    content, location = attention.content, attention.location
    joined = torch.cat([query, key])
    if isinstance(content, LinearConcatLinearContent):
        k_c = content.mix(joined)
    elif type(content).__name__ == "ConcatContent":
        k_c = joined
    else:
        k_c = (query @ key / math.sqrt(len(query)))[None]
    if isinstance(location, MLPLocation):
        k_l = mlp_of(location.mlp, head, coordinates)
    else:
        assert isinstance(location, PlainLocation)
        k_l = coordinates
        if location.readout is not None:
            k_l = linear_of(location.readout, head, coordinates)
    combination = attention.combination
    if isinstance(combination, MLPCombination):
        hidden = F.silu(linear_of(combination.first, head, torch.cat([k_c, k_l])))
        return mlp_of(combination.rest, head, hidden)[0]
    if isinstance(combination, MultiplicativeCombination):
        if combination.match is not None:
            k_c = linear_of(combination.match, head, k_c)
        return k_c @ k_l
    return (k_c + k_l)[0]


def attention_by_definition(
    attention: LieSelfAttention, features: Tensor, geometry: PairGeometry
) -> Tensor:
    """Algorithm 1, with its two loops."""
    heads = attention.heads
    batch, count, width = features.shape
    rows = []
    for example in range(batch):
        query = attention.query(features[example]).unflatten(-1, (heads, -1))
        key = attention.key(features[example]).unflatten(-1, (heads, -1))
        value = attention.value(features[example]).unflatten(-1, (heads, -1))
        for i in range(count):
            mask = geometry.mask[example].expand(count, -1)[i]
            outputs = []
            for head in range(heads):
                scores, values = [], []
                for place in mask.nonzero()[:, 0].tolist():
                    j = place
                    if geometry.indices is not None:
                        j = int(geometry.indices[example, i, place])
                    coordinates = geometry.coordinates[example, i, place]
                    scores.append(
                        score_by_definition(
                            attention, head, query[i, head], key[j, head], coordinates
                        )
                    )
                    values.append(value[j, head])
                alpha = torch.stack(scores)
                weights = (
                    alpha.softmax(0)
                    if attention.normalisation == "softmax"
                    else alpha / len(scores)
                )
                outputs.append(weights @ torch.stack(values))
            rows.append(attention.output(torch.cat(outputs)))
    return torch.stack(rows).reshape(batch, count, width)


@pytest.mark.parametrize("ball", [None, 2])
@pytest.mark.parametrize("config", POSSIBLE, ids=describe)
def test_every_choice_is_its_definition(config: AttentionConfig, ball: int | None) -> None:
    torch.manual_seed(0)
    group = get_group("SE(2)")
    cloud = random_cloud("SE(2)", batch=2, points=3)
    lifted = lift(cloud, group, default_lift("SE(2)"), generator=seeded())
    geometry = pair_geometry(lifted, group, NeighbourhoodConfig(ball=ball, radius=3.0))
    assert (geometry.indices is None) == (ball is None)
    attention = LieSelfAttention(8, 2, 3, config).double()
    features = torch.randn(2, 6, 8, generator=seeded(1), dtype=torch.float64)
    torch.testing.assert_close(
        attention(features, geometry), attention_by_definition(attention, features, geometry)
    )


@pytest.mark.parametrize("config", POSSIBLE, ids=describe)
def test_gathered_neighbours_and_masked_pairs_give_the_same(
    config: AttentionConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    group = get_group("T(3)")
    lifted = lift(random_cloud("T(3)", points=6), group, default_lift("T(3)"))
    attention = LieSelfAttention(8, 2, 3, config).double()
    features = torch.randn(3, 6, 8, generator=seeded(1), dtype=torch.float64)
    neighbourhood = NeighbourhoodConfig(ball=4)
    masked = pair_geometry(lifted, group, neighbourhood)
    assert masked.indices is None
    monkeypatch.setattr("lietransformer.pairs._DENSE_SHARE", 2.0)
    gathered = pair_geometry(lifted, group, neighbourhood)
    assert gathered.indices is not None
    assert torch.equal(gathered.mask.sum(-1), masked.mask.sum(-1))
    torch.testing.assert_close(attention(features, gathered), attention(features, masked))


def test_there_are_thirty_six_choices_and_eight_impossible_ones() -> None:
    assert len(attention_choices()) == 36
    assert len(IMPOSSIBLE) == 8


@pytest.mark.parametrize("config", IMPOSSIBLE, ids=describe)
def test_a_vector_cannot_be_added_to_a_number(config: AttentionConfig) -> None:
    with pytest.raises(ValueError, match=r"got content=.*a vector of") as error:
        LieSelfAttention(16, 2, 3, config)
    assert 'combination "mlp" or "multiplicative"' in str(error.value)


def test_a_linear_concat_linear_score_of_width_one_can_be_added() -> None:
    config = AttentionConfig("linear_concat_linear", "mlp", "additive", score_width=1)
    attention = LieSelfAttention(8, 2, 1, config).double()
    features = torch.randn(1, 2, 8, generator=seeded(), dtype=torch.float64)
    geometry = line_of_two_points()
    torch.testing.assert_close(
        attention(features, geometry), attention_by_definition(attention, features, geometry)
    )


def test_queries_and_keys_can_be_narrower_than_values() -> None:
    config = AttentionConfig(
        "linear_concat_linear", "plain", "mlp", query_key_width=3, score_width=5
    )
    attention = LieSelfAttention(8, 2, 1, config).double()
    assert attention.query.weight.shape == (6, 8)
    features = torch.randn(1, 2, 8, generator=seeded(), dtype=torch.float64)
    geometry = line_of_two_points()
    torch.testing.assert_close(
        attention(features, geometry), attention_by_definition(attention, features, geometry)
    )


@pytest.mark.parametrize("config", POSSIBLE, ids=describe)
def test_a_query_without_keys_gets_finite_values_and_gradients(config: AttentionConfig) -> None:
    geometry = PairGeometry(
        torch.randn(1, 2, 2, 3, generator=seeded()), torch.zeros(1, 1, 2, dtype=torch.bool)
    )
    attention = LieSelfAttention(8, 2, 3, config)
    features = torch.randn(1, 2, 8, generator=seeded(1), requires_grad=True)
    output = attention(features, geometry)
    torch.testing.assert_close(output, attention.output.bias.expand_as(output))
    output.sum().backward()
    assert features.grad is not None
    assert features.grad.isfinite().all()


@pytest.mark.parametrize(("width", "heads"), [(10, 4), (8, 0), (0, 1), (3, 4)])
def test_heads_must_divide_the_width(width: int, heads: int) -> None:
    with pytest.raises(ValueError, match=f"got width={width} and heads={heads}. Use"):
        LieSelfAttention(width, heads, 2, AttentionConfig())


@pytest.mark.usefixtures("without_shape_checks")
def test_unknown_choices_are_answered_with_the_known_ones() -> None:
    with pytest.raises(
        ValueError, match="content must be one of dot_product, concat, linear_concat"
    ):
        AttentionConfig(content="cosine")  # type: ignore[arg-type]
    with pytest.raises(
        ValueError, match="normalisation must be one of softmax, constant, got 'sum'"
    ):
        AttentionConfig(normalisation="sum")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="kernel_width must be at least 1"):
        AttentionConfig(kernel_width=0)
