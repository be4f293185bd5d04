"""A step of training that is recorded once, and then repeated by a GPU on its own.

A step of a small model is thousands of short operations, and telling a GPU to do them takes
longer than doing them. A CUDA graph tells it once.
"""

import logging
from collections import Counter
from collections.abc import Callable
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from lietransformer.training.random_buffers import Shapes, shapes_of

log = logging.getLogger(__name__)

Inputs = dict[str, Tensor]
Step = Callable[[Inputs], Tensor]


# Libraries prepare themselves when they are first called, which cannot be recorded.
_STEPS_BEFORE_RECORDING = 3


@runtime_checkable
class Recorder(Protocol):
    """How a computation is recorded."""

    def compute(self, function: Callable[[], Tensor]) -> Tensor:
        """Compute it now, in the surroundings in which it will be recorded."""

    def record(self, function: Callable[[], Tensor]) -> Callable[[], Tensor]:
        """Record it, without computing anything; what is returned repeats it."""


class Repeated:
    """A step that is recorded when its inputs have had these shapes a few times.

    The first steps are ordinary ones, and recording computes nothing: all in all, every step is
    done once. A recording reads its inputs from where they were when it was made.
    """

    def __init__(self, step: Step, recorder: Recorder) -> None:
        self._step = step
        self._recorder = recorder
        self._has_failed = False
        self._seen: Counter[Shapes] = Counter()
        self._recordings: dict[Shapes, tuple[Inputs, Callable[[], Tensor]]] = {}

    def __call__(self, inputs: Inputs) -> Tensor:
        shapes = shapes_of(inputs)
        self._seen[shapes] += 1
        is_known = self._seen[shapes] > _STEPS_BEFORE_RECORDING
        if is_known and shapes not in self._recordings and not self._has_failed:
            self._record(shapes, inputs)
        if shapes not in self._recordings:
            return self._recorder.compute(lambda: self._step(inputs))
        places, repeat = self._recordings[shapes]
        for name, place in places.items():
            place.copy_(inputs[name])
        return repeat()

    def _record(self, shapes: Shapes, inputs: Inputs) -> None:
        places = {name: tensor.clone() for name, tensor in inputs.items()}
        try:
            repeat = self._recorder.record(lambda: self._step(places))
        except RuntimeError as error:  # also torch's own, if there is no more memory on the GPU
            log.warning("steps are not recorded, which costs time only: %s", error)
            self._has_failed = True
        else:
            self._recordings[shapes] = (places, repeat)


class CudaRecorder:
    """Records CUDA graphs, which share their memory: one is repeated at a time."""

    def __init__(self) -> None:
        self._pool = torch.cuda.graph_pool_handle()
        self._stream = torch.cuda.Stream()

    def compute(self, function: Callable[[], Tensor]) -> Tensor:
        """Compute it in the stream in which it will be recorded."""
        self._stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._stream):
            result = function()
        torch.cuda.current_stream().wait_stream(self._stream)
        return result

    def record(self, function: Callable[[], Tensor]) -> Callable[[], Tensor]:
        """A graph of it."""
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._pool, stream=self._stream):
            result = function()

        def repeat() -> Tensor:
            graph.replay()
            return result.clone()  # the next repetition, of whatever graph, writes over it

        return repeat
