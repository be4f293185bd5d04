"""Examples that lie on a GPU as a whole, so that a step takes its batch from there."""

from functools import partial

import numpy as np
import torch

from lietransformer.data.batches import B, rows, to_device
from lietransformer.data.examples import Examples
from lietransformer.device import send

# Of a GPU's free memory, what the examples of one set may take. The rest is for training.
_SHARE_OF_MEMORY = 0.1


class ResidentExamples(Examples[B]):
    """Other examples, all of them on a device from the start.

    A batch needs no more than the numbers of its examples to be sent there. How many points the
    largest of them has is known here, and need not be asked of the device.
    """

    def __init__(self, examples: Examples[B], device: torch.device) -> None:
        self._rebuild = partial(type(self), examples, device)
        everything = examples.take(np.arange(len(examples)))
        self.sizes = examples.sizes
        self._device = device
        # Real points come first, as in every batch.
        points = everything.points
        self._points = None if points is None else points.numpy()
        self._everything = to_device(everything, device)

    def __len__(self) -> int:
        return len(next(iter(vars(self._everything).values())))

    def take(self, numbers: np.ndarray) -> B:
        batch = rows(self._everything, send(torch.from_numpy(numbers), self._device))
        if self._points is None:
            return batch
        return batch.first_points(int(self._points[numbers].max(initial=0)))


def resident(examples: Examples[B], device: torch.device) -> Examples[B]:
    """The examples on the device if that is a GPU and has room, otherwise where they are."""
    if device.type != "cuda":
        return examples
    free, _ = torch.cuda.mem_get_info(device)
    return resident_within(examples, device, int(_SHARE_OF_MEMORY * free))


def resident_within(examples: Examples[B], device: torch.device, room: int) -> Examples[B]:
    """The examples on the device if they take at most `room` bytes."""
    largest = np.arange(1) if examples.sizes is None else np.array([examples.sizes.argmax()])
    one = vars(examples.take(largest)).values()
    size = len(examples) * sum(tensor.nbytes for tensor in one)
    return ResidentExamples(examples, device) if size <= room else examples
