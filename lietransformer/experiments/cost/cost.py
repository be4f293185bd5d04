"""What a step costs: the shortest of some times, and the peak of its tensors."""

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

Step = Callable[[], None]

# A step that takes seconds is disturbed little, and is not repeated as often as a short one.
_ENOUGH_SECONDS = 2.0


def cost_of(step: Step, repetitions: int) -> dict[str, float]:
    """Seconds and megabytes of a step."""
    # Memory first: what is done once, such as compiling, takes time but no tensors.
    megabytes = peak_bytes(step) / 1e6
    return {"seconds": _shortest_time(step, repetitions), "megabytes": megabytes}


def _shortest_time(step: Step, repetitions: int) -> float:
    """Seconds, by the repetition that was disturbed least."""
    times: list[float] = []
    while len(times) < repetitions and sum(times) < _ENOUGH_SECONDS:
        started = time.perf_counter()
        step()
        times.append(time.perf_counter() - started)
    return min(times)


def peak_bytes(step: Step) -> int:
    """The most memory that tensors which the step makes take at a time."""
    activities = [torch.profiler.ProfilerActivity.CPU]
    with (
        _silent_stderr(),
        torch.profiler.profile(activities=activities, profile_memory=True) as profile,
    ):
        step()
    events = [event for event in profile.profiler.kineto_results.events() if _is_memory(event)]
    most = current = 0
    for event in sorted(events, key=lambda event: event.start_ns()):
        current += event.nbytes()
        most = max(most, current)
    return most


@contextmanager
def _silent_stderr() -> Iterator[None]:
    """Silence torch's profiler, which always reports its start and end there."""
    sys.stderr.flush()
    kept = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def _is_memory(event: Any) -> bool:
    return bool(event.name() == "[memory]")
