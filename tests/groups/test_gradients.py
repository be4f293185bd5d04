"""First and second derivatives where they are hardest: identity, half turns, coincidence."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

from lietransformer.groups import get_group
from lietransformer.groups.series import (
    arctangent_ratio,
    inverse_jacobian_ratio,
    sine_ratio,
    sine_remainder,
    versine_ratio,
)
from tests.cases import ALL_GROUPS, seeded
from tests.groups.test_laws import ROTATION_START, coordinates_within

CONTINUOUS = ["T(2)", "T(3)", "SO(2)", "SO(3)", "SE(2)", "SE(3)", "R+xSO(2)"]
PLACES = ["identity", "tiny", "random", "near π"]


def place(name: str, where: str) -> Tensor:
    coordinates = coordinates_within(name, 2.5, 3, seed=1)
    if where == "identity":
        return torch.zeros_like(coordinates)
    if where == "tiny":
        return 1e-9 * coordinates
    if where == "near π" and name in ROTATION_START:
        rotation = coordinates[..., ROTATION_START[name] :]
        rotation *= (math.pi - 1e-3) / rotation.norm(dim=-1, keepdim=True)
    return coordinates


def check_twice(function: Callable[..., Tensor], *inputs: Tensor) -> None:
    inputs = tuple(tensor.detach().clone().requires_grad_() for tensor in inputs)
    assert gradcheck(function, inputs, atol=1e-6)
    assert gradgradcheck(function, inputs, atol=1e-5)


@pytest.mark.parametrize("where", PLACES)
@pytest.mark.parametrize("name", CONTINUOUS)
def test_exp(name: str, where: str) -> None:
    check_twice(get_group(name).exp, place(name, where))


@pytest.mark.parametrize("where", PLACES)
@pytest.mark.parametrize("name", CONTINUOUS)
def test_log_of_matrices(name: str, where: str) -> None:
    """As a function of the matrix entries, which finite differences push off the group."""
    group = get_group(name)
    check_twice(group.log_coordinates, group.exp(place(name, where)))


@pytest.mark.slow
@pytest.mark.parametrize("where", PLACES)
@pytest.mark.parametrize("kind", ["log", "canonical"])
@pytest.mark.parametrize("name", CONTINUOUS)
def test_pairs(name: str, kind: str, where: str) -> None:
    """Of g⁻¹g' near the places of g⁻¹g', as functions of the coordinates of g and g'."""
    group = get_group(name)
    base = group.sample(3, generator=seeded(5), dtype=torch.float64)

    def function(a: Tensor, b: Tensor) -> Tensor:
        g = group.multiply(base, group.exp(a))
        g_prime = group.multiply(base, group.exp(b))
        return group.pair_coordinates(g, g_prime, kind)  # type: ignore[arg-type]

    offset = place(name, where)
    check_twice(function, torch.zeros_like(offset), offset)


@pytest.mark.parametrize("name", ALL_GROUPS)
def test_distance_has_a_finite_gradient_between_coincident_elements(name: str) -> None:
    group = get_group(name)
    g = group.sample(4, generator=seeded(0), dtype=torch.float64).clone().requires_grad_()
    distance = group.distance(g, g)
    assert distance.detach().abs().max() < 1e-14
    if not distance.requires_grad:
        return  # a constant
    (gradient,) = torch.autograd.grad(distance.sum(), g, create_graph=True)
    assert gradient.isfinite().all()
    if gradient.requires_grad:
        (second,) = torch.autograd.grad(gradient.square().sum(), g, allow_unused=True)
        assert second is None or second.isfinite().all()


@pytest.mark.parametrize("name", ALL_GROUPS)
def test_lift_and_orbits_have_finite_derivatives_everywhere(name: str) -> None:
    group = get_group(name)
    points = torch.zeros(3, group.space_dimension, dtype=torch.float64)
    points[1:] = torch.randn(2, group.space_dimension, generator=seeded(0), dtype=torch.float64)
    points.requires_grad_()
    g = group.section(points)
    value = g.square().sum() + g.sum() + group.orbit_invariants(g, points).sum()
    gradient = torch.zeros_like(points)
    if value.requires_grad:
        (gradient,) = torch.autograd.grad(value, points, create_graph=True)
    assert value.isfinite()
    assert gradient.isfinite().all()
    if gradient.requires_grad:
        (second,) = torch.autograd.grad(gradient.square().sum(), points, allow_unused=True)
        assert second is None or second.isfinite().all()


