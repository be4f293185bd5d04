"""What a model draws at random in a training step, drawn before the step.

A step that is recorded once and repeated, or that is computed for several seeds at once, has to be
a function of tensors. The numbers are those that it would have drawn itself.
"""

import copy
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lietransformer.device import send
from lietransformer.experiments.task import Task
from lietransformer.rng import Listener, Request

Shapes = tuple[tuple[str, tuple[int, ...]], ...]


def shapes_of(tensors: dict[str, Tensor]) -> Shapes:
    """What tells apart batches that need different code."""
    return tuple((name, tuple(tensor.shape)) for name, tensor in tensors.items())


class DrawingAhead:
    """Draws for a batch what the loss would ask for, which follows from shapes alone."""

    def __init__(self, task: Task[Any], predictor: nn.Module) -> None:
        self._task = task
        # Without numbers: only to hear what it asks for.
        self._predictor = copy.deepcopy(predictor).to("meta")
        self._heard: dict[Shapes, list[Request]] = {}

    def requests(self, batch: Any) -> list[Request]:
        """What the loss of such a batch asks for, in the order of asking."""
        shapes = shapes_of(vars(batch))
        if shapes not in self._heard:
            listener = Listener()
            empty = {name: torch.empty_like(t, device="meta") for name, t in vars(batch).items()}
            self._task.loss(self._predictor, replace(batch, **empty), generator=listener)
            self._heard[shapes] = listener.requests
        return self._heard[shapes]

    def inputs(
        self, batch: Any, generator: torch.Generator, device: torch.device
    ) -> dict[str, Tensor]:
        """The numbers for this batch as named inputs of a step."""
        drawn = (request.draw(generator) for request in self.requests(batch))
        return {f"drawn {number}": send(tensor, device) for number, tensor in enumerate(drawn)}


def enlarged(tensor: Tensor, shape: tuple[int, ...]) -> Tensor:
    """The same with zeros behind it along each axis."""
    missing = [target - size for size, target in zip(tensor.shape, shape, strict=True)]
    pads = [pad for count in reversed(missing) for pad in (0, count)]
    return F.pad(tensor, pads) if any(missing) else tensor
