"""What every group of this package satisfies; the first thing to run on a new one."""

import torch
from torch import Tensor

from lietransformer.groups import Group
from lietransformer.rng import normal

_TOLERANCE = {torch.float32: 2e-4, torch.float64: 1e-11}


def assert_group_laws(
    group: Group,
    *,
    shape: tuple[int, ...] = (4, 3),
    dtype: torch.dtype = torch.float64,
    seed: int = 0,
    scale: float = 1.0,
    tolerance: float | None = None,
) -> None:
    """Check the group, its action, its coordinates and its lift on random elements.

    Args:
        group: the group.
        shape: batch shape of the elements.
        dtype: precision in which to check.
        seed: of the random elements and points.
        scale: spread of non-compact directions and of the points.
        tolerance: largest error, relative where values exceed 1; left out, 2e-4 in float32
            and 1e-11 in float64.
    """
    generator = torch.Generator().manual_seed(seed)
    check = _Checker(group, _TOLERANCE[dtype] if tolerance is None else tolerance)
    a, b, c = (
        group.sample(*shape, generator=generator, dtype=dtype, scale=scale) for _ in range(3)
    )
    points = scale * normal(
        *shape, group.space_dimension, generator=generator, dtype=dtype, device="cpu"
    )
    _check_multiplication(group, check, a, b, c)
    _check_coordinates(group, check, a, b)
    _check_action(group, check, a, b, points)
    _check_distance(group, check, a, b, c)
    _check_lift(group, check, a, points, generator)


class _Checker:
    def __init__(self, group: Group, tolerance: float) -> None:
        self.group = group
        self.tolerance = tolerance

    def equal(self, law: str, actual: Tensor, expected: Tensor) -> None:
        """Both sides of a law agree, in shape and up to rounding in value."""
        if actual.shape != expected.shape:
            raise AssertionError(
                f"{self.group.name}: {law}: shape {tuple(actual.shape)}, "
                f"expected {tuple(expected.shape)}"
            )
        error = (actual - expected).abs() / expected.abs().clamp(min=1)
        worst = error.max().item() if error.numel() else 0.0
        if not worst <= self.tolerance:
            raise AssertionError(
                f"{self.group.name}: {law}: error {worst:.1e}, tolerance {self.tolerance:.1e}"
            )


def _check_multiplication(group: Group, check: _Checker, a: Tensor, b: Tensor, c: Tensor) -> None:
    multiply = group.multiply
    identity = group.identity(*a.shape[:-2], dtype=a.dtype, device=a.device)
    check.equal("a(bc) = (ab)c", multiply(a, multiply(b, c)), multiply(multiply(a, b), c))
    check.equal("ea = a", multiply(identity, a), a)
    check.equal("ae = a", multiply(a, identity), a)
    check.equal("a⁻¹a = e", multiply(group.inverse(a), a), identity)
    check.equal("aa⁻¹ = e", multiply(a, group.inverse(a)), identity)
    check.equal("relative(a, b) = a⁻¹b", group.relative(a, b), multiply(group.inverse(a), b))


def _check_coordinates(group: Group, check: _Checker, a: Tensor, b: Tensor) -> None:
    coordinates = group.log_coordinates(a)
    identity = group.identity(*a.shape[:-2], dtype=a.dtype, device=a.device)
    expected_shape = (*a.shape[:-2], group.algebra_dimension)
    if coordinates.shape != expected_shape:
        raise AssertionError(
            f"{group.name}: log_coordinates has shape {tuple(coordinates.shape)}, "
            f"algebra_dimension says {expected_shape}"
        )
    check.equal("exp(log a) = a", group.exp(coordinates), a)
    check.equal("log e = 0", group.log_coordinates(identity), torch.zeros_like(coordinates))
    for kind in ("log", "canonical"):
        pair = group.pair_coordinates(a, b, kind)
        of_relative = (group.log_coordinates if kind == "log" else group.canonical_coordinates)(
            group.relative(a, b)
        )
        check.equal(f"{kind} pair coordinates are those of a⁻¹b", pair, of_relative)
        expected = group.pair_dimension(kind) - 2 * group.orbit_dimension
        if pair.shape[-1] != expected:
            raise AssertionError(
                f"{group.name}: {pair.shape[-1]} {kind} coordinates, expected {expected}"
            )


def _check_action(group: Group, check: _Checker, a: Tensor, b: Tensor, points: Tensor) -> None:
    identity = group.identity(*a.shape[:-2], dtype=a.dtype, device=a.device)
    check.equal("e·x = x", group.act(identity, points), points)
    check.equal(
        "(ab)·x = a·(b·x)",
        group.act(group.multiply(a, b), points),
        group.act(a, group.act(b, points)),
    )


def _check_distance(group: Group, check: _Checker, a: Tensor, b: Tensor, c: Tensor) -> None:
    distance = group.distance(a, b)
    check.equal("d(a, a) = 0", group.distance(a, a), torch.zeros_like(distance))
    check.equal("d(a, b) = d(b, a)", group.distance(b, a), distance)
    check.equal(
        "d(ca, cb) = d(a, b)",
        group.distance(group.multiply(c, a), group.multiply(c, b)),
        distance,
    )


def _check_lift(
    group: Group, check: _Checker, u: Tensor, points: Tensor, generator: torch.Generator
) -> None:
    shape = points.shape[:-1]
    samples = group.sample_stabiliser(
        *shape, 2, generator=generator, dtype=points.dtype, device=points.device
    )
    lifts = group.lift(points, samples)
    check.equal("exp(log g) = g for a lift g", group.exp(group.log_coordinates(lifts)), lifts)
    section = group.section(points)
    moved_points = group.act(u, points)
    # Equivariance of the lift: s(ux)H = u·s(x)H, that is, k = s(ux)⁻¹·u·s(x) lies in H.
    k = group.relative(group.section(moved_points), group.multiply(u, section))
    if group.stabiliser_order is None:
        origin = group.act(group.inverse(section), points)
        check.equal("s(ux)⁻¹u s(x) fixes the origin", group.act(k, origin), origin)
        of_moved = group.act(group.inverse(group.section(moved_points)), moved_points)
        check.equal("x and ux have the same origin", of_moved, origin)
        repeated = origin[..., None, :].expand(*shape, 2, group.space_dimension)
        check.equal("the stabiliser fixes the origin", group.act(samples, repeated), repeated)
    else:
        elements = group.stabiliser_elements(dtype=points.dtype, device=points.device)
        distance = (k[..., None, :, :] - elements).abs().amax((-1, -2)).amin(-1)
        check.equal("s(ux)⁻¹u s(x) lies in H", distance, torch.zeros_like(distance))
    _check_orbits(group, check, u, lifts, points)


def _check_orbits(group: Group, check: _Checker, u: Tensor, lifts: Tensor, points: Tensor) -> None:
    repeated = points[..., None, :].expand(*lifts.shape[:-2], group.space_dimension)
    orbits = group.orbit_invariants(lifts, repeated)
    if orbits.shape[-1] != group.orbit_dimension:
        raise AssertionError(
            f"{group.name}: {orbits.shape[-1]} orbit invariants, "
            f"orbit_dimension says {group.orbit_dimension}"
        )
    moved = u[..., None, :, :].expand_as(lifts)
    check.equal(
        "orbit invariants are the same at (ug, ux)",
        group.orbit_invariants(group.multiply(moved, lifts), group.act(moved, repeated)),
        orbits,
    )
