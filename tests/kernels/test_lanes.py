"""swish and its derivatives in C, against double precision."""

import ctypes
import subprocess
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from lietransformer.kernels import build as library
from tests.requirements import needs_compiler

pytestmark = needs_compiler

# All sizes at which sigmoid is neither 0 nor 1 to rounding, and beyond: e^x overflows at 89.
INPUTS = torch.cat([torch.linspace(-120, 120, 200_000), torch.logspace(-30, 30, 1008)])

CODE = """
#include "lanes.h"

void all(long count, const vector *x, vector *value, vector *slope, vector *curvature)
{
    for (long k = 0; k < count; k++) {
        vector s = sigmoid(x[k]);
        value[k] = x[k] * s;
        slope[k] = swish_slope(x[k], s);
        curvature[k] = swish_curvature(x[k], s);
    }
}

void sums(long count, const vector *x, float *sum)
{
    for (long k = 0; k < count; k++) sum[k] = sum_of_lanes(x[k]);
}
"""
LANES = 16


@pytest.fixture(scope="module", params=["this processor", "any processor"])
def code(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    folder = tmp_path_factory.mktemp("lanes")
    (folder / "code.c").write_text(CODE)
    command = [*library._compiler_with_flags(), "-I", str(Path(library.__file__).parent / "csrc")]
    if request.param == "any processor":
        command = [flag for flag in command if not flag.startswith("-m")]
    subprocess.run([*command, folder / "code.c", "-o", folder / "code.so"], check=True)
    return ctypes.CDLL(str(folder / "code.so"))


def call(function: "ctypes._NamedFuncPointer", *tensors: Tensor) -> None:
    count = ctypes.c_long(tensors[0].numel() // LANES)
    function(count, *(ctypes.c_void_p(tensor.data_ptr()) for tensor in tensors))


def assert_rounded(found: Tensor, exact: Tensor, scale: Tensor) -> None:
    # Some units in the last place of the largest term that is added up.
    error = (found.double() - exact).abs() / scale.double()
    assert error.max() < 8 * torch.finfo(torch.float32).eps


def test_swish_and_its_derivatives(code: ctypes.CDLL) -> None:
    slope = torch.func.grad(lambda z: F.silu(z).sum())
    curvature = torch.func.grad(lambda z: slope(z).sum())
    found = [torch.empty_like(INPUTS) for _ in range(3)]
    call(code.all, INPUTS, *found)
    exact = INPUTS.double()
    assert_rounded(found[0], F.silu(exact), INPUTS.abs().clamp(min=1e-37))
    assert_rounded(found[1], slope(exact), (1 + INPUTS.abs()).sqrt())
    assert_rounded(found[2], curvature(exact), (1 + INPUTS.abs()).sqrt())


def test_sums(code: ctypes.CDLL) -> None:
    torch.manual_seed(0)
    numbers, found = torch.randn(100, LANES), torch.empty(100)
    call(code.sums, numbers, found)
    torch.testing.assert_close(found, numbers.sum(dim=1))
