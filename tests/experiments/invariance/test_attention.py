"""Attention without memory for all pairs is the layer's own."""

from collections.abc import Callable

import pytest
import torch

from lietransformer.clouds import LiftedCloud, PointCloud
from lietransformer.experiments.symmetry import attention
from lietransformer.experiments.symmetry.config import InvarianceConfig
from lietransformer.experiments.symmetry.measure import build, draw_example
from lietransformer.groups import get_group
from lietransformer.kernels import build as library
from lietransformer.models import LieTransformer
from lietransformer.testing import relative_error
from tests.requirements import needs_compiler

TOLERANCE = 1e-13


@pytest.fixture(params=[pytest.param("C", marks=needs_compiler), "PyTorch"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How the pairs are computed."""
    if request.param == "PyTorch":
        monkeypatch.setattr(library, "load", lambda *_: None)
    return str(request.param)


def lifted_example(model: LieTransformer, points: int = 17) -> LiftedCloud:
    positions = draw_example(InvarianceConfig(), run=3).positions[:, :points]
    features = torch.linspace(-1, 1, points, dtype=torch.float64)[None, :, None]
    generator = torch.Generator().manual_seed(5)
    return model.lift(PointCloud(positions, features), generator=generator)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("scheme", ["evenly_spaced", "random"])
@pytest.mark.parametrize("lift_samples", [1, 2, 3, 8, 13])
def test_equals_the_model(scheme: str, lift_samples: int) -> None:
    config = InvarianceConfig.model_validate({"scheme": scheme, "layers": 2})
    model = build(config, run=0, lift_samples=lift_samples)
    lifted = lifted_example(model)
    expected = model.forward_lifted(lifted)
    assert relative_error(attention.logits(model, lifted), expected) < TOLERANCE


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize(
    "sizes",
    [
        {"width": 12, "heads": 3, "kernel_width": 5},
        {"width": 5, "heads": 1, "kernel_width": 1},
        {"width": 40, "heads": 1, "kernel_width": 3},  # wider than C is written for
    ],
)
def test_equals_the_model_in_other_sizes(sizes: dict[str, int]) -> None:
    model = build(InvarianceConfig(**sizes), run=1, lift_samples=4)
    lifted = lifted_example(model, points=7)
    expected = model.forward_lifted(lifted)
    assert relative_error(attention.logits(model, lifted), expected) < TOLERANCE


@needs_compiler
def test_extreme_scores_stay_numbers() -> None:
    model = build(InvarianceConfig(), run=0, lift_samples=2)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "location" in name:
                parameter.mul_(200)
    lifted = lifted_example(model)
    expected = model.forward_lifted(lifted)
    assert expected.isfinite().all()
    assert relative_error(attention.logits(model, lifted), expected) < 1e-12


def test_queries_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "load", lambda *_: None)
    model = build(InvarianceConfig(), run=0, lift_samples=4)
    lifted = lifted_example(model)
    whole = attention.logits(model, lifted)
    monkeypatch.setattr(attention, "_PAIRS_AT_ONCE", 5 * 17 * 4)
    assert relative_error(attention.logits(model, lifted), whole) < TOLERANCE


@pytest.mark.usefixtures("way")
def test_invariant_where_the_lift_samples_turn_along() -> None:
    model = build(InvarianceConfig(layers=2), run=0, lift_samples=5)
    lifted = lifted_example(model)
    group = get_group("SE(2)")
    turn = group.sample(1, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    turned = LiftedCloud(
        elements=group.multiply(turn[:, None], lifted.elements),
        features=lifted.features,
        orbits=lifted.orbits,
        mask=lifted.mask,
    )
    error = relative_error(attention.logits(model, turned), attention.logits(model, lifted))
    assert error < TOLERANCE


def _with_padding(lifted: LiftedCloud) -> LiftedCloud:
    mask = lifted.mask.clone()
    mask[0, 0] = False
    return LiftedCloud(lifted.elements, lifted.features, lifted.orbits, mask)


@pytest.mark.parametrize(
    "change", [_with_padding, lambda lifted: lifted.to(dtype=torch.float32)], ids=["mask", "float"]
)
def test_refuses_what_it_does_not_compute(change: Callable[[LiftedCloud], LiftedCloud]) -> None:
    model = build(InvarianceConfig(), run=0, lift_samples=2)
    with pytest.raises(ValueError, match="call the model itself"):
        attention.logits(model, change(lifted_example(model)))
