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

from lietransformer.data.batches import B, ConstellationBatch, MoleculeBatch, SpringBatch
from lietransformer.data.reader import DatasetError, DatasetFile
from lietransformer.data.splits import nested_ranges
from lietransformer.errors import require_choice
from lietransformer.experiments.constellations import dataset as constellations
from lietransformer.experiments.qm9 import dataset as qm9
from lietransformer.experiments.springs import dataset as springs

ConstellationSplit = Literal[
    "train", "validation", "test", "test_T2", "test_SE2", "test_T2_all", "test_SE2_all"
]
Split = Literal["train", "validation", "test"]
Span = Literal["chunk", "long_chunk", "trajectory"]


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
        _require_at_most(count, len(examples), "examples")
        self._rebuild = partial(type(self), examples, count)
        self._examples = examples
        self._count = count
        self.sizes = None if examples.sizes is None else examples.sizes[:count]

    def __len__(self) -> int:
        return self._count

    def take(self, numbers: np.ndarray) -> B:
        return self._examples.take(numbers)


class ConstellationExamples(Examples[ConstellationBatch]):
    """Constellations of one split or test set."""

    def __init__(
        self, file: DatasetFile, split: ConstellationSplit, dtype: torch.dtype = torch.float32
    ) -> None:
        super().__init__(file, constellations.KIND, split=split, dtype=dtype)
        require_choice("split", split, ConstellationSplit)
        self._positions = file.array(f"{split}/positions")
        self._mask = file.array(f"{split}/mask")
        self._instance = file.array(f"{split}/instance")
        self._counts = file.array(f"{split}/counts")
        self._dtype = dtype

    def __len__(self) -> int:
        return len(self._positions)

    def take(self, numbers: np.ndarray) -> ConstellationBatch:
        batch = ConstellationBatch(
            positions=_tensor(self._positions, numbers).to(self._dtype),
            mask=_tensor(self._mask, numbers),
            instance=_tensor(self._instance, numbers).long(),
            counts=_tensor(self._counts, numbers).long(),
        )
        return batch.trimmed()


class SpringExamples(Examples[SpringBatch]):
    """Pieces of trajectories of one split.

    The training examples are the first `n_train` systems of the file, so that training sets
    of different size are nested. The size of the validation set depends on it, too. Only
    the test systems have pieces longer than a chunk.

    Args:
        draw: which `n_train` systems to train on: 0 for the first ones, 1 for the next, and so on.
    """

    def __init__(
        self,
        file: DatasetFile,
        split: Split,
        *,
        n_train: int,
        draw: int = 0,
        span: Span = "chunk",
        dtype: torch.dtype = torch.float32,
    ) -> None:
        chosen = {"split": split, "n_train": n_train, "draw": draw, "span": span}
        super().__init__(file, springs.KIND, **chosen, dtype=dtype)
        require_choice("split", split, Split)
        require_choice("span", span, Span)
        if span != "chunk" and split != "test":
            raise DatasetError(
                f"span must be 'chunk' for the {split} systems, got {span!r}. Only test systems "
                "have longer pieces of trajectory."
            )
        config = springs.config_of(file)
        ranges = nested_ranges(
            config.systems, train=n_train, validation=config.validation, test=config.test
        )
        systems = ranges[split]
        if split == "train":
            _require_at_most((draw + 1) * n_train, ranges["validation"].start, "training systems")
            systems = range(draw * n_train, (draw + 1) * n_train)
        rows = slice(systems.start, systems.stop)
        if span == "chunk":
            self._states = file.array("chunks/states")[rows]
        elif span == "long_chunk":
            self._states = file.array("test/long_states")
        else:
            self._states = file.array("test/trajectories")
        self._masses = file.array("systems/masses")[rows]
        self._stiffness = file.array("systems/stiffness")[rows]
        self._dtype = dtype

    def __len__(self) -> int:
        return len(self._states)

    def take(self, numbers: np.ndarray) -> SpringBatch:
        return SpringBatch(
            states=_tensor(self._states, numbers).to(self._dtype),
            masses=_tensor(self._masses, numbers).to(self._dtype),
            stiffness=_tensor(self._stiffness, numbers).to(self._dtype),
        )


class MoleculeExamples(Examples[MoleculeBatch]):
    """Molecules of one split; of the training split, optionally the first `n_train` only."""

    sizes: np.ndarray

    def __init__(
        self,
        file: DatasetFile,
        split: Split,
        *,
        n_train: int | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__(file, qm9.KIND, split=split, n_train=n_train, dtype=dtype)
        require_choice("split", split, Split)
        chosen = np.array(file.array(f"split/{split}"))
        if split == "train" and n_train is not None:
            _require_at_most(n_train, len(chosen), "training molecules")
            chosen = chosen[:n_train]
        self._index = chosen
        self._rows = np.searchsorted(file.array("molecules/index"), chosen)
        self._offsets = np.array(file.array("molecules/offsets"))
        self._targets = file.array("molecules/targets")
        self._charges = file.array("atoms/charges")
        self._positions = file.array("atoms/positions")
        self._dtype = dtype
        self.sizes = np.diff(self._offsets)[self._rows]

    def __len__(self) -> int:
        return len(self._index)

    def take(self, numbers: np.ndarray) -> MoleculeBatch:
        sizes = self.sizes[numbers]
        slot = np.arange(sizes.max(initial=0))
        mask = slot < sizes[:, None]
        # Padding points at the molecule's first atom, whose values are then cleared.
        atom = self._offsets[self._rows[numbers], None] + np.where(mask, slot, 0)
        positions = np.where(mask[..., None], self._positions[atom], 0)
        charges = np.where(mask, self._charges[atom], 0)
        return MoleculeBatch(
            positions=torch.from_numpy(positions).to(self._dtype),
            charges=torch.from_numpy(charges).long(),
            mask=torch.from_numpy(mask),
            targets=_tensor(self._targets, self._rows[numbers]).to(self._dtype),
            index=_tensor(self._index, numbers).long(),
        )


def _require_at_most(count: int, available: int, what: str) -> None:
    if not 1 <= count <= available:
        raise DatasetError(
            f"the number of {what} must be from 1 to {available:,}, got {count:,}. Use fewer, or "
            "generate a dataset with more."
        )


def _tensor(array: np.ndarray, rows: np.ndarray) -> Tensor:
    """Some rows, copied out of the file."""
    return torch.from_numpy(np.asarray(array[rows]))
