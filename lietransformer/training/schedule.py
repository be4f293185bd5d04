"""When the learning rate changes, and when a run is evaluated."""

import math
from typing import Literal

ScheduleKind = Literal["constant", "cosine", "cosine_warmup", "exponential"]


def learning_rate_factor(
    kind: ScheduleKind, progress: float, warmup: float = 0.0, final: float = 1.0
) -> float:
    """The learning rate as a share of its highest value.

    Args:
        kind: "constant"; "cosine", ½(1 + cos πt), from 1 to 0; "cosine_warmup", which first
            rises in a straight line; "exponential", finalᵗ, which rises during the warm-up too.
        progress: t, the share of the run that is over.
        warmup: the share of the run in which it rises.
        final: what an exponential schedule ends with.
    """
    if kind == "constant":
        return 1.0
    if kind == "exponential":
        return min(1.0, progress / warmup if warmup else 1.0) * float(final**progress)
    if kind == "cosine_warmup" and progress < warmup:
        return progress / warmup
    if kind == "cosine_warmup":
        progress = (progress - warmup) / (1 - warmup)
    return 0.5 * (1 + math.cos(math.pi * progress))


def evaluation_steps(total: int, evaluations: int) -> list[int]:
    """After which steps to evaluate: evenly spaced, the last one at the end of the run."""
    count = min(total, evaluations)
    return [-(-total * number // count) for number in range(1, count + 1)]
