"""The models the paper compares with: the symmetries they have, and those they have not."""

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

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
    build_model,
)
from lietransformer.models.graph_network import GraphNetworkLayer
from lietransformer.models.lie_resnet import BottleneckBlock
from lietransformer.models.specialists import EdgesWithin, _torch_geometric, successive_edges
from lietransformer.neighbourhood import NeighbourhoodConfig
from lietransformer.nn.norms import MaskedBatchNorm
from lietransformer.nn.spherical_basis import SphericalBasis
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


@pytest.mark.parametrize("batch_norm", [False, True])
def test_the_block_and_the_head_by_their_formulas(batch_norm: bool) -> None:
    """x + Linear(swish(BN(conv(swish(BN(Linear(swish(BN(x)))))))), then mean Linear(swish(BN))."""
    norm = "batch" if batch_norm else "none"
    model = lie_resnet("T(2)", norm=norm, layers=1)
    lifted = model.lift(random_cloud("T(2)"))
    geometry = model.pairs(lifted)
    (block,) = model.blocks
    assert isinstance(block, BottleneckBlock)
    with torch.no_grad():
        for number, module in enumerate(model.modules()):
            if isinstance(module, MaskedBatchNorm):  # as if it had been trained
                module.running_mean.fill_(0.1 * number)
                module.running_variance.fill_(1 + 0.1 * number)

    def normalised(module: nn.Module | None, x: Tensor) -> Tensor:
        if module is None:
            return x
        assert isinstance(module, MaskedBatchNorm)
        scale = module.weight / (module.running_variance + 1e-5).sqrt()
        return (x - module.running_mean) * scale + module.bias

    def swish(x: Tensor) -> Tensor:
        return x * x.sigmoid()

    norms = list(block.norms) if batch_norm else [None] * 3
    x = model.embedding(lifted.features)
    hidden = block.narrow(swish(normalised(norms[0], x)))
    hidden = block.convolution(swish(normalised(norms[1], hidden)), lifted.mask, geometry)
    x = x + block.widen(swish(normalised(norms[2], hidden)))
    features = model.layers_on_group(lifted.features, lifted.mask, geometry)
    torch.testing.assert_close(features[lifted.mask], x[lifted.mask])
    outputs = model.output(swish(normalised(model.norm, x)))
    expected = torch.stack([o[m].mean(dim=0) for o, m in zip(outputs, lifted.mask, strict=True)])
    torch.testing.assert_close(model.forward_lifted(lifted), expected)


@pytest.mark.parametrize(
    "neighbourhood", [NeighbourhoodConfig(), NeighbourhoodConfig(ball=2)], ids=["all", "ball"]
)
def test_padding_does_not_matter_in_training_with_batch_norm(
    neighbourhood: NeighbourhoodConfig,
) -> None:
    """Neither to the output nor to what is learnt of the moments."""
    cloud = random_cloud("T(3)", points=6)
    more = torch.full((3, 4, 3), torch.nan, dtype=torch.float64)
    padded = PointCloud(
        torch.cat([cloud.positions, more], dim=1),
        torch.cat([cloud.features, more[..., :2]], dim=1),
        torch.cat([cloud.mask, torch.zeros(3, 4, dtype=torch.bool)], dim=1),
    )
    results = []
    for each in (cloud, padded):
        model = lie_resnet("T(3)", norm="batch", neighbourhood=neighbourhood).train()
        results.append((model(each), model.state_dict()))
    (output, state), (padded_output, padded_state) = results
    torch.testing.assert_close(padded_output, output)
    for key, value in state.items():
        torch.testing.assert_close(padded_state[key], value, msg=key)


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
            count = lifted.mask.sum(dim=1, keepdim=True)
            shares.append((geometry.ball_sizes / count)[lifted.mask].mean().item())
    assert shares[0] > 0.9
    assert sum(shares[-50:]) / 50 == pytest.approx(0.4, abs=0.03)
    before = model.radius.clone()
    model.eval()
    lifted = model.lift(cloud, generator=generator)
    in_evaluation = model.pairs(lifted, generator=generator)
    assert torch.equal(model.radius, before)
    assert in_evaluation.ball_sizes is not None
    count = lifted.mask.sum(dim=1, keepdim=True)
    share = (in_evaluation.ball_sizes / count)[lifted.mask].mean().item()
    assert share == pytest.approx(0.4, abs=0.15)  # the radius it found is the one it uses
    assert "radius" in model.state_dict()


