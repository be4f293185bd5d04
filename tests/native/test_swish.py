"""swish and its derivatives in C, against double precision."""

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from lietransformer.second_order.operations import Swish

# All sizes at which sigmoid is neither 0 nor 1 to rounding, and beyond: e^x overflows at 89.
INPUTS = torch.cat([torch.linspace(-120, 120, 200_001), torch.logspace(-30, 30, 1001)])


def derivatives(x: Tensor) -> tuple[Tensor, Tensor]:
    """swish' and swish'' in double precision."""
    slope = torch.func.grad(lambda z: F.silu(z).sum())
    curvature = torch.func.grad(lambda z: slope(z).sum())
    return slope(x.double()), curvature(x.double())


def assert_rounded(found: Tensor, exact: Tensor, scale: Tensor) -> None:
    # Some units in the last place of the largest term that is added up.
    error = (found.double() - exact).abs() / scale.double()
    assert error.max() < 8 * torch.finfo(torch.float32).eps


def test_value() -> None:
    assert_rounded(Swish().value(INPUTS), F.silu(INPUTS.double()), INPUTS.abs().clamp(min=1e-37))


@pytest.mark.parametrize("factor", [1.0, -3.0])
def test_slope(factor: float) -> None:
    swish = Swish()
    swish.value(INPUTS)
    slope, _ = derivatives(INPUTS)
    along = torch.full_like(INPUTS, factor)
    tangent = swish.tangent(along)
    assert tangent is not None
    assert_rounded(tangent, factor * slope, (1 + INPUTS.abs()).sqrt() * abs(factor))
    torch.testing.assert_close(tangent, swish.gradient(along), rtol=0, atol=0)


def test_second() -> None:
    swish = Swish()
    swish.value(INPUTS)
    slope, curvature = derivatives(INPUTS)
    tangent, gradient, b = (torch.full_like(INPUTS, factor) for factor in (2.0, -0.5, 3.0))
    swish.tangent(tangent)
    swish.gradient(gradient)
    assert_rounded(swish.second(b), 3 * slope - curvature, 4 * (1 + INPUTS.abs()).sqrt())
