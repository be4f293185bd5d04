"""The models the paper compares with: the symmetries they have, and those they have not."""

import sys
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from lietransformer.groups import get_group
from lietransformer.lift import LiftConfig
from lietransformer.models import (
    FullyConnected,
    FullyConnectedConfig,
    GraphNetwork,
    GraphNetworkConfig,
    LieResNet,
    LieResNetConfig,
    LieTransformer,
    LieTransformerConfig,
    SetTransformer,
    SetTransformerConfig,
    Specialist,
    SpecialistConfig,
)
from lietransformer.models.graph_network import GraphNetworkLayer
from lietransformer.neighbourhood import NeighbourhoodConfig
from lietransformer.testing import (
    assert_equivariant,
    assert_invariant,
    assert_padding_invariant,
    assert_permutation_invariant,
    relative_error,
)
from lietransformer.types import PointCloud
from tests.cases import (
    ALL_GROUPS,
    EXACT_GROUPS,
    PRECISIONS,
    default_lift,
    random_cloud,
    seeded,
)


def enlarged(model: nn.Module, dtype: torch.dtype = torch.float64) -> nn.Module:
    """In evaluation, with parameters that make the output depend strongly on positions."""
    generator = seeded(5)
    model = model.to(dtype).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.mul_(3)
            if not parameter.any():  # some start at zero
                noise = torch.randn(parameter.shape, generator=generator)
                parameter.copy_(0.3 * noise.to(dtype))
    return model


def lie_resnet(name: str, dtype: torch.dtype = torch.float64, **changes: object) -> LieResNet:
    settings: dict[str, object] = {"width": 16, "layers": 2, "lift": default_lift(name)}
    torch.manual_seed(0)
    config = LieResNetConfig(name, 2, 3, **{**settings, **changes})  # type: ignore[arg-type]
    model = enlarged(LieResNet(config), dtype)
    assert isinstance(model, LieResNet)
    return model


# LieConv.


@pytest.mark.parametrize("norm", ["none", "batch"])
@pytest.mark.parametrize("pair_features", ["log", "canonical"])
@pytest.mark.parametrize("name", ALL_GROUPS)
def test_lie_conv_is_invariant_to_every_group(name: str, pair_features: str, norm: str) -> None:
    for dtype in PRECISIONS:
        model = lie_resnet(name, dtype, pair_features=pair_features, norm=norm)
        cloud = random_cloud(name, dtype=dtype)
        other = replace(cloud, positions=random_cloud(name, seed=3, dtype=dtype).positions)
        output, changed = (model(each, generator=seeded()) for each in (cloud, other))
        assert relative_error(changed, output) > 1e-3  # positions matter
        lifted = model.lift(cloud, generator=seeded())
        assert_invariant(model.forward_lifted, get_group(name), lifted)
        assert_permutation_invariant(model.forward_lifted, lifted)
        assert_padding_invariant(model.forward_lifted, lifted)
        if name in EXACT_GROUPS:
            assert_invariant(model, get_group(name), cloud)
            assert_permutation_invariant(model, cloud)
            assert_padding_invariant(model, cloud)


@pytest.mark.parametrize("name", ALL_GROUPS)
def test_features_of_lie_conv_are_equivariant(name: str) -> None:
    model = lie_resnet(name, neighbourhood=NeighbourhoodConfig(ball=3))
    lifted = model.lift(random_cloud(name), generator=seeded())
    assert_equivariant(model.encode, get_group(name), lifted)


@pytest.mark.parametrize(
    ("group", "other"), [("T(2)", "SO(2)"), ("SO(2)", "T(2)"), ("SE(2)", "D1")]
)
def test_lie_conv_has_no_more_symmetry_than_asked_for(group: str, other: str) -> None:
    with pytest.raises(AssertionError, match="not invariant"):
        assert_invariant(lie_resnet(group), get_group(other), random_cloud(group), tolerance=1e-5)


def test_springs_lie_conv_se2_is_exactly_invariant_to_half_turns() -> None:
    model = lie_resnet("SE(2)", lift=LiftConfig("subgroup", 2), pair_features="canonical")
    assert not model.is_random
    cloud = random_cloud("T(2)xC2")
    assert_invariant(model, get_group("T(2)xC2"), cloud)
    with pytest.raises(AssertionError, match="not invariant"):
        assert_invariant(model, get_group("T(2)xC4"), cloud, tolerance=1e-5)


@pytest.mark.parametrize("name", ["T(3)", "SE(3)", "SE(2)"])
def test_the_radius_adapts_until_balls_hold_the_wanted_share(name: str) -> None:
    """From any start, in training; in evaluation it stays."""
    model = lie_resnet(name, fill=0.4, neighbourhood=NeighbourhoodConfig(samples=5)).train()
    assert model.radius is not None
    generator = seeded()
    cloud = random_cloud(name, points=12)
    mask = torch.rand(cloud.mask.shape, generator=generator) < 0.8
    cloud = replace(cloud, mask=mask)
    shares = []
    with torch.no_grad():
        model.radius.fill_(9.0)
        for _ in range(300):
            lifted = model.lift(cloud, generator=generator)
            geometry = model.pairs(lifted, generator=generator)
            assert geometry.ball_sizes is not None
            in_ball = geometry.ball_sizes.masked_fill(~lifted.mask, 0).sum(dim=1)
            total = lifted.mask.sum(dim=1)
            shares.append(float((in_ball.sum() / total.sum()) / total.double().mean()))
    assert shares[0] > 0.9
    assert sum(shares[-50:]) / 50 == pytest.approx(0.4, abs=0.03)
    before = model.radius.clone()
    model.eval()(cloud, generator=generator)
    assert torch.equal(model.radius, before)
    assert "radius" in model.state_dict()


