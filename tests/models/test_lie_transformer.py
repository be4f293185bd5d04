"""The model: invariant for every group and every choice, sane at the edges, able to learn."""

import statistics
from dataclasses import replace

import pytest
import torch
from torch.nn import functional as F

from lietransformer.groups import get_group
from lietransformer.lift import LiftConfig
from lietransformer.models import LieTransformer, get_preset
from lietransformer.neighbourhood import NeighbourhoodConfig
from lietransformer.nn import AttentionConfig
from lietransformer.quickstart import make_batch
from lietransformer.testing import (
    assert_equivariant,
    assert_invariant,
    assert_padding_invariant,
    assert_permutation_equivariant,
    assert_permutation_invariant,
    invariance_error,
    relative_error,
)
from lietransformer.types import PointCloud
from tests.cases import (
    ALL_GROUPS,
    EXACT_GROUPS,
    PRECISIONS,
    SAMPLED_GROUPS,
    attention_choices,
    build,
    describe,
    is_possible,
    random_cloud,
    seeded,
    small_config,
)

POSSIBLE = [config for config in attention_choices() if is_possible(config)]


# Symmetry.


@pytest.mark.parametrize("attention", POSSIBLE, ids=describe)
@pytest.mark.parametrize("name", ALL_GROUPS)
def test_positions_matter(name: str, attention: AttentionConfig) -> None:
    """By far more than the tolerance of the tests below, or these would show nothing."""
    model = build(name, attention=attention)
    cloud = random_cloud(name)
    other = replace(cloud, positions=random_cloud(name, seed=3).positions)
    change = relative_error(model(other, generator=seeded()), model(cloud, generator=seeded()))
    assert change > 1e-3


@pytest.mark.parametrize("dtype", PRECISIONS)
@pytest.mark.parametrize("attention", POSSIBLE, ids=describe)
@pytest.mark.parametrize("name", EXACT_GROUPS)
def test_exact_groups(name: str, attention: AttentionConfig, dtype: torch.dtype) -> None:
    model = build(name, dtype, attention=attention)
    assert_invariant(model, get_group(name), random_cloud(name, dtype=dtype))


@pytest.mark.parametrize("dtype", PRECISIONS)
@pytest.mark.parametrize("attention", POSSIBLE, ids=describe)
@pytest.mark.parametrize("name", SAMPLED_GROUPS)
def test_sampled_groups_with_samples_that_move_with_the_input(
    name: str, attention: AttentionConfig, dtype: torch.dtype
) -> None:
    model = build(name, dtype, attention=attention)
    lifted = model.lift(random_cloud(name, dtype=dtype), generator=seeded())
    assert_invariant(model.forward_lifted, get_group(name), lifted)


@pytest.mark.parametrize("pair_features", ["log", "canonical"])
@pytest.mark.parametrize("head", ["pool_then_mlp", "linear_then_pool"])
@pytest.mark.parametrize("norm", ["layer", "none"])
@pytest.mark.parametrize("name", ALL_GROUPS)
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
        ("SE(3)", "R+(3)"),
    ],
)
def test_there_is_no_more_symmetry_than_asked_for(model_group: str, other: str) -> None:
    """The assertions can fail: a model has its own invariance and not a larger one."""
    model = build(model_group)
    cloud = random_cloud(model_group)
    if other == "R+(3)":
        doubled = replace(cloud, positions=2 * cloud.positions)
        difference = model(cloud, generator=seeded()) - model(doubled, generator=seeded())
        assert difference.abs().max() > 1e-3
        return
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
                invariance_error(model, group, cloud, transformations=1, seed=seed)
                for seed in range(12)
            )

    assert error(many) < error(few) / 3


def test_springs_se2_is_exactly_invariant_to_half_turns() -> None:
    """App. I.3: Ĥ = C₂ makes LieTransformer-SE2 exactly T(2) ⋊ C₂-equivariant."""
    torch.manual_seed(0)
    preset = get_preset("springs", "LieTransformer-SE2 small")
    for dtype in PRECISIONS:
        model = LieTransformer(preset.config).to(dtype)
        assert not model.is_random
        cloud = random_cloud("T(2)xC2", points=6, dtype=dtype)
        assert_invariant(model, get_group("T(2)xC2"), cloud)


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


# The edges.


def finite_with_gradients(model: LieTransformer, cloud: PointCloud) -> torch.Tensor:
    """Output; asserts that it, its gradients and those of a force are finite."""
    positions = cloud.positions.detach().clone().requires_grad_()
    output = model(replace(cloud, positions=positions), generator=seeded())
    assert output.isfinite().all()
    (force,) = torch.autograd.grad(
        output.sum(), positions, create_graph=True, allow_unused=True, materialize_grads=True
    )
    assert force.isfinite().all()
    model.zero_grad()
    (output.sum() + force.square().sum()).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is None or parameter.grad.isfinite().all(), name
    return output


def edge_clouds(name: str) -> dict[str, PointCloud]:
    cloud = random_cloud(name, masked=False)
    only_one = torch.zeros_like(cloud.mask)
    only_one[:, 2] = True
    same = cloud.positions[:, :1].expand_as(cloud.positions)
    return {
        "coincident points": replace(cloud, positions=same.clone()),
        "all at the origin": replace(cloud, positions=torch.zeros_like(cloud.positions)),
        "one point": random_cloud(name, points=1),
        "all but one masked": replace(cloud, mask=only_one),
        "all masked": replace(cloud, mask=torch.zeros_like(cloud.mask)),
        "a batch of 3 with 3 points": random_cloud(name, batch=3, points=3),
        "an empty set": random_cloud(name, points=0),
        "a batch of none": random_cloud(name, batch=0, masked=False),
    }


