"""Coordinates and distances against numbers and formulas written out here."""

import math

import pytest
import torch

from lietransformer.groups import get_group
from tests.cases import seeded


def test_canonical_coordinates_of_se2() -> None:
    """(R_g⁻¹(t' − t), (θ' − θ)/π) (App. F): from (1, 2) at 90° the point (1, 5) is ahead."""
    group = get_group("SE(2)")
    g = torch.tensor([[0.0, -1.0, 1.0], [1.0, 0.0, 2.0], [0.0, 0.0, 1.0]], dtype=torch.float64)
    g_prime = torch.eye(3, dtype=torch.float64)
    g_prime[:2, 2] = torch.tensor([1.0, 5.0])
    expected = torch.tensor([3.0, 0.0, -0.5], dtype=torch.float64)
    torch.testing.assert_close(group.pair_coordinates(g, g_prime, "canonical"), expected)
    # The log map bends the way: V⁻¹t with θ = −90° is (π/4)·(3, 3).
    bent = torch.tensor([3 * math.pi / 4, 3 * math.pi / 4, -math.pi / 2], dtype=torch.float64)
    torch.testing.assert_close(group.pair_coordinates(g, g_prime, "log"), bent)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_canonical_angles_are_in_half_turns(dtype: torch.dtype) -> None:
    """For Ĥ = C₂ the relative angle is 0 or 1, whichever of the two comes first."""
    group = get_group("SE(2)")
    turns = group.stabiliser_rotation(torch.tensor([0.0, math.pi], dtype=dtype))
    angles = group.pair_coordinates(turns[:, None], turns[None], "canonical")[..., 2]
    torch.testing.assert_close(angles, torch.tensor([[0.0, 1.0], [1.0, 0.0]], dtype=dtype))
    quarter = {
        "SO(2)": [0.5],
        "C4": [0.5],
        "D4": [0.5, 0.0],
        "R+xSO(2)": [0.0, 0.5],
        "T(2)xC4": [0.0, 0.0, 0.5],
    }
    for name, expected in quarter.items():
        own = get_group(name)
        padding = [0.0] * (own.algebra_dimension - 1)
        log = [math.pi / 2, *padding] if name in ("D4",) else [*padding, math.pi / 2]
        g = own.exp(torch.tensor(log, dtype=dtype))
        torch.testing.assert_close(
            own.canonical_coordinates(g), torch.tensor(expected, dtype=dtype)
        )


def test_canonical_coordinates_of_space() -> None:
    group = get_group("SE(3)")
    g = group.sample(4, generator=seeded(), dtype=torch.float64)
    coordinates = group.canonical_coordinates(g)
    assert torch.equal(coordinates[:, :3], g[:, :3, 3])
    assert torch.equal(coordinates[:, 3:], g[:, :3, :3].flatten(1))


def test_distance_weighs_a_rotation_by_a_fifth() -> None:
    """α‖rotation‖ + (1−α)‖translation‖ with α = 0.2."""
    group = get_group("SE(3)")
    coordinates = torch.tensor([3.0, 0.0, 4.0, 0.6, 0.8, 0.0], dtype=torch.float64)
    g = group.identity(dtype=torch.float64)
    distance = group.distance(g, group.exp(coordinates))
    assert distance.item() == pytest.approx(0.2 * 1.0 + 0.8 * 5.0)


def test_distance_with_one_kind_of_coordinate_is_its_norm() -> None:
    translations, rotations = get_group("T(2)"), get_group("SO(3)")
    e = translations.identity(dtype=torch.float64)
    moved = translations.exp(torch.tensor([3.0, 4.0], dtype=torch.float64))
    assert translations.distance(e, moved).item() == pytest.approx(5.0)
    e = rotations.identity(dtype=torch.float64)
    turned = rotations.exp(torch.tensor([0.0, 0.6, 0.8], dtype=torch.float64))
    assert rotations.distance(e, turned).item() == pytest.approx(1.0)
    apart = rotations.distance(e, turned, torch.tensor([2.0], dtype=torch.float64))
    assert apart.item() == pytest.approx(0.2 * 1.0 + 0.8 * 2.0)


@pytest.mark.parametrize("name", ["T(3)", "SE(2)", "SE(3)", "T(2)xC4"])
def test_pairs_far_from_the_origin_keep_their_accuracy(name: str) -> None:
    """10⁸ away, R⁻¹t' − R⁻¹t would be wrong by 10⁻⁸; R⁻¹(t' − t) is not."""
    group = get_group(name)
    here = group.sample(20, generator=seeded(), dtype=torch.float64)
    there = group.sample(20, generator=seeded(1), dtype=torch.float64)
    size = group.space_dimension
    away = torch.full((size,), 2.0**27, dtype=torch.float64)
    for element in (here, there):
        # Rounded to what is representable far away, so that moving it is exact.
        element[:, :size, size] = (element[:, :size, size] * 2**20).round() / 2**20
    near = group.pair_coordinates(here, there, "canonical")
    for element in (here, there):
        element[:, :size, size] += away
    far = group.pair_coordinates(here, there, "canonical")
    torch.testing.assert_close(far, near, rtol=0, atol=1e-14)


def test_dihedral_coordinates_tell_reflections_from_rotations() -> None:
    group = get_group("D4")
    coordinates = group.log_coordinates(group.elements(dtype=torch.float64))
    quarter = math.pi / 2
    angles = [0.0, quarter, 2 * quarter, -quarter]
    expected = [[angle, flag] for flag in (0.0, 1.0) for angle in angles]
    torch.testing.assert_close(coordinates, torch.tensor(expected, dtype=torch.float64))
