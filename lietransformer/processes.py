"""Processes: how many cores they may use, and children that do not outlive their parent."""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1  # <linux/prctl.h>
_LIBC = ctypes.CDLL(None) if sys.platform.startswith("linux") else None


def available_cores() -> int:
    """The cores this process may use: fewer than the machine's inside a cluster job."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def end_with(parent: int) -> None:
    """Get SIGTERM when the parent dies, even by SIGKILL; on Linux only. For `preexec_fn`.

    Args:
        parent: process ID of the parent; if it is already dead, the process ends at once.
    """
    if _LIBC is None:
        return
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        os._exit(128 + signal.SIGTERM)
