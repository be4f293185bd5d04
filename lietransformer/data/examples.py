"""Random access to the examples of a dataset, straight from its file.

An object here reads only the rows it is asked for. It can be pickled, and used in forked
processes; `torch.utils.data.DataLoader` with a batch sampler gets whole batches from it.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import partial
from typing import Any, Generic, Literal

import numpy as np
import torch
from torch import Tensor

from lietransformer.data.batches import B
from lietransformer.data.reader import DatasetError, DatasetFile

Split = Literal["train", "validation", "test"]


class Examples(ABC, Generic[B]):
    """Some examples of a dataset, numbered from 0.

    Attributes:
        sizes: number of points of each example, if they differ; batches are then made of
            examples of similar size.
    """

    sizes: np.ndarray | None = None

    def __init__(self, file: DatasetFile, kind: str, **arguments: Any) -> None:
        if file.kind != kind:
            raise DatasetError(
                f"{file.path} is a dataset of the kind {file.kind}, not {kind}. Give a {kind} "
                "dataset."
            )
        self._rebuild: Any = partial(type(self), file, **arguments)

    def __reduce__(self) -> Any:
        # By name, because a pickled mapping would carry the whole array with it.
        return self._rebuild, ()

    @abstractmethod
    def __len__(self) -> int:
        """Number of examples."""

    @abstractmethod
    def take(self, numbers: np.ndarray) -> B:
        """These examples as one batch, in this order."""

    def __getitem__(self, number: int) -> B:
        """One example, as a batch of 1."""
        if not 0 <= number < len(self):
            raise IndexError(f"example {number} of {len(self)}")
        return self.take(np.array([number]))

    def __getitems__(self, numbers: Sequence[int]) -> B:
        """A whole batch at once, as `DataLoader` asks for it (with an identity collate_fn)."""
        return self.take(np.asarray(numbers))


class FirstExamples(Examples[B]):
    """The first `count` of other examples."""

    def __init__(self, examples: Examples[B], count: int) -> None:
        require_at_most(count, len(examples), "examples")
        self._rebuild = partial(type(self), examples, count)
        self._examples = examples
        self._count = count
        self.sizes = None if examples.sizes is None else examples.sizes[:count]

    def __len__(self) -> int:
        return self._count

    def take(self, numbers: np.ndarray) -> B:
        return self._examples.take(numbers)


def require_at_most(count: int, available: int, what: str) -> None:
    """Refuse more examples than there are."""
    if not 1 <= count <= available:
        raise DatasetError(
            f"the number of {what} must be from 1 to {available:,}, got {count:,}. Use fewer, or "
            "generate a dataset with more."
        )


def chosen_rows(array: np.ndarray, rows: np.ndarray) -> Tensor:
    """Some rows, copied out of the file."""
    return torch.from_numpy(np.asarray(array[rows]))
