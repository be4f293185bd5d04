"""A recorder of steps that needs no GPU."""

from collections.abc import Callable

from torch import Tensor


class RecordingOnPaper:
    """As a CUDA graph: recording computes nothing, and repeating takes what lies in its inputs."""

    def __init__(self) -> None:
        self.computed = self.recorded = self.repeated = 0

    def compute(self, function: Callable[[], Tensor]) -> Tensor:
        self.computed += 1
        return function()

    def record(self, function: Callable[[], Tensor]) -> Callable[[], Tensor]:
        self.recorded += 1

        def repeat() -> Tensor:
            self.repeated += 1
            return function()

        return repeat
