"""The model at the edges of its input, on mistakes, repeated, and learning."""

from dataclasses import replace

import pytest
import torch
from torch.nn import functional as F

from lietransformer.cli.quickstart import make_batch
from lietransformer.clouds import PointCloud
from lietransformer.groups import get_group
from lietransformer.lift import LiftConfig, lift
from lietransformer.models import LieTransformer
from lietransformer.nn import AttentionConfig
from lietransformer.pairs import NeighbourhoodConfig, pair_geometry
from tests.cases import (
    ALL_GROUPS,
    build,
    default_lift,
    pairwise,
    random_cloud,
    seeded,
    small_config,
)


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


@pytest.mark.parametrize(
    ("name", "where", "neighbourhood", "normalisation"),
    pairwise(ALL_GROUPS, edge_clouds("T(2)"), [None, 2], ["softmax", "constant"]),
)
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


@pytest.mark.parametrize("scale", [1e-5, 1.0, 1e5])
@pytest.mark.parametrize("name", ALL_GROUPS)
def test_padding_never_matters_not_even_if_it_is_not_a_number(name: str, scale: float) -> None:
    """In float32, where squares of large and small numbers overflow first."""
    model = build(name, torch.float32)
    cloud = random_cloud(name, dtype=torch.float32)
    cloud = replace(cloud, positions=scale * cloud.positions)
    wild = cloud.positions.masked_fill(~cloud.mask[..., None], torch.nan)
    features = cloud.features.masked_fill(~cloud.mask[..., None], torch.inf)
    output = finite_with_gradients(model, replace(cloud, positions=wild, features=features))
    assert torch.equal(output, model(cloud, generator=seeded()))


@pytest.mark.parametrize("name", ALL_GROUPS)
def test_geometry_keeps_its_precision_under_autocast(name: str) -> None:
    group = get_group(name)
    cloud = random_cloud(name, dtype=torch.float32)

    def geometry() -> torch.Tensor:
        lifted = lift(cloud, group, default_lift(name), generator=seeded())
        return pair_geometry(lifted, group, NeighbourhoodConfig()).coordinates

    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.ones(2, 2).mm(torch.ones(2, 2)).dtype == torch.bfloat16
        under_autocast = geometry()
    assert torch.equal(under_autocast, geometry())


# Mistakes.


@pytest.mark.usefixtures("without_shape_checks")
@pytest.mark.parametrize(
    ("cloud", "error", "message"),
    [
        (random_cloud("T(3)"), ValueError, r"2 coordinates to be acted on by T\(2\), got shape"),
        (
            PointCloud(torch.zeros(1, 4, 2, dtype=torch.float64)),
            ValueError,
            r"takes 2 features per point, got features of shape \(1, 4, 1\)",
        ),
        (
            random_cloud("T(2)", dtype=torch.float32),
            TypeError,
            "must be in torch.float64.*got torch.float32. Convert",
        ),
        (torch.zeros(1, 4, 2), TypeError, r"must be a PointCloud, got Tensor. Wrap positions"),
        (random_cloud("T(2)").to("meta"), ValueError, "on cpu, where the model is, got meta"),
    ],
)
def test_clouds_that_do_not_fit(cloud: PointCloud, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        build("T(2)")(cloud)


@pytest.mark.usefixtures("without_shape_checks")
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"group": "SE(5)"}, "group must be one of"),
        ({"width": 9}, "got width=9 and heads=2. Use a width of 8 or 10"),
        ({"head": "max"}, "head must be one of pool_then_mlp, linear_then_pool, got 'max'"),
        ({"norm": "batch"}, "norm must be one of layer, none"),
        ({"pair_features": "raw"}, "pair features must be one of log, canonical"),
        ({"layers": 0}, "layers must be at least 1"),
        ({"group": "SE(2)"}, "an exact lift needs a finite stabiliser"),
    ],
)
def test_settings_that_do_not_fit(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LieTransformer(replace(small_config("T(2)"), **changes))  # type: ignore[arg-type]


def test_a_random_model_asks_for_a_generator() -> None:
    model = build("SE(2)")
    assert model.is_random
    with pytest.raises(ValueError, match=r"a torch\.Generator is needed"):
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
