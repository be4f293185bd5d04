"""Lifting: where the samples lie, what is random, and what is refused."""

import math

import pytest
import torch

from lietransformer.clouds import PointCloud
from lietransformer.groups import get_group
from lietransformer.lift import LiftConfig, lift
from lietransformer.testing import transform
from tests.cases import ALL_GROUPS, default_lift, random_cloud, seeded


def origins(name: str, points: torch.Tensor) -> torch.Tensor:
    """x₀ of the orbit of x, for the groups whose orbits have one."""
    radius = points.norm(dim=-1, keepdim=True)
    zeros = torch.zeros_like(points)
    if name == "SO(2)":
        return torch.cat([radius, zeros[..., 1:]], dim=-1)
    if name == "SO(3)":
        return torch.cat([zeros[..., 1:], radius], dim=-1)
    if name == "R+xSO(2)":
        return torch.cat([zeros[..., 1:] + 1, zeros[..., 1:]], dim=-1)
    return points if name.startswith("Trivial") else zeros


@pytest.mark.parametrize("name", [name for name in ALL_GROUPS if name[0] not in "CD"])
def test_a_lift_takes_the_origin_to_its_point(name: str) -> None:
    group = get_group(name)
    cloud = random_cloud(name, masked=False)
    lifted = lift(cloud, group, default_lift(name), generator=seeded())
    samples = lifted.mask.shape[1] // cloud.mask.shape[1]
    points = cloud.positions.repeat_interleave(samples, dim=1)
    torch.testing.assert_close(group.act(lifted.elements, origins(name, points)), points)


@pytest.mark.parametrize("name", ["C3", "D4"])
def test_finite_groups_lift_a_point_to_all_their_elements(name: str) -> None:
    group = get_group(name)
    cloud = random_cloud(name, masked=False)
    lifted = lift(cloud, group, default_lift(name))
    elements = group.elements(dtype=torch.float64)
    torch.testing.assert_close(lifted.elements, elements.repeat(5, 1, 1).expand(3, -1, -1, -1))
    points = cloud.positions.repeat_interleave(len(elements), dim=1)
    torch.testing.assert_close(group.act(lifted.elements, lifted.orbits), points)


@pytest.mark.parametrize("name", ALL_GROUPS)
def test_a_lift_carries_the_features_and_the_mask_of_its_point(name: str) -> None:
    group = get_group(name)
    cloud = random_cloud(name)
    lifted = lift(cloud, group, default_lift(name), generator=seeded())
    samples = lifted.mask.shape[1] // cloud.mask.shape[1]
    clean = cloud.cleaned()
    assert torch.equal(lifted.features, clean.features.repeat_interleave(samples, dim=1))
    assert torch.equal(lifted.mask, cloud.mask.repeat_interleave(samples, dim=1))
    assert lifted.orbits.shape[-1] == group.orbit_dimension


@pytest.mark.parametrize("name", ["T(2)xC4", "T(2)xD3", "C3", "D2"])
def test_an_exact_lift_of_a_moved_cloud_is_the_moved_lift(name: str) -> None:
    """As sets: the lifts of each point come in another order."""
    group = get_group(name)
    cloud = random_cloud(name, batch=1, masked=False)
    u = group.sample(1, generator=seeded(4), dtype=torch.float64)
    order = group.stabiliser_order
    assert order is not None
    moved = transform(group, u, lift(cloud, group, LiftConfig())).elements
    of_moved = lift(transform(group, u, cloud), group, LiftConfig()).elements
    for point in range(5):
        mine = moved[0, point * order : (point + 1) * order].flatten(1)
        other = of_moved[0, point * order : (point + 1) * order].flatten(1)
        distance = torch.cdist(mine, other)
        assert (distance.amin(1) < 1e-12).all()
        assert len(set(distance.argmin(1).tolist())) == order


def angles_of(lifted_elements: torch.Tensor) -> torch.Tensor:
    return torch.atan2(lifted_elements[..., 1, 0], lifted_elements[..., 0, 0])


def test_evenly_spaced_lifts_have_one_random_offset_per_point() -> None:
    group = get_group("SE(2)")
    cloud = random_cloud("SE(2)", batch=2, points=4)
    lifted = lift(cloud, group, LiftConfig("evenly_spaced", samples=5), generator=seeded())
    angles = angles_of(lifted.elements).unflatten(1, (4, 5))
    steps = torch.remainder(angles - angles[..., :1], 2 * math.pi)
    expected = torch.arange(5, dtype=torch.float64) * 2 * math.pi / 5
    torch.testing.assert_close(steps, expected.expand_as(steps))
    offsets = angles[..., 0].flatten()
    assert len(offsets.unique()) == len(offsets)