@pytest.mark.parametrize("name", ["SO(2)", "SO(3)", "R+xSO(2)"])
@pytest.mark.parametrize("size", [10.0**-power for power in range(15, 30)])
def test_points_next_to_the_origin_are_lifted_to_group_elements(name: str, size: float) -> None:
    """In float32, where squares of such numbers underflow."""
    group = get_group(name)
    points = size * torch.ones(1, group.space_dimension)
    points.requires_grad_()
    g = group.section(points)
    torch.testing.assert_close(
        group.exp(group.log_coordinates(g)), g, rtol=1e-4, atol=1e-6 * g.abs().max().item()
    )
    (gradient,) = torch.autograd.grad(g.sum(), points)
    assert gradient.isfinite().all()


@pytest.mark.parametrize("name", ["SO(2)", "SO(3)", "R+xSO(2)"])
def test_section_gradients(name: str) -> None:
    group = get_group(name)
    points = torch.randn(4, group.space_dimension, generator=seeded(3), dtype=torch.float64)
    check_twice(group.section, points)


Series = Callable[[Tensor], Tensor]
SERIES: dict[Series, Callable[[float], float]] = {
    sine_ratio: lambda t: math.sin(t) / t,
    versine_ratio: lambda t: (1 - math.cos(t)) / t**2,
    sine_remainder: lambda t: (t - math.sin(t)) / t**3,
    inverse_jacobian_ratio: lambda t: (1 - t / 2 / math.tan(t / 2)) / t**2,
}


@pytest.mark.parametrize("function", SERIES)
@pytest.mark.parametrize("angle", [0.3, 0.999999, 1.000001, 2.0, math.pi])
def test_series_meet_their_closed_forms(function: Series, angle: float) -> None:
    x = torch.tensor([angle**2], dtype=torch.float64)
    assert function(x).item() == pytest.approx(SERIES[function](angle), rel=1e-13)


# Leading Taylor coefficients in x = θ², from which value and derivatives near 0 follow.
TAYLOR: dict[Series, tuple[float, float, float, float]] = {
    sine_ratio: (1, -1 / 6, 1 / 120, -1 / 5040),
    versine_ratio: (1 / 2, -1 / 24, 1 / 720, -1 / 40320),
    sine_remainder: (1 / 6, -1 / 120, 1 / 5040, -1 / 362880),
    inverse_jacobian_ratio: (1 / 12, 1 / 720, 1 / 30240, 1 / 1209600),
}


@pytest.mark.parametrize("function", SERIES)
@pytest.mark.parametrize("angle", [0.0, 1e-8, 1e-6, 1e-4, 1e-3])
def test_series_are_accurate_near_zero_with_two_derivatives(function: Series, angle: float) -> None:
    x = torch.tensor([angle**2], dtype=torch.float64, requires_grad=True)
    value = function(x)
    (first,) = torch.autograd.grad(value.sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    a, b, c, d = TAYLOR[function]
    z = angle**2
    assert value.item() == pytest.approx(a + b * z + c * z**2, rel=1e-13)
    assert first.item() == pytest.approx(b + 2 * c * z + 3 * d * z**2, rel=1e-11)
    assert second.item() == pytest.approx(2 * c + 6 * d * z, rel=1e-9)


@pytest.mark.parametrize("sine", [0.0, 1e-8, 1e-6, 1e-4, 1e-3])
def test_arctangent_ratio_is_accurate_near_zero_with_two_derivatives(sine: float) -> None:
    """atan2(s, 1)/s = 1 − s²/3 + s⁴/5 − …, as a function of s²."""
    x = torch.tensor([sine**2], dtype=torch.float64, requires_grad=True)
    value = arctangent_ratio(x, torch.ones(1, dtype=torch.float64))
    (first,) = torch.autograd.grad(value.sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    z = sine**2
    assert value.item() == pytest.approx(1 - z / 3 + z**2 / 5, rel=1e-13)
    assert first.item() == pytest.approx(-1 / 3 + 2 * z / 5, rel=1e-11)
    assert second.item() == pytest.approx(2 / 5 - 6 * z / 7, rel=1e-9)


@pytest.mark.parametrize("function", SERIES)
def test_series_derivatives_are_continuous_at_the_switch(
    function: Series,
) -> None:
    x = torch.tensor([1 - 1e-12, 1 + 1e-12], dtype=torch.float64, requires_grad=True)
    value = function(x)
    for _ in range(3):
        assert value[0].item() == pytest.approx(value[1].item(), rel=1e-9)
        (value,) = torch.autograd.grad(value.sum(), x, create_graph=True)


@pytest.mark.parametrize("ratio", [0.0, 1e-9, 0.0999999, 0.1000001, 1.0, 100.0])
def test_arctangent_ratio(ratio: float) -> None:
    sine, cosine = math.sin(math.atan(ratio)), math.cos(math.atan(ratio))
    value = arctangent_ratio(
        torch.tensor([sine**2], dtype=torch.float64), torch.tensor([cosine], dtype=torch.float64)
    )
    expected = math.atan2(sine, cosine) / sine if sine else 1.0
    assert value.item() == pytest.approx(expected, rel=1e-14)