def test_a_length_unit_scales_positions() -> None:
    plain, scaled = lie_resnet("T(2)"), lie_resnet("T(2)", length_unit=2.0)
    cloud = random_cloud("T(2)")
    half = replace(cloud, positions=cloud.positions / 2)
    torch.testing.assert_close(scaled(cloud), plain(half))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"width": 6}, "a width that 4 divides"),
        ({"fill": 0.0}, "a fill above 0 and at most 1"),
        ({"fill": 0.5, "neighbourhood": NeighbourhoodConfig(radius=1.0)}, "either a fill"),
        ({"length_unit": 0.0}, "a length_unit above 0"),
        ({"layers": 0}, "layers of at least 1"),
    ],
)
def test_impossible_settings_are_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        lie_resnet("T(2)", torch.float64, **changes)


# Models that are not built for a group.


def set_transformer(**changes: object) -> nn.Module:
    torch.manual_seed(0)
    config = SetTransformerConfig(2, 2, True, 3, 2, 16, 2, 2, 4)
    return enlarged(SetTransformer(replace(config, **changes)))  # type: ignore[arg-type]


def graph_network(**changes: object) -> nn.Module:
    torch.manual_seed(0)
    config = GraphNetworkConfig(2, 2, 3, "global", width=16, layers=2)
    return enlarged(GraphNetwork(replace(config, **changes)))  # type: ignore[arg-type]


def fully_connected() -> nn.Module:
    torch.manual_seed(0)
    return enlarged(FullyConnected(FullyConnectedConfig(5, 2, 2, 3, width=16)))


PERMUTATION_INVARIANT: list[Callable[[], nn.Module]] = [
    set_transformer,
    lambda: set_transformer(inducing_points=4),
    lambda: set_transformer(use_features=False),
    graph_network,
]


@pytest.mark.parametrize("build", PERMUTATION_INVARIANT)
def test_order_and_padding_do_not_matter(build: Callable[[], nn.Module]) -> None:
    model = build()
    cloud = random_cloud("T(2)")
    assert_permutation_invariant(model, cloud)
    assert_padding_invariant(model, cloud)


@pytest.mark.parametrize("group", ["T(2)", "SO(2)"])
@pytest.mark.parametrize("build", [*PERMUTATION_INVARIANT, fully_connected])
def test_they_are_not_invariant_to_groups(build: Callable[[], nn.Module], group: str) -> None:
    with pytest.raises(AssertionError, match="not invariant"):
        assert_invariant(build(), get_group(group), random_cloud("T(2)"), tolerance=1e-4)


def test_a_fully_connected_network_depends_on_the_order() -> None:
    with pytest.raises(AssertionError, match="permut"):
        assert_permutation_invariant(fully_connected(), random_cloud("T(2)"))


def test_a_fully_connected_network_wants_its_number_of_points() -> None:
    with pytest.raises(ValueError, match="5 points in every example"):
        fully_connected()(random_cloud("T(2)", points=4))


def test_a_set_transformer_without_features_does_not_see_them() -> None:
    model = set_transformer(use_features=False)
    cloud = random_cloud("T(2)")
    other = replace(cloud, features=cloud.features + 1)
    torch.testing.assert_close(model(cloud), model(other))


def test_an_example_without_points_is_finite() -> None:
    cloud = random_cloud("T(2)")
    empty = replace(cloud, mask=torch.zeros_like(cloud.mask))
    for build in PERMUTATION_INVARIANT:
        assert build()(empty).isfinite().all()
    assert lie_resnet("T(2)")(empty).isfinite().all()


def test_the_dense_graph_network_against_loops_over_nodes_and_edges() -> None:
    torch.manual_seed(0)
    layer = GraphNetworkLayer(3, 4, 2, 6).double()
    generator = seeded()
    draw = {"generator": generator, "dtype": torch.float64}
    edges = torch.randn(2, 5, 5, 3, **draw)  # type: ignore[call-overload]
    nodes = torch.randn(2, 5, 4, **draw)  # type: ignore[call-overload]
    whole = torch.randn(2, 2, **draw)  # type: ignore[call-overload]
    mask = torch.tensor([[True] * 5, [True, True, False, True, False]])

    def mlp(update: nn.Module, *inputs: Tensor) -> Tensor:
        first, second = update.first.joint, update.second  # type: ignore[union-attr]
        hidden = nn.functional.silu(first(torch.cat(inputs)))  # type: ignore[operator]
        return nn.functional.silu(second(hidden))  # type: ignore[operator]

    new_edges, new_nodes, new_whole = layer(edges, nodes, whole, mask)
    for b in range(2):
        real = mask[b].nonzero()[:, 0].tolist()
        u = whole[b]
        e = {(i, j): mlp(layer.edge, edges[b, i, j], nodes[b, i], nodes[b, j], u)
             for i in real for j in real}  # fmt: skip
        received = {i: sum((e[i, j] for j in real), torch.zeros(6).double()) for i in real}
        v = {i: mlp(layer.node, received[i], nodes[b, i], u) for i in real}
        total = [sum(x.values(), torch.zeros(6).double()) for x in (received, v)]
        for (i, j), value in e.items():
            torch.testing.assert_close(new_edges[b, i, j], value)
        for i, value in v.items():
            torch.testing.assert_close(new_nodes[b, i], value)
        torch.testing.assert_close(new_whole[b], mlp(layer.whole, *total, u))


