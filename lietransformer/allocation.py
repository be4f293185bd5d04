"""How the process gets its memory from the operating system."""

import ctypes
from contextlib import suppress

# Of glibc's mallopt, from malloc.h.
_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
_NEVER = 1 << 30  # bytes; larger than any tensor of a training step


def keep_freed_memory() -> None:
    """Let the C library keep the memory of tensors that were freed, for those that follow.

    By default it returns every large block to the operating system at once, which hands out
    new ones page by page and filled with zeros, which takes a good part of a training step.
    Only time changes, no number does. Where there is no glibc, nothing happens.
    """
    with suppress(OSError, AttributeError):
        library = ctypes.CDLL("libc.so.6")
        library.mallopt(_M_MMAP_THRESHOLD, _NEVER)
        library.mallopt(_M_TRIM_THRESHOLD, _NEVER)
