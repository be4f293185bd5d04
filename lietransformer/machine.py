"""The machine, the versions and the commit that something is computed with."""

import os
import platform
import subprocess
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

if TYPE_CHECKING:
    import torch

_PACKAGES = ("lietransformer", "torch", "numpy", "h5py")


def describe_machine(device: "torch.device | None" = None) -> dict[str, Any]:
    """Hardware and versions. Imports torch only for a GPU.

    Args:
        device: that computes; the CPU by default.
    """
    return {
        "host": platform.node(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "gpu": _gpu(device) if device is not None and device.type == "cuda" else None,
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        **{name: version(name) for name in _PACKAGES},
    }


def git_commit() -> str | None:
    """The commit that this package's source is at, with a mark if it was changed since."""
    folder = Path(__file__).parent
    with suppress(OSError, subprocess.SubprocessError):
        answer = subprocess.run(
            ["git", "-C", str(folder), "describe", "--always", "--abbrev=40", "--dirty"],
            capture_output=True,
            text=True,
            check=True,
            timeout=10,
        )
        return answer.stdout.strip()
    return None  # installed from a package, not run from a clone


def peak_memory_gb() -> float:
    """The most memory that this process has used."""
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM"):
                return int(line.split()[1]) * 1024 / 1e9
    return psutil.Process().memory_info().rss / 1e9


def _gpu(device: "torch.device") -> str:
    import torch  # noqa: PLC0415

    return torch.cuda.get_device_name(device)


def _processor() -> str:
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()
