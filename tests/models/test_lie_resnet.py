"""LieConv networks: their symmetries, their formulas, and a radius that adapts."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from lietransformer.clouds import PointCloud
from lietransformer.groups import get_group
from lietransformer.lift import LiftConfig
from lietransformer.models.lie_resnet import BottleneckBlock
from lietransformer.nn.norms import MaskedBatchNorm
from lietransformer.pairs import NeighbourhoodConfig
from lietransformer.testing import (
    assert_equivariant,
    assert_invariant,
    assert_padding_invariant,
    assert_permutation_invariant,
    relative_error,
)
from tests.cases import ALL_GROUPS, EXACT_GROUPS, PRECISIONS, pairwise, random_cloud, seeded
from tests.models.builders import lie_resnet


@pytest.mark.parametrize(
    ("name", "pair_features", "norm"),
    pairwise(ALL_GROUPS, ["log", "canonical"], ["none", "batch"]),
)
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
    (geometry,) = model.pairs(lifted)
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
    features = model.layers_on_group(lifted.features, lifted.mask, [geometry])
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
            geometry = model.pairs(lifted, generator=generator)[0]
            assert geometry.ball_sizes is not None
            count = lifted.mask.sum(dim=1, keepdim=True)
            shares.append((geometry.ball_sizes / count)[lifted.mask].mean().item())
    assert shares[0] > 0.9
    assert sum(shares[-50:]) / 50 == pytest.approx(0.4, abs=0.03)
    before = model.radius.clone()
    model.eval()
    lifted = model.lift(cloud, generator=generator)
    in_evaluation = model.pairs(lifted, generator=generator)[0]
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
    geometry = model.pairs(model.lift(replace(cloud, mask=mask)))[0]
    assert geometry.ball_sizes is not None
    assert torch.equal(geometry.ball_sizes[mask], mask.sum(dim=1, keepdim=True).expand(3, 8)[mask])


def test_an_empty_batch_leaves_the_radius() -> None:
    model = lie_resnet("T(2)", fill=0.5).train()
    cloud = random_cloud("T(2)")
    model(replace(cloud, mask=torch.zeros_like(cloud.mask)))
    assert model.radius == 2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"width": 6}, "a multiple of 4, got 6"),
        ({"fill": 0.0}, "fill must be above 0 and at most 1"),
        ({"fill": 0.5, "neighbourhood": NeighbourhoodConfig(radius=1.0)}, "either a fill"),
        ({"fill": 0.5, "neighbourhood": NeighbourhoodConfig(ball=3)}, "either a fill"),
        ({"layers": 0}, "layers must be at least 1"),
    ],
)
def test_impossible_settings_are_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        lie_resnet("T(2)", torch.float64, **changes)