def test_a_fill_of_one_holds_everything_whatever_the_sizes() -> None:
    model = lie_resnet("T(2)", fill=1.0).train()
    assert model.radius is not None
    cloud = random_cloud("T(2)", points=8, masked=False)
    mask = torch.arange(8)[None] < torch.tensor([[8], [3], [2]])
    with torch.no_grad():
        for _ in range(100):
            model(replace(cloud, mask=mask))
    geometry = model.pairs(model.lift(replace(cloud, mask=mask)))
    assert geometry.ball_sizes is not None
    assert torch.equal(geometry.ball_sizes[mask], mask.sum(dim=1, keepdim=True).expand(3, 8)[mask])


def test_an_empty_batch_leaves_the_radius() -> None:
    model = lie_resnet("T(2)", fill=0.5).train()
    cloud = random_cloud("T(2)")
    model(replace(cloud, mask=torch.zeros_like(cloud.mask)))
    assert model.radius == 2


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
        ({"fill": 0.5, "neighbourhood": NeighbourhoodConfig(ball=3)}, "either a fill"),
        ({"length_unit": 0.0}, "a finite length_unit above 0"),
        ({"length_unit": float("inf")}, "a finite length_unit above 0"),
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


def test_a_graph_network_begins_with_edges_and_a_whole_of_one() -> None:
    model = graph_network()
    assert isinstance(model, GraphNetwork)
    cloud = random_cloud("T(2)", masked=False)
    nodes = torch.cat([cloud.positions, cloud.features], dim=-1)
    edges, whole = torch.ones(3, 5, 5, 1).double(), torch.ones(3, 1).double()
    for layer in model.layers:
        edges, nodes, whole = layer(edges, nodes, whole, cloud.mask)
    torch.testing.assert_close(model(cloud), model.output(whole))


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


