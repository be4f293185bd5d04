"""Balls and their subsamples: who is in, how uniformly, and that it is invariant."""

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from lietransformer.clouds import LiftedCloud, PointCloud
from lietransformer.groups import get_group
from lietransformer.lift import lift
from lietransformer.pairs import (
    NeighbourhoodConfig,
    PairGeometry,
    choose_neighbours,
    pair_geometry,
    pairs_of_layers,
)
from lietransformer.testing import assert_invariant, assert_permutation_invariant, transform
from tests.cases import (
    ALL_GROUPS,
    EXACT_GROUPS,
    PRECISIONS,
    build,
    default_lift,
    pairwise,
    random_cloud,
    seeded,
)


def lifted_cloud(name: str, points: int = 9, *, masked: bool = True) -> LiftedCloud:
    cloud = random_cloud(name, batch=2, points=points, masked=masked)
    return lift(cloud, get_group(name), default_lift(name), generator=seeded())


@pytest.mark.parametrize("name", ["T(2)", "SE(2)", "SE(3)", "SO(2)", "SO(3)", "Trivial(3)"])
def test_the_ball_holds_the_nearest_real_elements(name: str) -> None:
    group = get_group(name)
    lifted = lifted_cloud(name)
    indices, mask = choose_neighbours(lifted, group, NeighbourhoodConfig(ball=4))
    assert mask.all()
    count = lifted.mask.shape[1]
    coordinates = group.pair_coordinates(lifted.elements[:, :, None], lifted.elements[:, None])
    difference = lifted.orbits[:, :, None] - lifted.orbits[:, None]
    distance = group.distance_of_coordinates(
        coordinates, difference if group.orbit_dimension else None
    )
    for example in range(2):
        for query in range(count):
            real = lifted.mask[example].nonzero()[:, 0].tolist()
            nearest = sorted(real, key=lambda key: distance[example, query, key].item())[:4]
            assert set(indices[example, query].tolist()) == set(nearest)


def test_breaking_ties_does_not_overrule_distances() -> None:
    group = get_group("T(2)")
    for angle in torch.linspace(0, 6, 20).tolist():
        direction = torch.tensor([[math.cos(angle), math.sin(angle)]])
        positions = torch.cat([0 * direction, -1.0001 * direction, direction])[None]
        lifted = lift(PointCloud(positions), group, default_lift("T(2)"))
        indices, _ = choose_neighbours(lifted, group, NeighbourhoodConfig(ball=2))
        assert set(indices[0, 0].tolist()) == {0, 2}


def test_a_radius_excludes_what_is_farther() -> None:
    group = get_group("T(2)")
    lifted = lifted_cloud("T(2)")
    geometry = pair_geometry(lifted, group, NeighbourhoodConfig(radius=0.8))
    distance = geometry.coordinates.norm(dim=-1)
    assert (distance[geometry.mask] <= 0.8).all()
    everything = pair_geometry(lifted, group, NeighbourhoodConfig())
    near = (everything.coordinates.norm(dim=-1) <= 0.8) & everything.mask
    assert torch.equal(geometry.mask.sum(-1), near.sum(-1))


def test_subsamples_are_uniform_and_independent_for_every_query() -> None:
    group = get_group("T(2)")
    lifted = lifted_cloud("T(2)", points=8)
    config = NeighbourhoodConfig(ball=6, samples=3)
    ball, _ = choose_neighbours(lifted, group, NeighbourhoodConfig(ball=6))
    generator = seeded()
    runs = 4000
    hits = torch.zeros(2, 8, 8)
    together = torch.zeros(2)
    for _ in range(runs):
        indices, mask = choose_neighbours(lifted, group, config, generator=generator)
        assert mask.all()
        hits.scatter_add_(2, indices, torch.ones(indices.shape))
        # Who draws the nearest of its ball together with the first query of example 1: the
        # next query, and the first query of example 0?
        nearest = (indices == ball[:, :, :1]).any(-1)
        together += nearest[1, 0] & torch.stack([nearest[1, 1], nearest[0, 0]])
    members = torch.zeros(2, 8, 8).scatter_(2, ball, 1.0)
    frequency = hits / runs
    assert (frequency[members == 0] == 0).all()
    assert (frequency[members == 1] - 0.5).abs().max() < 0.05
    assert (together / runs - 0.25).abs().max() < 0.04


