"""How the process gets its memory from the operating system."""

import ctypes
import mmap
from contextlib import suppress

import psutil

# Of glibc's mallopt, from malloc.h.
_M_TRIM_THRESHOLD = -1
_M_MMAP_MAX = -4
_NEVER = -1
# Bytes by which the heap grows at once: more than training of the paper's models needs on a CPU.
_HEAP = 4 * 2**30


def keep_freed_memory() -> None:
    """Let the C library keep the memory of tensors that were freed, for those that follow.

    By default it returns every large block to the operating system at once, which hands out
    new ones page by page and filled with zeros, which takes a good part of a training step.
    Only time changes, no number does. Where there is no glibc, nothing happens.
    """
    with suppress(OSError, AttributeError):
        library = ctypes.CDLL("libc.so.6", use_errno=True)
        library.mallopt(_M_MMAP_MAX, 0)
        library.mallopt(_M_TRIM_THRESHOLD, _NEVER)
        _use_huge_pages(library)


def _use_huge_pages(library: ctypes.CDLL) -> None:
    """Ask for large pages for the heap, whose addresses a processor finds faster.

    They have to be asked for by address, so the heap grows by much at once. That takes no memory
    until it is used.
    """
    library.malloc.restype = ctypes.c_void_p
    library.malloc.argtypes = [ctypes.c_size_t]
    library.free.argtypes = [ctypes.c_void_p]
    library.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    size = min(_HEAP, psutil.virtual_memory().total // 2)
    block = library.malloc(size)
    if block is not None:
        first = -(-block // mmap.PAGESIZE) * mmap.PAGESIZE
        library.madvise(first, block + size - first, mmap.MADV_HUGEPAGE)
        library.free(block)
