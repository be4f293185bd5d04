"""Invariance of the model for every group and every choice of attention, and its limits."""

import statistics
from dataclasses import replace

import pytest
import torch

from lietransformer.clouds import PointCloud
from lietransformer.experiments.registry import get_preset
from lietransformer.groups import get_group
from lietransformer.lift import LiftConfig
from lietransformer.models import LieTransformer, LieTransformerConfig
from lietransformer.nn import AttentionConfig
from lietransformer.pairs import NeighbourhoodConfig
from lietransformer.testing import (
    assert_equivariant,
    assert_invariant,
    assert_padding_invariant,
    assert_permutation_equivariant,
    assert_permutation_invariant,
    invariance_error,
    relative_error,
)
from tests.cases import (
    ALL_GROUPS,
    EXACT_GROUPS,
    PRECISIONS,
    SAMPLED_GROUPS,
    build,
    case_id,
    pairwise,
    pairwise_attention,
    random_cloud,
    seeded,
)


@pytest.mark.parametrize(("name", "attention"), pairwise_attention(ALL_GROUPS), ids=case_id)
def test_positions_matter(name: str, attention: AttentionConfig) -> None:
    """By far more than the tolerance of the tests below, or these would show nothing."""
    model = build(name, attention=attention)
    cloud = random_cloud(name)
    other = replace(cloud, positions=random_cloud(name, seed=3).positions)
    change = relative_error(model(other, generator=seeded()), model(cloud, generator=seeded()))
    assert change > 1e-4


@pytest.mark.parametrize(
    ("name", "dtype", "attention"), pairwise_attention(EXACT_GROUPS, PRECISIONS), ids=case_id
)
def test_exact_groups(name: str, attention: AttentionConfig, dtype: torch.dtype) -> None:
    model = build(name, dtype, attention=attention)
    assert_invariant(model, get_group(name), random_cloud(name, dtype=dtype))


@pytest.mark.parametrize(
    ("name", "dtype", "attention"), pairwise_attention(SAMPLED_GROUPS, PRECISIONS), ids=case_id
)
def test_sampled_groups_with_samples_that_move_with_the_input(
    name: str, attention: AttentionConfig, dtype: torch.dtype
) -> None:
    model = build(name, dtype, attention=attention)
    lifted = model.lift(random_cloud(name, dtype=dtype), generator=seeded())
    assert_invariant(model.forward_lifted, get_group(name), lifted)


@pytest.mark.parametrize(
    ("name", "pair_features", "head", "norm"),
    pairwise(
        ALL_GROUPS, ["log", "canonical"], ["pool_then_mlp", "linear_then_pool"], ["layer", "none"]
    ),
)
def test_everything_else_that_can_be_chosen(
    name: str, pair_features: str, head: str, norm: str
) -> None:
    model = build(name, pair_features=pair_features, head=head, norm=norm)
    lifted = model.lift(random_cloud(name), generator=seeded())
    assert_invariant(model.forward_lifted, get_group(name), lifted)


@pytest.mark.parametrize("name", ALL_GROUPS)
@pytest.mark.parametrize(
    "neighbourhood", [NeighbourhoodConfig(ball=3), NeighbourhoodConfig(radius=1.0)]
)
def test_neighbourhoods_keep_the_symmetry(name: str, neighbourhood: NeighbourhoodConfig) -> None:
    model = build(name, neighbourhood=neighbourhood)
    lifted = model.lift(random_cloud(name, points=7), generator=seeded())
    assert_invariant(model.forward_lifted, get_group(name), lifted)
    if name in EXACT_GROUPS:
        assert_invariant(model, get_group(name), random_cloud(name, points=7))


@pytest.mark.parametrize("name", ALL_GROUPS)
def test_features_on_the_group_are_equivariant(name: str) -> None:
    model = build(name)
    lifted = model.lift(random_cloud(name), generator=seeded())
    assert_equivariant(model.encode, get_group(name), lifted)
    assert_permutation_equivariant(model.encode, lifted)
    assert_padding_invariant(model.encode, lifted)


