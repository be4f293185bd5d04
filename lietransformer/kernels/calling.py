"""Call C functions with tensors and numbers."""

import ctypes
from typing import Any

import torch
from torch import Tensor

Argument = Tensor | int | float | None


def call(function: Any, *arguments: Argument) -> None:
    """Call it; a tensor is passed as its address, None as the null pointer.

    All integers of our C functions are `long`, all numbers in single precision.
    """
    function(*map(_converted, arguments))


def _converted(argument: Argument) -> Any:
    if argument is None:
        return ctypes.c_void_p(None)
    if isinstance(argument, int):
        return ctypes.c_long(argument)
    if isinstance(argument, float):
        return ctypes.c_float(argument)
    # C code would read and write past the end of anything else.
    assert argument.dtype in (torch.float32, torch.int64)
    assert argument.is_contiguous()
    return ctypes.c_void_p(argument.data_ptr())
