"""Models that are built for no group: the symmetries they have, and those they have not."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from lietransformer.groups import get_group
from lietransformer.models import GraphNetwork
from lietransformer.models.graph_network import GraphNetworkLayer
from lietransformer.testing import (
    assert_invariant,
    assert_padding_invariant,
    assert_permutation_invariant,
)
from tests.cases import random_cloud, seeded
from tests.models.builders import fully_connected, graph_network, lie_resnet, set_transformer

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


def test_a_graph_network_begins_with_edges_and_a_whole_of_one() -> None:
    model = graph_network()
    assert isinstance(model, GraphNetwork)
    cloud = random_cloud("T(2)", masked=False)
    nodes = torch.cat([cloud.positions, cloud.features], dim=-1)
    edges, whole = torch.ones(3, 5, 5, 1).double(), torch.ones(3, 1).double()
    for layer in model.layers:
        edges, nodes, whole = layer(edges, nodes, whole, cloud.mask)
    torch.testing.assert_close(model(cloud), model.output(whole))