@pytest.mark.parametrize("samples", [3, 6])
def test_every_layer_draws_its_own_neighbours(samples: int) -> None:
    """From the same balls, independently: gathered (3 of 16) or masked out of all (6 of 8)."""
    points = 16 if samples == 3 else 8
    lifted = lifted_cloud("T(2)", points=points, masked=False)
    config = NeighbourhoodConfig(ball=7, samples=samples)
    ball, _ = choose_neighbours(lifted, get_group("T(2)"), NeighbourhoodConfig(ball=7))
    members = torch.zeros(2, points, points).scatter_(2, ball, 1.0).bool()
    pairs = pairs_of_layers(
        lifted, get_group("T(2)"), config, layers=400, generator=seeded(), kind="log"
    )
    assert (pairs[0].indices is None) == (samples == 6)
    drawn = torch.stack([as_members(geometry, points) for geometry in pairs])
    assert (drawn.sum(-1) == samples).all()
    assert not drawn[:, ~members].any()
    # How often a member of the ball is in two consecutive layers: as often as by chance.
    share = samples / 7
    both = (drawn[:-1] & drawn[1:]).double().mean(dim=0)[members]
    assert both.mean().item() == pytest.approx(share**2, abs=0.01)
    assert (both - share**2).abs().max() < 0.12
    distinct = {tuple(layer.flatten().tolist()) for layer in drawn}
    assert len(distinct) == 400


def as_members(geometry: PairGeometry, count: int) -> Tensor:
    """Which elements each query sees."""
    if geometry.indices is None:
        return geometry.mask
    members = torch.zeros(*geometry.indices.shape[:2], count, dtype=torch.bool)
    return members.scatter(2, geometry.indices, geometry.mask)


@pytest.mark.parametrize("samples", [None, 100])
def test_layers_share_what_is_not_sampled(samples: int | None) -> None:
    lifted = lifted_cloud("T(2)")
    config = NeighbourhoodConfig(ball=None if samples else 4, samples=samples)
    pairs = pairs_of_layers(lifted, get_group("T(2)"), config, layers=3, generator=seeded())
    assert len(pairs) == 3
    assert all(geometry is pairs[0] for geometry in pairs)


@pytest.mark.parametrize("samples", [2, 7])
def test_samples_of_everything_are_that_many(samples: int) -> None:
    """Whether they are gathered or masked out of all pairs."""
    lifted = lifted_cloud("T(2)")
    config = NeighbourhoodConfig(samples=samples)
    geometry = pair_geometry(lifted, get_group("T(2)"), config, generator=seeded())
    assert (geometry.indices is None) == (samples == 7)
    assert (geometry.mask.sum(-1) == samples).all()


def test_a_ball_smaller_than_the_sample_is_used_whole() -> None:
    lifted = lifted_cloud("T(3)", points=4)
    indices, mask = choose_neighbours(
        lifted, get_group("T(3)"), NeighbourhoodConfig(ball=50, samples=25), generator=seeded()
    )
    assert indices.shape == (2, 4, 4)
    for example in range(2):
        real = set(lifted.mask[example].nonzero()[:, 0].tolist())
        for query in range(4):
            assert set(indices[example, query][mask[example, query]].tolist()) == real


