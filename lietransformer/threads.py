"""How many threads torch computes with."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute with a single thread inside the block.

    How work is cut among threads decides which elements a vectorised loop leaves to its scalar
    tail, and the two may round differently. With one thread the bytes of a generated dataset
    cannot depend on the number of cores.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
