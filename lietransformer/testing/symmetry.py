"""Invariance and equivariance to groups, to permutations and to padding, for any callable."""

import inspect
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any, TypeVar

import torch
from torch import Tensor

from lietransformer.clouds import LiftedCloud, PointCloud
from lietransformer.groups import Group

Cloud = PointCloud | LiftedCloud
AnyCloud = TypeVar("AnyCloud", bound=Cloud)

_TOLERANCE = {torch.float32: 1e-4, torch.float64: 1e-10}


def relative_error(actual: Tensor, expected: Tensor) -> float:
    """max |actual − expected| over max |expected|, or plainly max |actual| if that is zero."""
    if actual.shape != expected.shape:
        raise AssertionError(
            f"the output changed its shape from {tuple(expected.shape)} to {tuple(actual.shape)}"
        )
    # Also outputs that are whole numbers or flags are compared as numbers.
    actual, expected = actual.detach().double(), expected.detach().double()
    if not (actual.isfinite().all() and expected.isfinite().all()):
        return float("inf")
    if expected.numel() == 0:
        return 0.0
    difference = float((actual - expected).abs().max())
    scale = float(expected.abs().max())
    return difference / scale if scale > 0 else difference


def transform(group: Group, u: Tensor, cloud: AnyCloud) -> AnyCloud:
    """u·cloud, for one element u per example, of shape (batch, m, m)."""
    if isinstance(cloud, PointCloud):
        return replace(cloud, positions=group.act(u[:, None], cloud.positions))
    return replace(cloud, elements=group.multiply(u[:, None], cloud.elements))


def invariance_error(
    module: Callable[..., Tensor],
    group: Group,
    cloud: Cloud,
    *,
    transformations: int = 4,
    scale: float = 1.0,
    seed: int = 0,
    fresh_samples: bool = False,
) -> float:
    """The largest relative error of f(ux) = f(x) over random u, one for every example.

    Args:
        fresh_samples: give a module that takes a generator a differently seeded one for each
            ux, so that its lift samples and neighbours are independent of those for x, as
            in Figure 3. The other arguments are those of `assert_invariant`.
    """
    return _symmetry_error(
        module,
        group,
        cloud,
        lambda _, output: output,
        transformations=transformations,
        scale=scale,
        seed=seed,
        fresh_samples=fresh_samples,
    )


def assert_invariant(
    module: Callable[..., Tensor],
    group: Group,
    cloud: Cloud,
    *,
    tolerance: float | None = None,
    transformations: int = 4,
    scale: float = 1.0,
    seed: int = 0,
) -> None:
    """f(ux) = f(x) for random u ∈ G.

    Args:
        module: maps a cloud to a tensor.
        group: the group whose elements are drawn, translations with `scale`.
        cloud: the input.
        tolerance: largest relative error; left out, 1e-4 in float32 and 1e-10 in float64.
        transformations: how many u are tried for every example.
        scale: spread of the non-compact part of u.
        seed: of the random elements and of the generators passed to the module.
    """
    error = invariance_error(
        module, group, cloud, transformations=transformations, scale=scale, seed=seed
    )
    _require(error, tolerance, cloud, f"not invariant to {group.name}")


def assert_equivariant(
    module: Callable[..., Any],
    group: Group,
    cloud: Cloud,
    *,
    transform_output: Callable[[Tensor, Any], Any] | None = None,
    tolerance: float | None = None,
    transformations: int = 4,
    scale: float = 1.0,
    seed: int = 0,
) -> None:
    """f(ux) = u·f(x) for random u ∈ G.

    Args:
        module: maps a cloud to a cloud or a tensor.
        group: as in `assert_invariant`; so are the arguments not named here.
        cloud: the input.
        transform_output: how u acts on the output. Left out, u acts on a cloud as it does
            on the input, and on a tensor of shape (batch, points, n) by its linear part, as
            on a field of vectors, for example forces.
    """
    act = transform_output or (lambda u, output: _act_on_output(group, u, output))
    error = _symmetry_error(
        module, group, cloud, act, transformations=transformations, scale=scale, seed=seed
    )
    _require(error, tolerance, cloud, f"not equivariant to {group.name}")


def assert_permutation_invariant(
    module: Callable[..., Tensor],
    cloud: Cloud,
    *,
    tolerance: float | None = None,
    seed: int = 0,
) -> None:
    """f of the same points in another order is the same.

    A module that draws random numbers for each point is so in distribution only: test it on
    a `LiftedCloud`, where nothing is left to draw.
    """
    order = _permutation(cloud, seed)
    expected = _call(module, cloud, seed)
    actual = _call(module, cloud.take(order), seed)
    _require(relative_error(actual, expected), tolerance, cloud, "not permutation invariant")