def test_dimenet_is_the_one_of_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same parameters in the library's own class give the same numbers.

    Given the means to find edges and triplets, and a basis that is derived in no time.
    """
    library = _torch_geometric().dimenet
    edges = EdgesWithin(5.0)

    def radius_graph(positions: Tensor, *, batch: Tensor, **_: object) -> Tensor:
        return edges(positions, batch)[0]

    def triplets(edge_index: Tensor, **_: object) -> tuple[Tensor, ...]:
        sender, receiver = edge_index
        first, second = successive_edges(sender, receiver)
        return receiver, sender, receiver[second], sender[second], sender[first], first, second

    def basis(spherical: int, radial: int, cutoff: float, exponent: int) -> nn.Module:
        return SphericalBasis(spherical, radial, cutoff, library.Envelope(exponent))

    monkeypatch.setattr(library, "radius_graph", radius_graph)
    monkeypatch.setattr(library, "triplets", triplets)
    monkeypatch.setattr(library, "SphericalBasisLayer", basis)
    theirs = library.DimeNetPlusPlus(128, 2, 4, 64, 8, 256, 7, 6).double().eval()
    ours = specialist("DimeNet++").network
    assert isinstance(ours, nn.Module)
    names = {"radial": "rbf", "spherical": "sbf", "embedding": "emb"}
    names |= {"interactions": "interaction_blocks", "outputs": "output_blocks"}
    state = {}
    for key, value in ours.state_dict().items():
        first, _, rest = key.partition(".")
        state[f"{names[first]}.{rest}"] = value
    theirs.load_state_dict(state)
    cloud = molecules()
    charges = torch.tensor([1, 6, 7, 8, 9])[cloud.features.argmax(dim=-1)][cloud.mask]
    inputs = charges, cloud.positions[cloud.mask], cloud.mask.nonzero()[:, 0]
    torch.testing.assert_close(ours(*inputs), theirs(*inputs))


def test_schnet_is_the_one_of_the_library() -> None:
    theirs = _torch_geometric().SchNet(interaction_graph=EdgesWithin(10.0)).double()
    config = SpecialistConfig("SchNet", (1, 6, 7, 8, 9), 5, 1, 10.0)
    ours = Specialist(config).double()
    theirs.load_state_dict(
        {k.removeprefix("network.network."): v for k, v in ours.state_dict().items()}
    )
    cloud = molecules()
    charges = torch.tensor([1, 6, 7, 8, 9])[cloud.features.argmax(dim=-1)][cloud.mask]
    expected = theirs(charges, cloud.positions[cloud.mask], cloud.mask.nonzero()[:, 0])
    torch.testing.assert_close(ours(cloud), expected)


def test_molecules_without_atoms_anywhere_in_a_batch() -> None:
    for kind in ("SchNet", "DimeNet++"):
        model, cloud = specialist(kind), molecules()
        for empty in ([0], [1], [0, 1, 2]):
            mask = cloud.mask.clone()
            mask[empty] = False
            output = model(replace(cloud, mask=mask))
            assert (output[empty] == 0).all()
            rest = [row for row in range(3) if row not in empty]
            torch.testing.assert_close(output[rest], model(cloud)[rest])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cutoff": -1.0}, "a cutoff above 0"),
        ({"elements": ()}, "nuclear charges from 1 to 94"),
        ({"elements": (1, 200)}, "nuclear charges from 1 to 94"),
        ({"input_width": 3}, "at least 5 features"),
    ],
)
def test_impossible_specialists_are_refused(changes: dict[str, Any], message: str) -> None:
    config = SpecialistConfig("SchNet", (1, 6, 7, 8, 9), 5, 1, 5.0)
    with pytest.raises(ValueError, match=message):
        replace(config, **changes)


def test_without_the_optional_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch_geometric", None)
    with pytest.raises(ImportError, match=r"pip install 'lietransformer\[specialists\]'"):
        specialist("SchNet")


# All of them.


@pytest.mark.usefixtures("without_shape_checks")
def test_wrong_input_is_refused_by_every_model() -> None:
    for model in (set_transformer(), graph_network(), fully_connected(), lie_resnet("T(2)")):
        cloud = random_cloud("T(2)")
        with pytest.raises(ValueError, match="2 features per point"):
            model(PointCloud(cloud.positions))
        with pytest.raises(TypeError, match="as the model's parameters"):
            model(cloud.to(dtype=torch.float32))
        with pytest.raises(ValueError, match="points of dimension 2"):
            model(PointCloud(torch.zeros(3, 5, 3).double(), cloud.features))
        with pytest.raises(TypeError, match="expected a PointCloud"):
            model(cloud.positions)
    with pytest.raises(ValueError, match="points of dimension 3"):
        specialist("SchNet")(PointCloud(torch.zeros(3, 7, 2).double(), molecules().features))


@pytest.mark.usefixtures("without_shape_checks")
def test_settings_of_no_model_are_refused() -> None:
    with pytest.raises(TypeError, match="settings of one of LieTransformer, LieResNet"):
        build_model(5)  # type: ignore[arg-type]


SMALL: dict[str, Callable[[], nn.Module]] = {
    "LieConv": lambda: lie_resnet("T(2)"),
    "LieConv with batch norm": lambda: lie_resnet("T(2)", norm="batch"),
    "SetTransformer": set_transformer,
    "graph network": graph_network,
    "fully-connected": fully_connected,
}


@pytest.mark.parametrize("name", SMALL)
def test_training_under_autocast(name: str) -> None:
    model = SMALL[name]().float().train()
    cloud = random_cloud("T(2)", dtype=torch.float32, masked=False)
    with torch.autocast("cpu", torch.bfloat16):
        output = model(cloud)
    output.float().square().sum().backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())
    exact = SMALL[name]().float().train()(cloud)
    assert relative_error(output.float(), exact) < 0.1


@pytest.mark.parametrize("name", SMALL)
def test_weights_survive_a_file(name: str, tmp_path: Path) -> None:
    model, other = SMALL[name]().train(), SMALL[name]().train()
    cloud = random_cloud("T(2)", masked=False)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.01)
        model(cloud)  # running averages move
    torch.save(model.state_dict(), tmp_path / "model.pt")
    other.load_state_dict(torch.load(tmp_path / "model.pt", weights_only=True))
    torch.testing.assert_close(other.eval()(cloud), model.eval()(cloud))


@pytest.mark.parametrize("name", [name for name in SMALL if "norm" not in name])
def test_models_are_functions_of_their_parameters(name: str) -> None:
    """By functional_call, and for several seeds at once by vmap."""
    models = [SMALL[name](), SMALL[name]()]
    with torch.no_grad():
        for parameter in models[1].parameters():
            parameter.mul_(1.1)
    parameters, buffers = torch.func.stack_module_state(models)
    cloud = random_cloud("T(2)", masked=False)

    def call(values: dict[str, Tensor], others: dict[str, Tensor]) -> Tensor:
        return torch.func.functional_call(models[0], (values, others), (cloud,))

    together = torch.func.vmap(call)(parameters, buffers)
    torch.testing.assert_close(together, torch.stack([model(cloud) for model in models]))


def test_lie_transformer_and_lie_conv_share_their_interface() -> None:
    """Same lift, same pairs, for the same settings and generator."""
    config = LieTransformerConfig("SE(2)", 2, 3, 8, 1, 2, lift=LiftConfig("evenly_spaced", 2))
    transformer = LieTransformer(config).double()
    conv = lie_resnet("SE(2)", lift=LiftConfig("evenly_spaced", 2))
    cloud = random_cloud("SE(2)")
    one, other = (model.lift(cloud, generator=seeded()) for model in (transformer, conv))
    torch.testing.assert_close(one.elements, other.elements)
    torch.testing.assert_close(transformer.pairs(one).coordinates, conv.pairs(other).coordinates)