# Networks made for molecules.


def molecules(dtype: torch.dtype = torch.float64) -> PointCloud:
    """Points at the distances of atoms, with the one-hot code of 5 elements."""
    generator = seeded()
    grid = torch.cartesian_prod(*[torch.arange(3.0)] * 3)[torch.randperm(27, generator=generator)]
    positions = 1.3 * grid[None, :7] + 0.2 * torch.randn(3, 7, 3, generator=generator)
    element = torch.randint(5, (3, 7), generator=generator)
    mask = torch.arange(7)[None] < torch.tensor([[7], [5], [6]])
    one_hot = nn.functional.one_hot(element, 5)
    return PointCloud(positions.to(dtype), one_hot.to(dtype), mask)


def specialist(kind: str, cutoff: float = 5.0) -> nn.Module:
    torch.manual_seed(0)
    config = SpecialistConfig(kind, (1, 6, 7, 8, 9), 5, 2, cutoff)  # type: ignore[arg-type]
    return enlarged(Specialist(config))


@pytest.mark.parametrize("kind", ["SchNet", "DimeNet++"])
def test_specialists_see_distances_and_angles_only(kind: str) -> None:
    model, cloud = specialist(kind), molecules()
    output = model(cloud)
    assert output.shape == (3, 2)
    other = replace(cloud, positions=cloud.positions * 1.1)
    assert relative_error(model(other), output) > 1e-3
    assert_invariant(model, get_group("SE(3)"), cloud)
    torch.testing.assert_close(model(replace(cloud, positions=-cloud.positions)), output)
    assert_permutation_invariant(model, cloud)
    assert_padding_invariant(model, cloud)


@pytest.mark.parametrize("kind", ["SchNet", "DimeNet++"])
def test_molecules_of_a_batch_do_not_see_each_other(kind: str) -> None:
    model, cloud = specialist(kind), molecules()
    for row in range(3):
        alone = PointCloud(*(part[row : row + 1] for part in vars(cloud).values()))
        torch.testing.assert_close(model(alone)[0], model(cloud)[row])
    empty = cloud.mask.clone()
    empty[2] = False
    assert (model(replace(cloud, mask=empty))[2] == 0).all()


def test_what_is_beyond_the_cutoff_does_not_matter() -> None:
    for kind in ("SchNet", "DimeNet++"):
        model, cloud = specialist(kind, cutoff=2.0), molecules()
        far = cloud.positions.clone()
        far[0, 0] += torch.tensor([50.0, 0.0, 0.0])
        further = far.clone()
        further[0, 0] += torch.tensor([50.0, 9.0, 0.0])
        near = replace(cloud, positions=far)
        torch.testing.assert_close(model(near), model(replace(cloud, positions=further)))


def test_without_the_optional_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch_geometric", None)
    with pytest.raises(ImportError, match=r"pip install 'lietransformer\[specialists\]'"):
        specialist("SchNet")


def test_too_few_features_for_the_elements() -> None:
    with pytest.raises(ValueError, match="at least 5 features"):
        SpecialistConfig("SchNet", (1, 6, 7, 8, 9), 3, 1, 5.0)


# All of them.


def test_wrong_input_is_refused_by_every_model() -> None:
    for model in (set_transformer(), graph_network(), fully_connected(), lie_resnet("T(2)")):
        cloud = random_cloud("T(2)")
        with pytest.raises(ValueError, match="2 features per point"):
            model(PointCloud(cloud.positions))
        with pytest.raises(TypeError, match="as the model's parameters"):
            model(cloud.to(dtype=torch.float32))


def test_lie_transformer_and_lie_conv_share_their_interface() -> None:
    """Same lift, same pairs, for the same settings and generator."""
    config = LieTransformerConfig("SE(2)", 2, 3, 8, 1, 2, lift=LiftConfig("evenly_spaced", 2))
    transformer = LieTransformer(config).double()
    conv = lie_resnet("SE(2)", lift=LiftConfig("evenly_spaced", 2))
    cloud = random_cloud("SE(2)")
    one, other = (model.lift(cloud, generator=seeded()) for model in (transformer, conv))
    torch.testing.assert_close(one.elements, other.elements)
    torch.testing.assert_close(transformer.pairs(one).coordinates, conv.pairs(other).coordinates)