def test_offsets_are_uniform_over_a_whole_turn() -> None:
    cloud = PointCloud(torch.zeros(1, 50_000, 2))
    config = LiftConfig("evenly_spaced", samples=1)
    angles = angles_of(lift(cloud, get_group("SE(2)"), config, generator=seeded()).elements)
    for moment in (angles.cos(), angles.sin(), (2 * angles).cos(), (2 * angles).sin()):
        assert abs(moment.mean().item()) < 0.02


def test_a_subgroup_lift_is_the_same_for_all_points_and_not_random() -> None:
    group = get_group("SE(2)")
    cloud = random_cloud("SE(2)", batch=2, points=4)
    lifted = lift(cloud, group, LiftConfig("subgroup", samples=2))
    angles = angles_of(lifted.elements).unflatten(1, (4, 2))
    torch.testing.assert_close(angles.abs(), torch.tensor([0.0, math.pi]).double().expand(2, 4, 2))


def test_random_lifts_of_a_continuous_stabiliser_are_random_for_every_point() -> None:
    cloud = random_cloud("SE(3)", batch=2, points=4)
    config = LiftConfig("random", samples=3)
    lifted = lift(cloud, get_group("SE(3)"), config, generator=seeded(0))
    rotations = lifted.elements[..., :3, :3].flatten(0, 1).flatten(1)
    assert len(rotations.unique(dim=0)) == 2 * 4 * 3
    again = lift(cloud, get_group("SE(3)"), config, generator=seeded(0))
    other = lift(cloud, get_group("SE(3)"), config, generator=seeded(1))
    assert torch.equal(lifted.elements, again.elements)
    assert not torch.equal(lifted.elements, other.elements)


@pytest.mark.parametrize("name", ["SE(2)", "SE(3)", "SO(3)"])
def test_a_random_lift_asks_for_a_generator(name: str) -> None:
    with pytest.raises(ValueError, match=r"a torch.Generator is needed.*manual_seed"):
        lift(random_cloud(name), get_group(name), LiftConfig("random", samples=2))


@pytest.mark.parametrize("name", ["SE(2)", "SO(3)"])
def test_padding_of_any_value_lifts_to_something_finite(name: str) -> None:
    cloud = random_cloud(name)
    positions = cloud.positions.masked_fill(~cloud.mask[..., None], torch.nan)
    lifted = lift(
        PointCloud(positions, cloud.features, cloud.mask),
        get_group(name),
        LiftConfig("evenly_spaced", samples=2),
        generator=seeded(),
    )
    assert lifted.elements.isfinite().all()
    assert lifted.orbits.isfinite().all()


@pytest.mark.parametrize(
    ("name", "config", "message"),
    [
        ("SE(2)", LiftConfig(), "an exact lift needs a finite stabiliser"),
        ("SE(3)", LiftConfig("evenly_spaced", samples=4), "stabiliser is a circle"),
        ("T(2)xC4", LiftConfig("subgroup", samples=2), "stabiliser is a circle"),
        ("SO(3)", LiftConfig("subgroup", samples=2), "a group with all translations"),
        ("T(2)xC4", LiftConfig("exact", samples=3), "has 4 samples"),
    ],
)
def test_lifts_that_a_group_does_not_have(name: str, config: LiftConfig, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        lift(random_cloud(name), get_group(name), config, generator=seeded())


@pytest.mark.usefixtures("without_shape_checks")
def test_mistakes_in_the_settings() -> None:
    with pytest.raises(ValueError, match="lift scheme must be one of exact, random"):
        LiftConfig("uniform", samples=2)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="at least 1"):
        LiftConfig("random")
    with pytest.raises(ValueError, match="at least 1"):
        LiftConfig("random", samples=0)


def test_points_of_the_wrong_dimension() -> None:
    with pytest.raises(ValueError, match=r"3 coordinates to be acted on by SE\(3\), got shape"):
        lift(
            random_cloud("SE(2)"),
            get_group("SE(3)"),
            LiftConfig("random", samples=1),
            generator=seeded(),
        )
