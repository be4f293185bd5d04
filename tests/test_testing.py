"""The public assertions pass on what has the property and fail on what has not."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from lietransformer.clouds import LiftedCloud, PointCloud
from lietransformer.groups import Group, get_group
from lietransformer.groups.so2 import SO2
from lietransformer.groups.so3 import SO3
from lietransformer.lift import LiftConfig, lift
from lietransformer.testing import (
    assert_equivariant,
    assert_group_laws,
    assert_invariant,
    assert_padding_invariant,
    assert_permutation_equivariant,
    assert_permutation_invariant,
    invariance_error,
    relative_error,
)
from tests.cases import random_cloud, seeded

CLOUD = random_cloud("T(2)", masked=False)
TRANSLATIONS, ROTATIONS = get_group("T(2)"), get_group("SO(2)")


def distances(cloud: PointCloud) -> Tensor:
    pairs = (cloud.mask[:, :, None] & cloud.mask[:, None, :]).double()
    return (torch.cdist(cloud.positions, cloud.positions) * pairs).sum((1, 2))[:, None]


def spread(cloud: PointCloud) -> Tensor:
    """Vectors from the mean: they turn with the points and ignore translations."""
    return cloud.positions - cloud.positions.mean(1, keepdim=True)


def centred(cloud: PointCloud) -> PointCloud:
    return replace(cloud, positions=spread(cloud))


class Distances(nn.Module):
    def forward(self, cloud: PointCloud) -> Tensor:
        return distances(cloud)


def test_invariance() -> None:
    for module in (distances, Distances()):
        assert_invariant(module, TRANSLATIONS, CLOUD)
        assert_invariant(module, ROTATIONS, CLOUD)
    assert_invariant(spread, TRANSLATIONS, CLOUD)
    with pytest.raises(AssertionError, match=r"not invariant to SO\(2\): relative error \d"):
        assert_invariant(spread, ROTATIONS, CLOUD)
    with pytest.raises(AssertionError, match=r"not invariant to T\(2\)"):
        assert_invariant(lambda cloud: cloud.positions.square().sum((1, 2)), TRANSLATIONS, CLOUD)


def test_an_output_that_is_not_a_number_is_not_invariant() -> None:
    with pytest.raises(AssertionError, match="relative error inf"):
        assert_invariant(lambda cloud: distances(cloud) * torch.nan, ROTATIONS, CLOUD)


@pytest.mark.parametrize(("dtype", "error"), [(torch.float64, 1e-9), (torch.float32, 1e-3)])
def test_the_tolerance_follows_the_precision(dtype: torch.dtype, error: float) -> None:
    def almost(cloud: PointCloud) -> Tensor:
        return 1 + error * torch.tanh(cloud.positions[:, 0])

    cloud = CLOUD.to(dtype=dtype)
    with pytest.raises(AssertionError, match="not invariant"):
        assert_invariant(almost, TRANSLATIONS, cloud)
    assert_invariant(almost, TRANSLATIONS, cloud, tolerance=3 * error)


def test_the_error_is_measured_relative_to_the_output() -> None:
    assert relative_error(torch.tensor([11.0, 0.0]), torch.tensor([10.0, 0.0])) == pytest.approx(
        0.1
    )
    assert relative_error(torch.tensor([0.5]), torch.tensor([0.0])) == 0.5
    assert invariance_error(lambda cloud: 1e6 * distances(cloud), ROTATIONS, CLOUD) < 1e-12


def test_equivariance_of_vectors_and_clouds() -> None:
    assert_equivariant(spread, ROTATIONS, CLOUD)
    assert_equivariant(lambda cloud: cloud, get_group("SE(2)"), CLOUD)
    # Vectors turn with a motion and do not care where it moves the points.
    assert_equivariant(spread, get_group("SE(2)"), CLOUD)
    with pytest.raises(AssertionError, match=r"not equivariant to SE\(2\)"):
        assert_equivariant(centred, get_group("SE(2)"), CLOUD)
    with pytest.raises(AssertionError, match="not equivariant"):
        assert_equivariant(lambda cloud: cloud.positions.abs(), ROTATIONS, CLOUD)


def test_the_action_on_the_output_can_be_given() -> None:
    def twice_the_angle(u: Tensor, output: Tensor) -> Tensor:
        return ROTATIONS.act((u @ u)[:, None], output)

    def complex_squares(cloud: PointCloud) -> Tensor:
        x, y = cloud.positions.unbind(-1)
        return torch.stack([x * x - y * y, 2 * x * y], dim=-1)

    assert_equivariant(complex_squares, ROTATIONS, CLOUD, transform_output=twice_the_angle)
    with pytest.raises(AssertionError, match="not equivariant"):
        assert_equivariant(complex_squares, ROTATIONS, CLOUD)


def test_lifted_clouds_are_moved_by_multiplication() -> None:
    group = get_group("SE(2)")
    lifted = lift(CLOUD, group, LiftConfig("random", 2), generator=seeded())

    def by_relative_position(cloud: LiftedCloud) -> Tensor:
        return group.pair_coordinates(cloud.elements[:, :1], cloud.elements)

    def by_absolute_position(cloud: LiftedCloud) -> Tensor:
        return group.log_coordinates(cloud.elements)

    assert_invariant(by_relative_position, group, lifted)
    with pytest.raises(AssertionError, match="not invariant"):
        assert_invariant(by_absolute_position, group, lifted)


def test_permutations() -> None:
    assert_permutation_invariant(distances, CLOUD)
    assert_permutation_equivariant(spread, CLOUD)
    assert_permutation_equivariant(centred, CLOUD)
    with pytest.raises(AssertionError, match="not permutation invariant"):
        assert_permutation_invariant(lambda cloud: cloud.positions[:, 0], CLOUD)
    with pytest.raises(AssertionError, match="not permutation equivariant"):
        assert_permutation_equivariant(lambda cloud: cloud.positions.cumsum(1), CLOUD)


@pytest.mark.parametrize("seed", range(5))
def test_a_permutation_is_never_the_identity(seed: int) -> None:
    two = random_cloud("T(2)", points=2, masked=False)
    with pytest.raises(AssertionError, match="not permutation invariant"):
        assert_permutation_invariant(lambda cloud: cloud.positions[:, 0], two, seed=seed)


def test_outputs_that_are_not_real_numbers() -> None:
    assert_invariant(lambda cloud: distances(cloud) > 1, ROTATIONS, CLOUD)
    with pytest.raises(TypeError, match=r"return a tensor.*got tuple"):
        assert_invariant(lambda cloud: (distances(cloud),), ROTATIONS, CLOUD)  # type: ignore[arg-type, return-value]


def test_nothing_is_shown_on_an_empty_cloud() -> None:
    with pytest.raises(ValueError, match="the cloud must have examples and points"):
        assert_invariant(distances, ROTATIONS, random_cloud("T(2)", points=0))


def test_padding() -> None:
    assert_padding_invariant(distances, CLOUD)
    assert_padding_invariant(lambda cloud: cloud.positions.exp(), CLOUD)
    with pytest.raises(AssertionError, match="not padding invariant"):
        assert_padding_invariant(lambda cloud: cloud.positions.sum((1, 2)), CLOUD)


def test_a_generator_is_passed_to_what_takes_one_always_the_same() -> None:
    def noisy(cloud: PointCloud, *, generator: torch.Generator) -> Tensor:
        return distances(cloud) + torch.randn(1, generator=generator, dtype=torch.float64)

    assert_invariant(noisy, ROTATIONS, CLOUD)
    assert invariance_error(noisy, ROTATIONS, CLOUD, fresh_samples=True) > 1e-3


class WrongInverse(SO2):
    def inverse(self, g: Tensor) -> Tensor:
        return g


class WrongLog(SO2):
    def log_coordinates(self, g: Tensor) -> Tensor:
        return super().log_coordinates(g) / 2


class WrongLift(SO2):
    def section(self, points: Tensor) -> Tensor:
        return super().section(points).mT


class LiftThatIsNotEquivariant(SO2):
    def section(self, points: Tensor) -> Tensor:
        angle = torch.atan2(points[..., 1], points[..., 0])
        return self.exp(angle.square()[..., None])


class WrongOrbit(SO2):
    def orbit_invariants(self, g: Tensor, points: Tensor) -> Tensor:
        return points[..., :1] + 0 * g[..., :1, 0]


class WrongStabiliser(SO3):
    def stabiliser_rotation(self, angles: Tensor) -> Tensor:
        zero = torch.zeros_like(angles)
        return self.exp(torch.stack([angles, zero, zero], dim=-1))


class WrongDimension(SO2):
    algebra_dimension = 2


class WrongDistance(SO2):
    def distance(
        self, g: Tensor, g_prime: Tensor, orbit_difference: Tensor | None = None
    ) -> Tensor:
        return super().distance(g, g_prime, orbit_difference) * g_prime[..., 0, 0]


class NotAssociative(SO2):
    def multiply(self, g: Tensor, h: Tensor) -> Tensor:
        commutator = g[..., :1, :1] - h[..., :1, :1]
        return g @ h * (1 + 0.1 * commutator * (g - g.mT)[..., :1, 1:] * (h - h.mT)[..., :1, 1:])


class WrongAction(SO2):
    def act(self, g: Tensor, points: Tensor) -> Tensor:
        return super().act(g, points) + 1


@pytest.mark.parametrize(
    ("group", "law"),
    [
        (WrongInverse(), "a⁻¹a = e"),
        (WrongLog(), "exp"),
        (WrongLift(), r"s\(ux\)⁻¹u s\(x\) lies in H"),
        (LiftThatIsNotEquivariant(), r"s\(ux\)⁻¹u s\(x\) lies in H"),
        (WrongStabiliser(), "the stabiliser fixes the origin"),
        (WrongOrbit(), "orbit invariants"),
        (WrongDimension(), "algebra_dimension says"),
        (WrongAction(), "e·x = x"),
        (WrongDistance(), r"d\(a, b\) = d\(b, a\)"),
        (NotAssociative(), r"a\(bc\) = \(ab\)c"),
    ],
)
def test_a_wrong_group_is_told_which_law_it_breaks(group: Group, law: str) -> None:
    with pytest.raises(AssertionError, match=law):
        assert_group_laws(group)