def test_the_same_generator_gives_the_same_neighbours() -> None:
    lifted = lifted_cloud("SE(3)")
    config = NeighbourhoodConfig(ball=8, samples=4)
    group = get_group("SE(3)")
    first, _ = choose_neighbours(lifted, group, config, generator=seeded(1))
    again, _ = choose_neighbours(lifted, group, config, generator=seeded(1))
    other, _ = choose_neighbours(lifted, group, config, generator=seeded(2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


@pytest.mark.parametrize("name", ALL_GROUPS)
@pytest.mark.parametrize("ball", [3, 5])
def test_balls_are_invariant(name: str, ball: int) -> None:
    """Also where distances are tied, as they always are for the finite groups."""
    group = get_group(name)
    lifted = lifted_cloud(name)
    config = NeighbourhoodConfig(ball=ball)
    indices, _ = choose_neighbours(lifted, group, config)
    for seed in range(5):
        u = group.sample(2, generator=seeded(seed), dtype=torch.float64)
        moved, _ = choose_neighbours(transform(group, u, lifted), group, config)
        assert torch.equal(indices.sort(-1).values, moved.sort(-1).values)


def lattice(name: str, dtype: torch.dtype) -> PointCloud:
    """The most symmetric of inputs: nearly every distance is tied with another."""
    dimension = get_group(name).space_dimension
    steps = torch.tensor([-1.0, 0.0, 1.0], dtype=dtype)
    points = torch.cartesian_prod(*[steps] * dimension).reshape(-1, dimension)
    points = points[points.norm(dim=-1) > 0]  # at the origin some groups are singular
    features = torch.randn(1, len(points), 2, generator=seeded(3), dtype=dtype)
    return PointCloud(points[None], features)


@pytest.mark.parametrize(
    ("name", "config", "dtype"),
    pairwise(
        ALL_GROUPS,
        [
            NeighbourhoodConfig(ball=3),
            NeighbourhoodConfig(ball=4),
            NeighbourhoodConfig(radius=1.0),
            NeighbourhoodConfig(radius=0.8),
        ],
        PRECISIONS,
    ),
    ids=str,
)
def test_ties_do_not_break_any_symmetry(
    name: str, config: NeighbourhoodConfig, dtype: torch.dtype
) -> None:
    model = build(name, dtype, neighbourhood=config)
    lifted = model.lift(lattice(name, dtype), generator=seeded())
    assert_invariant(model.forward_lifted, get_group(name), lifted)
    assert_permutation_invariant(model.forward_lifted, lifted)
    if name in EXACT_GROUPS:
        assert_invariant(model, get_group(name), lattice(name, dtype))


@pytest.mark.parametrize("name", ALL_GROUPS)
@pytest.mark.parametrize("ball", [2, 4, 5])
def test_the_order_of_coincident_elements_does_not_matter(name: str, ball: int) -> None:
    lifted = lifted_cloud(name, points=3)
    thrice = lifted.take(torch.arange(lifted.mask.shape[1]).repeat(3))
    features = torch.randn(thrice.features.shape, generator=seeded(), dtype=torch.float64)
    model = build(name, neighbourhood=NeighbourhoodConfig(ball=ball))
    assert_permutation_invariant(model.forward_lifted, replace(thrice, features=features))


@pytest.mark.parametrize("name", ALL_GROUPS)
@pytest.mark.parametrize("kind", ["log", "canonical"])
def test_chosen_pairs_have_the_features_of_all_pairs(name: str, kind: str) -> None:
    group = get_group(name)
    lifted = lifted_cloud(name)
    every = pair_geometry(lifted, group, NeighbourhoodConfig(), kind=kind)  # type: ignore[arg-type]
    some = pair_geometry(lifted, group, NeighbourhoodConfig(ball=4), kind=kind)  # type: ignore[arg-type]
    assert every.coordinates.shape[-1] == group.pair_dimension(kind)  # type: ignore[arg-type]
    assert some.indices is not None
    index = some.indices[..., None].expand_as(some.coordinates)
    torch.testing.assert_close(every.coordinates.gather(2, index), some.coordinates)


def test_distances_computed_in_pieces_choose_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    group = get_group("SE(2)")
    lifted = lifted_cloud("SE(2)")
    whole, _ = choose_neighbours(lifted, group, NeighbourhoodConfig(ball=4))
    monkeypatch.setattr("lietransformer.pairs._PAIRS_AT_ONCE", 100)
    pieces, _ = choose_neighbours(lifted, group, NeighbourhoodConfig(ball=4))
    assert torch.equal(whole, pieces)


@pytest.mark.parametrize("name", ALL_GROUPS)
@pytest.mark.parametrize("ball", [None, 4])
def test_features_computed_in_pieces_are_the_same(
    name: str, ball: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = get_group(name)
    cloud = random_cloud(name, batch=2, points=9)
    positions = cloud.positions.requires_grad_()
    config = NeighbourhoodConfig(ball=ball)

    def features_and_gradient() -> list[Tensor]:
        lifted = lift(cloud, group, default_lift(name), generator=seeded())
        features = pair_geometry(lifted, group, config).coordinates
        if not features.requires_grad:  # the trivial group's
            return [features]
        return [features, *torch.autograd.grad(features.square().sum(), positions)]

    whole = features_and_gradient()
    monkeypatch.setattr("lietransformer.pairs._PAIRS_AT_ONCE", 50)
    torch.testing.assert_close(features_and_gradient(), whole, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("radius", "is_gathered"), [(0.7, True), (5.0, False)])
def test_a_radius_needs_memory_for_its_largest_ball(
    radius: float, is_gathered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a long set, which is looked at in pieces; in a short one all pairs are computed."""
    group = get_group("T(2)")
    lifted = lifted_cloud("T(2)", points=15)
    config = NeighbourhoodConfig(radius=radius)
    whole = pair_geometry(lifted, group, config)
    assert whole.indices is None
    assert whole.ball_sizes is not None
    monkeypatch.setattr("lietransformer.pairs._PAIRS_AT_ONCE", 100)
    pieces = pair_geometry(lifted, group, config)
    assert pieces.ball_sizes is not None
    assert torch.equal(pieces.ball_sizes, whole.ball_sizes)
    if not is_gathered:
        assert pieces.indices is None
        assert torch.equal(pieces.mask, whole.mask)
        return
    assert pieces.indices is not None
    assert pieces.mask.shape[-1] == whole.ball_sizes.max()
    assert pieces.mask.sum(dim=-1).unique().numel() > 1  # smaller balls are filled up
    members = torch.zeros(2, 15, 15).scatter_add_(2, pieces.indices, pieces.mask.float())
    assert torch.equal(members, whole.mask.float())


def test_a_radius_in_pieces_gives_the_same_output(monkeypatch: pytest.MonkeyPatch) -> None:
    model = build("SE(2)", neighbourhood=NeighbourhoodConfig(radius=0.7))
    lifted = lifted_cloud("SE(2)", points=15)
    whole = model.forward_lifted(lifted)
    monkeypatch.setattr("lietransformer.pairs._PAIRS_AT_ONCE", 100)
    torch.testing.assert_close(model.forward_lifted(lifted), whole)


def test_the_largest_ball_of_a_radius_is_not_waited_for() -> None:
    """On a device; here one without numbers, which fails where one is asked for."""
    count = 1024  # in pieces: more pairs than are looked at at once
    group = get_group("T(2)")
    cloud = PointCloud(torch.empty(1, count, 2, device="meta"))
    lifted = lift(cloud, group, default_lift("T(2)"))
    pairs = pair_geometry(lifted, group, NeighbourhoodConfig(radius=0.5))
    assert pairs.indices is None
    assert pairs.mask.shape == (1, count, count)


def test_mistakes() -> None:
    with pytest.raises(ValueError, match="neighbourhood ball must be at least 1"):
        NeighbourhoodConfig(ball=0)
    with pytest.raises(ValueError, match="neighbourhood samples must be at least 1"):
        NeighbourhoodConfig(samples=-1)
    with pytest.raises(ValueError, match="radius must be above 0"):
        NeighbourhoodConfig(radius=0.0)
    with pytest.raises(ValueError, match=r"a torch.Generator is needed for sampling neighbours"):
        pair_geometry(lifted_cloud("T(2)"), get_group("T(2)"), NeighbourhoodConfig(samples=2))
