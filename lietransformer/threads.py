"""How many threads torch computes with."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute with a single thread inside the block.

    Where the work is cut decides which elements the vectorised loops leave to their scalar
    tail, and the two can round differently: with several threads the last bits of a generated
    dataset would depend on the number of cores.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
