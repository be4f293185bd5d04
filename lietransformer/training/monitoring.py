"""Load and memory while a run is trained."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import torch

from lietransformer.errors import UserError
from lietransformer.training.run_folder import append_line, drop_incomplete_line

_SECONDS_BETWEEN_SAMPLES = 10.0


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
