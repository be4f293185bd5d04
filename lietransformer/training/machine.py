"""On what and with what a run was computed."""

import os
import platform
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psutil
import torch

from lietransformer.errors import UserError
from lietransformer.training.run_folder import append_line, drop_incomplete_line

_PACKAGES = ("lietransformer", "torch", "numpy", "h5py")
_SECONDS_BETWEEN_SAMPLES = 10.0


def describe_machine(device: torch.device) -> dict[str, Any]:
    """Hardware and versions."""
    return {
        "host": platform.node(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "gpu": torch.cuda.get_device_name(device) if device.type == "cuda" else None,
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


@contextmanager
def monitoring(path: Path, device: torch.device) -> Iterator[None]:
    """Write load and memory to a file of JSON lines from time to time, in the background.

    The names are those that the tracking UI shows as system metrics.
    """
    drop_incomplete_line(path)
    over = threading.Event()
    process = psutil.Process()
    process.cpu_percent()  # the first call only starts the clock

    def watch() -> None:
        while not over.wait(_SECONDS_BETWEEN_SAMPLES):
            with suppress(UserError):  # a full disk is for the run to report
                append_line(path, _sample(process, device))

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        with suppress(UserError):
            append_line(path, _sample(process, device))


def _sample(process: psutil.Process, device: torch.device) -> dict[str, Any]:
    sample = {
        "time": time.time(),
        "system/cpu_utilization_percentage": process.cpu_percent(),
        "system/memory_usage_megabytes": process.memory_info().rss / 1e6,
        "system/memory_available_megabytes": psutil.virtual_memory().available / 1e6,
    }
    if device.type == "cuda":
        sample["system/gpu_memory_usage_megabytes"] = torch.cuda.memory_allocated(device) / 1e6
    return sample


def _processor() -> str:
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()