@pytest.mark.parametrize("name", ALL_GROUPS)
@pytest.mark.parametrize("neighbourhood", [NeighbourhoodConfig(), NeighbourhoodConfig(ball=3)])
def test_order_and_padding_do_not_matter(name: str, neighbourhood: NeighbourhoodConfig) -> None:
    model = build(name, neighbourhood=neighbourhood)
    cloud = random_cloud(name)
    lifted = model.lift(cloud, generator=seeded())
    assert_permutation_invariant(model.forward_lifted, lifted)
    assert_padding_invariant(model.forward_lifted, lifted)
    if name in EXACT_GROUPS:
        assert_permutation_invariant(model, cloud)
        assert_padding_invariant(model, cloud)


@pytest.mark.parametrize(
    ("model_group", "other"),
    [
        ("T(2)", "SO(2)"),
        ("SO(2)", "T(2)"),
        ("T(2)xC4", "SO(2)"),
        ("Trivial(2)", "T(2)"),
        ("T(2)xC3", "D1"),
        ("SE(2)", "D1"),
        ("SE(2)", "R+xSO(2)"),
    ],
)
def test_there_is_no_more_symmetry_than_asked_for(model_group: str, other: str) -> None:
    """The assertions can fail: a model has its own invariance and not a larger one."""
    model = build(model_group)
    cloud = random_cloud(model_group)
    with pytest.raises(AssertionError, match="not invariant"):
        assert_invariant(model, get_group(other), cloud, tolerance=1e-5)


@pytest.mark.parametrize(
    ("name", "scheme", "few", "many"),
    [
        ("SE(2)", "evenly_spaced", 1, 3),
        ("SE(2)", "random", 1, 32),
        ("SE(3)", "random", 1, 32),
        ("SO(3)", "random", 1, 32),
        ("SO(3)", "evenly_spaced", 1, 4),
    ],
)
def test_the_error_of_fresh_samples_falls_with_their_number(
    name: str, scheme: str, few: int, many: int
) -> None:
    """Figure 3: fresh stabiliser samples for the moved input, more and more of them."""
    group = get_group(name)
    cloud = random_cloud(name, batch=4, points=4, masked=False)

    def error(samples: int) -> float:
        model = build(name, lift=LiftConfig(scheme, samples))  # type: ignore[arg-type]
        with torch.no_grad():
            return statistics.median(
                invariance_error(
                    model, group, cloud, transformations=1, seed=10 * seed, fresh_samples=True
                )
                for seed in range(12)
            )

    assert error(many) < error(few) / 3


def test_springs_se2_is_exactly_invariant_to_half_turns() -> None:
    """App. I.3: Ĥ = C₂ makes LieTransformer-SE2 exactly T(2) ⋊ C₂-equivariant."""
    torch.manual_seed(0)
    config = get_preset("springs", "LieTransformer-SE2 small").config
    assert isinstance(config, LieTransformerConfig)
    for dtype in PRECISIONS:
        model = LieTransformer(config).to(dtype)
        assert not model.is_random
        cloud = random_cloud("T(2)xC2", points=6, dtype=dtype)
        assert_invariant(model, get_group("T(2)xC2"), cloud)


def test_the_canonical_lift_is_another_function_than_the_log_map() -> None:
    cloud = random_cloud("SE(2)")
    log, canonical = (
        build("SE(2)", pair_features=kind)(cloud, generator=seeded())
        for kind in ("log", "canonical")
    )
    assert relative_error(log, canonical) > 1e-3


def test_softmax_is_blind_on_equal_features_and_constant_normalisation_is_not() -> None:
    """Why the constellations, whose points all have the feature 1, cannot use softmax."""
    near = PointCloud(torch.randn(1, 6, 2, generator=seeded(), dtype=torch.float64))
    far = replace(near, positions=5 * near.positions)
    outputs = {}
    for normalisation in ("softmax", "constant"):
        attention = AttentionConfig(normalisation=normalisation)
        model = build("T(2)", input_width=1, attention=attention)
        outputs[normalisation] = (model(near) - model(far)).abs().max().item()
    assert outputs["softmax"] < 1e-14
    assert outputs["constant"] > 1e-4
