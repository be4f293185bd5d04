"""The laws of every group, on elements that Hypothesis chooses, in both precisions."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from lietransformer.groups import get_group
from lietransformer.testing import assert_group_laws
from tests.cases import ALL_GROUPS, PRECISIONS, seeded

SHAPES = st.sampled_from([(), (1,), (3,), (3, 3), (2, 3, 1), (0,), (4, 0)])
SEEDS = st.integers(0, 2**32 - 1)

# Where exp is one-to-one: rotations by less than π, everything else without bound.
ROTATION_START = {"SO(2)": 0, "SO(3)": 0, "SE(2)": 2, "SE(3)": 3, "R+xSO(2)": 1}


def coordinates_within(name: str, radius: float, *shape: int, seed: int) -> Tensor:
    """Random coordinates of a continuous group, the rotation by at most `radius`."""
    group = get_group(name)
    generator = seeded(seed)
    coordinates = torch.randn(
        *shape, group.algebra_dimension, generator=generator, dtype=torch.float64
    )
    start = ROTATION_START.get(name, group.algebra_dimension)
    rotation = coordinates[..., start:]
    norm = rotation.norm(dim=-1, keepdim=True).clamp(min=1e-300)
    size = radius * torch.rand(*shape, 1, generator=generator, dtype=torch.float64)
    coordinates[..., start:] = rotation / norm * size
    return coordinates


@pytest.mark.parametrize("dtype", PRECISIONS)
@pytest.mark.parametrize("name", ALL_GROUPS)
@given(seed=SEEDS, shape=SHAPES, scale=st.sampled_from([0.01, 1.0, 3.0]))
def test_group_laws(
    name: str, dtype: torch.dtype, seed: int, shape: tuple[int, ...], scale: float
) -> None:
    # Far from the origin, rounding grows with the size of the numbers.
    tolerance = {torch.float32: 1e-3, torch.float64: 1e-11}[dtype]
    group = get_group(name)
    assert_group_laws(group, shape=shape, dtype=dtype, seed=seed, scale=scale, tolerance=tolerance)


@pytest.mark.parametrize("dtype", PRECISIONS)
@pytest.mark.parametrize("name", ["T(1)", "T(2)", "T(3)", *ROTATION_START])
@given(seed=SEEDS, radius=st.floats(0, 0.999 * math.pi))
def test_log_undoes_exp(name: str, dtype: torch.dtype, seed: int, radius: float) -> None:
    group = get_group(name)
    coordinates = coordinates_within(name, radius, 5, seed=seed).to(dtype)
    tolerance = {torch.float32: 2e-4, torch.float64: 1e-10}[dtype]
    result = group.log_coordinates(group.exp(coordinates))
    torch.testing.assert_close(result, coordinates, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", PRECISIONS)
@pytest.mark.parametrize("name", ["SO(2)", "SO(3)", "SE(2)", "SE(3)"])
@given(seed=SEEDS, gap=st.sampled_from([0.0, 1e-14, 1e-9, 1e-6, 1e-4, 1e-2]))
def test_exp_undoes_log_near_half_turns(
    name: str, dtype: torch.dtype, seed: int, gap: float
) -> None:
    group = get_group(name)
    coordinates = coordinates_within(name, math.pi, 3, seed=seed)
    rotation = coordinates[..., ROTATION_START[name] :]
    rotation *= (math.pi - gap) / rotation.norm(dim=-1, keepdim=True).clamp(min=1e-30)
    elements = group.exp(coordinates.to(dtype))
    logs = group.log_coordinates(elements)
    tolerance = {torch.float32: 1e-5, torch.float64: 1e-13}[dtype]
    torch.testing.assert_close(group.exp(logs), elements, rtol=tolerance, atol=tolerance)
    angles = logs[..., ROTATION_START[name] :].norm(dim=-1)
    assert (angles <= math.pi + 4e3 * torch.finfo(dtype).eps).all()
    assert (angles >= math.pi - gap - 1e3 * torch.finfo(dtype).eps).all()


@pytest.mark.parametrize("name", ALL_GROUPS)
def test_elements_broadcast_against_each_other(name: str) -> None:
    group = get_group(name)
    g = group.sample(4, 1, generator=seeded(0), dtype=torch.float64)
    h = group.sample(1, 3, generator=seeded(1), dtype=torch.float64)
    pairs = group.pair_coordinates(g, h)
    assert pairs.shape == (4, 3, group.algebra_dimension)
    torch.testing.assert_close(pairs[2, 1], group.pair_coordinates(g[2, 0], h[0, 1]))


@pytest.mark.parametrize("name", ["SE(3)", "SO(3)"])
def test_a_batch_of_three_is_not_mistaken_for_the_space_axis(name: str) -> None:
    group = get_group(name)
    coordinates = coordinates_within(name, 2.0, 3, seed=0)
    for batch in [(3,), (3, 3), (3, 3, 3)]:
        repeated = coordinates.expand(*batch, group.algebra_dimension)
        torch.testing.assert_close(
            group.exp(repeated), group.exp(coordinates).expand(*batch, -1, -1)
        )
        torch.testing.assert_close(group.log_coordinates(group.exp(repeated)), repeated)


@pytest.mark.parametrize("name", ["SE(2)", "T(2)xC2", "T(2)xC4", "C2", "D2", "T(2)xD2"])
@pytest.mark.parametrize("dtype", PRECISIONS)
def test_half_turns_have_one_angle_whatever_the_rounding(name: str, dtype: torch.dtype) -> None:
    group = get_group(name)
    angle_index = group.translation_dimension
    half = torch.tensor(math.pi, dtype=torch.float64)
    for error in torch.linspace(-20, 20, 41, dtype=torch.float64) * torch.finfo(dtype).eps:
        coordinates = torch.zeros(group.algebra_dimension, dtype=torch.float64)
        coordinates[angle_index] = half + error
        element = group.exp(coordinates).to(dtype)
        angle = group.log_coordinates(element)[angle_index]
        torch.testing.assert_close(angle, half.to(dtype), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "axis", [(0.6, -0.7, 0.1), (1.0, -1.0, 0.0), (0.0, 1.0, -1.0), (-1.0, 0.0, 0.0)]
)
def test_half_turns_of_space_have_one_axis_whatever_the_rounding(
    axis: tuple[float, float, float],
) -> None:
    group = get_group("SO(3)")
    direction = torch.tensor(axis, dtype=torch.float64)
    direction = direction / direction.norm()
    angles = math.pi + torch.linspace(-20, 20, 41, dtype=torch.float64)[:, None] * 2.2e-16
    elements = group.exp(angles * direction)
    elements = elements + 1e-15 * torch.randn(elements.shape, generator=seeded()).double()
    logs = group.log_coordinates(elements)
    torch.testing.assert_close(logs, logs[0].expand_as(logs), rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(logs[0].abs(), math.pi * direction.abs(), rtol=1e-12, atol=1e-12)
