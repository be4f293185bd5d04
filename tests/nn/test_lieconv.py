"""LieConv: a hand-computed example, the PointConv trick against the naive form, its limits."""

import math

import pytest
import torch

from lietransformer.clouds import PointCloud
from lietransformer.groups import get_group
from lietransformer.lift import lift
from lietransformer.nn.lieconv import LieConv
from lietransformer.pairs import NeighbourhoodConfig, pair_geometry
from tests.cases import ALL_GROUPS, default_lift, pairwise, random_cloud, seeded


def swish(x: float) -> float:
    return x / (1 + math.exp(-x))


def test_a_hand_computed_example() -> None:
    """Two points of T(2), one feature, a weight net of one layer and two outputs."""
    group = get_group("T(2)")
    cloud = PointCloud(
        torch.tensor([[[0.0, 0.0], [1.0, 2.0]]], dtype=torch.float64),
        torch.tensor([[[3.0], [5.0]]], dtype=torch.float64),
    )
    lifted = lift(cloud, group, default_lift("T(2)"))
    geometry = pair_geometry(lifted, group, NeighbourhoodConfig())
    layer = LieConv(1, 1, 2, kernel_widths=(2,)).double()
    values = {
        "weight_net.layers.0.weight": [[1.0, -0.5], [0.25, 2.0]],
        "weight_net.layers.0.bias": [0.1, -0.2],
        "linear.weight": [[0.7, -1.3]],
        "linear.bias": [0.4],
    }
    layer.load_state_dict({k: torch.tensor(v, dtype=torch.float64) for k, v in values.items()})

    def kernel(x: float, y: float) -> float:
        """k = W·φ for the relative position (x, y)."""
        first = swish(1.0 * x - 0.5 * y + 0.1)
        second = swish(0.25 * x + 2.0 * y - 0.2)
        return 0.7 * first - 1.3 * second

    expected = [
        (kernel(0, 0) * 3 + kernel(1, 2) * 5 + 0.4) / 2,
        (kernel(-1, -2) * 3 + kernel(0, 0) * 5 + 0.4) / 2,
    ]
    for convolve in (layer, layer.forward_naively):
        output = convolve(lifted.features, lifted.mask, geometry)
        assert output.flatten().tolist() == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize(
    ("name", "neighbourhood", "batch_norm"),
    pairwise(
        ALL_GROUPS,
        [NeighbourhoodConfig(), NeighbourhoodConfig(ball=2), NeighbourhoodConfig(radius=0.8)],
        [False, True],
    ),
    ids=str,
)
def test_the_trick_and_the_naive_form_agree(
    name: str, neighbourhood: NeighbourhoodConfig, batch_norm: bool
) -> None:
    group = get_group(name)
    cloud = random_cloud(name, points=6)
    lifted = lift(cloud, group, default_lift(name), generator=seeded())
    geometry = pair_geometry(lifted, group, neighbourhood)
    torch.manual_seed(0)
    width = lifted.features.shape[-1]
    layer = LieConv(width, 5, geometry.coordinates.shape[-1], batch_norm=batch_norm).double()
    trick = layer(lifted.features, lifted.mask, geometry)
    naive = layer.forward_naively(lifted.features, lifted.mask, geometry)
    torch.testing.assert_close(trick, naive)
    assert trick.std() > 1e-4
    torch.testing.assert_close(
        torch.autograd.grad(trick.square().sum(), list(layer.parameters())),
        torch.autograd.grad(naive.square().sum(), list(layer.parameters())),
    )


def test_neighbours_that_are_absent_do_not_count() -> None:
    """The divisor is the number of real neighbours, and their number alone."""
    group = get_group("T(2)")
    torch.manual_seed(0)
    layer = LieConv(1, 1, 2).double()
    cloud = random_cloud("T(2)", points=5)
    features = cloud.features[..., :1]
    mask = torch.tensor([[True, True, True, False, False]]).expand(len(features), 5)
    padded = lift(PointCloud(cloud.positions, features, mask), group, default_lift("T(2)"))
    short = lift(PointCloud(cloud.positions[:, :3], features[:, :3]), group, default_lift("T(2)"))
    outputs = [
        layer(each.features, each.mask, pair_geometry(each, group, NeighbourhoodConfig()))[:, :3]
        for each in (padded, short)
    ]
    torch.testing.assert_close(*outputs)