@pytest.mark.parametrize("where", edge_clouds("T(2)"))
@pytest.mark.parametrize("neighbourhood", [None, 2])
@pytest.mark.parametrize("normalisation", ["softmax", "constant"])
@pytest.mark.parametrize("name", ALL_GROUPS)
def test_edges(name: str, normalisation: str, neighbourhood: int | None, where: str) -> None:
    attention = AttentionConfig(normalisation=normalisation, kernel_width=4)  # type: ignore[arg-type]
    model = build(name, attention=attention, neighbourhood=NeighbourhoodConfig(neighbourhood))
    cloud = edge_clouds(name)[where]
    output = finite_with_gradients(model, cloud)
    assert output.shape == (len(cloud.positions), 3)


def test_a_masked_set_is_an_empty_set() -> None:
    clouds = edge_clouds("T(2)")
    model = build("T(2)")
    torch.testing.assert_close(model(clouds["all masked"]), model(clouds["an empty set"]))


def test_the_second_derivative_that_springs_need() -> None:
    """The training gradient of a force, against finite differences, at coincident points too."""
    model = build("SE(2)", lift=LiftConfig("subgroup", 2), pair_features="canonical", layers=1)
    positions = torch.randn(1, 3, 2, generator=seeded(), dtype=torch.float64)
    positions[0, 1] = positions[0, 0]
    features = torch.randn(1, 3, 2, generator=seeded(1), dtype=torch.float64)

    def potential(positions: torch.Tensor) -> torch.Tensor:
        return model(PointCloud(positions, features))

    assert torch.autograd.gradcheck(potential, (positions.requires_grad_(),))
    assert torch.autograd.gradgradcheck(potential, (positions,))


# Mistakes.


@pytest.mark.usefixtures("without_shape_checks")
@pytest.mark.parametrize(
    ("cloud", "error", "message"),
    [
        (random_cloud("T(3)"), ValueError, r"dimension 2, which T\(2\) acts on; found positions"),
        (
            PointCloud(torch.zeros(1, 4, 2, dtype=torch.float64)),
            ValueError,
            r"expected 2 features per point; found features of shape \(1, 4, 1\)",
        ),
        (
            random_cloud("T(2)", dtype=torch.float32),
            TypeError,
            "a point cloud in torch.float64.*found torch.float32. Convert",
        ),
        (random_cloud("T(2)").to("meta"), ValueError, "on cpu, where the model is; found meta"),
    ],
)
def test_clouds_that_do_not_fit(cloud: PointCloud, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        build("T(2)")(cloud)


@pytest.mark.usefixtures("without_shape_checks")
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"group": "SE(5)"}, "expected a group among"),
        ({"width": 9}, "found width=9, heads=2. Use a width of 8 or 10"),
        ({"head": "max"}, "head among pool_then_mlp, linear_then_pool; found 'max'"),
        ({"norm": "batch"}, "norm among layer, none"),
        ({"pair_features": "raw"}, "pair features among log, canonical"),
        ({"layers": 0}, "layers of at least 1"),
        ({"group": "SE(2)"}, "finite stabiliser for an exact lift"),
    ],
)
def test_settings_that_do_not_fit(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LieTransformer(replace(small_config("T(2)"), **changes))  # type: ignore[arg-type]


def test_a_random_model_asks_for_a_generator() -> None:
    model = build("SE(2)")
    assert model.is_random
    with pytest.raises(ValueError, match=r"expected a torch\.Generator"):
        model(random_cloud("SE(2)"))


# Repeatability and learning.


@pytest.mark.parametrize("name", ["SE(2)", "SE(3)"])
def test_a_forward_pass_is_a_function_of_its_generator(name: str) -> None:
    model = build(name, neighbourhood=NeighbourhoodConfig(ball=6, samples=3))
    cloud = random_cloud(name)
    first = model(cloud, generator=seeded(1))
    torch.manual_seed(7)
    assert torch.equal(first, model(cloud, generator=seeded(1)))
    assert not torch.equal(first, model(cloud, generator=seeded(2)))


def test_a_tiny_task_is_learnt() -> None:
    """Three tetrominoes in one orientation, recognised in quarter turns never seen."""
    torch.manual_seed(0)
    model = LieTransformer(
        small_config("T(2)xC4", input_width=1, output_width=7, width=16, heads=4)
    )
    optimiser = torch.optim.Adam(model.parameters(), lr=3e-3)
    cloud, labels = make_batch(1, rotated=False, generator=seeded())
    chosen = torch.tensor([0, 1, 2])
    cloud, labels = PointCloud(cloud.positions[chosen]), labels[chosen]
    for _ in range(300):
        loss = F.cross_entropy(model(cloud), labels)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        if loss.item() < 0.1:
            break
    assert loss.item() < 0.1
    quarter = get_group("C4").stabiliser_elements(dtype=torch.float32)[1]
    turned = replace(cloud, positions=get_group("C4").act(quarter, cloud.positions) + 3)
    assert torch.equal(model(turned).argmax(-1), labels)