def assert_permutation_equivariant(
    module: Callable[..., Any],
    cloud: Cloud,
    *,
    tolerance: float | None = None,
    seed: int = 0,
) -> None:
    """Outputs per point (a cloud, or a tensor with the points in axis 1) follow their points."""
    order = _permutation(cloud, seed)
    output = _call(module, cloud, seed)
    expected = output[:, order] if isinstance(output, Tensor) else output.take(order)
    actual = _call(module, cloud.take(order), seed)
    _require(_output_error(actual, expected), tolerance, cloud, "not permutation equivariant")


def assert_padding_invariant(
    module: Callable[..., Any],
    cloud: Cloud,
    *,
    padding: int = 3,
    tolerance: float | None = None,
    seed: int = 0,
) -> None:
    """Masked points change nothing, whatever their values are.

    Outputs per point (a cloud, or a tensor with the points in axis 1) are compared at the
    original points. A module that draws random numbers for each point draws others for a
    padded cloud: test it on a `LiftedCloud`, where nothing is left to draw.
    """
    count = cloud.mask.shape[1]
    generator = torch.Generator().manual_seed(seed)
    padded: dict[str, Any] = {}
    for field in fields(cloud):
        tensor = getattr(cloud, field.name)
        shape = (tensor.shape[0], padding, *tensor.shape[2:])
        if field.name == "mask":
            extra = torch.zeros(shape, dtype=torch.bool)
        else:
            extra = 10 * torch.randn(shape, generator=generator, dtype=tensor.dtype)
        padded[field.name] = torch.cat([tensor, extra.to(tensor.device)], dim=1)
    expected = _call(module, cloud, seed)
    actual = _call(module, replace(cloud, **padded), seed)
    if not isinstance(actual, Tensor):
        actual = actual.take(torch.arange(count, device=cloud.mask.device))
    elif actual.ndim > 1 and actual.shape[1] == count + padding != expected.shape[1]:
        actual = actual[:, :count]
    _require(_output_error(actual, expected), tolerance, cloud, "not padding invariant")


def _symmetry_error(
    module: Callable[..., Any],
    group: Group,
    cloud: Cloud,
    act: Callable[[Tensor, Any], Any],
    *,
    transformations: int,
    scale: float,
    seed: int,
    fresh_samples: bool = False,
) -> float:
    generator = torch.Generator().manual_seed(seed)
    output = _call(module, cloud, seed)
    reference = _reference(cloud)
    worst = 0.0
    for number in range(1, transformations + 1):
        u = group.sample(
            len(reference),
            generator=generator,
            dtype=reference.dtype,
            device=reference.device,
            scale=scale,
        )
        actual = _call(module, transform(group, u, cloud), seed + number if fresh_samples else seed)
        worst = max(worst, _output_error(actual, act(u, output)))
    return worst


def _act_on_output(group: Group, u: Tensor, output: Any) -> Any:
    if not isinstance(output, Tensor):
        return transform(group, u, output)
    # The linear part of an affine map, from its action: (u·v) − (u·0).
    u = u[:, None]
    return group.act(u, output) - group.act(u, torch.zeros_like(output))


def _output_error(actual: Any, expected: Any) -> float:
    if isinstance(actual, Tensor):
        return relative_error(actual, expected)
    if not isinstance(actual, PointCloud | LiftedCloud):
        raise TypeError(
            "module must return a tensor, a PointCloud or a LiftedCloud, got "
            f"{type(actual).__name__}. Wrap it in a function that picks one output."
        )
    return max(
        relative_error(getattr(actual, field.name), getattr(expected, field.name))
        for field in fields(actual)
    )


def _reference(cloud: Cloud) -> Tensor:
    return cloud.positions if isinstance(cloud, PointCloud) else cloud.elements


def _permutation(cloud: Cloud, seed: int) -> Tensor:
    count = cloud.mask.shape[1]
    order = torch.randperm(count, generator=torch.Generator().manual_seed(seed))
    # The identity would show nothing.
    order = order.roll(1) if torch.equal(order, torch.arange(count)) else order
    return order.to(cloud.mask.device)


def _call(module: Callable[..., Any], cloud: Cloud, seed: int) -> Any:
    if cloud.mask.numel() == 0:
        raise ValueError(
            "the cloud must have examples and points, got a mask of shape "
            f"{tuple(cloud.mask.shape)}"
        )
    signature = module.forward if isinstance(module, torch.nn.Module) else module
    if "generator" in inspect.signature(signature).parameters:
        return module(cloud, generator=torch.Generator().manual_seed(seed))
    return module(cloud)


def _require(error: float, tolerance: float | None, cloud: Cloud, failure: str) -> None:
    if tolerance is None:
        tolerance = _TOLERANCE[_reference(cloud).dtype]
    if not error <= tolerance:
        raise AssertionError(f"{failure}: relative error {error:.2e}, tolerance {tolerance:.2e}")
