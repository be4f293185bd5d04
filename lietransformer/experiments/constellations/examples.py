"""Constellations in batches, straight from the dataset's file."""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from lietransformer.data.batches import Batch, moved_positions
from lietransformer.data.config import Augmentation
from lietransformer.data.examples import Examples, chosen_rows
from lietransformer.data.reader import DatasetFile
from lietransformer.errors import require_choice
from lietransformer.experiments.constellations.dataset import KIND

ConstellationSplit = Literal[
    "train", "validation", "test", "test_T2", "test_SE2", "test_T2_all", "test_SE2_all"
]


@dataclass(frozen=True, eq=False)
class ConstellationBatch(Batch):
    """Constellations to count patterns in.

    Attributes:
        positions: vertices; those that are absent are 0.
        mask: which vertices are there.
        instance: which instance a vertex belongs to, −1 for none.
        counts: the target, how many instances of each pattern there are.
    """

    positions: Float[Tensor, "batch n 2"]
    mask: Bool[Tensor, "batch n"]
    instance: Int[Tensor, "batch n"]
    counts: Int[Tensor, "batch patterns"]

    def augmented(self, kind: Augmentation, *, generator: torch.Generator) -> "ConstellationBatch":
        """Each example moved by its own random transformation."""
        return replace(self, positions=moved_positions(self.positions, self.mask, kind, generator))

    def trimmed(self) -> "ConstellationBatch":
        """The same without slots that no example needs.

        Half of all vertices are absent. The largest of 32 examples has 29 of 34 on average, so the
        number of pairs falls by a quarter.
        """
        first = self.mask.int().argsort(dim=1, descending=True, stable=True)
        first = first[:, : int(self.mask.sum(dim=1).max())]
        return replace(
            self,
            positions=self.positions.take_along_dim(first[..., None], dim=1),
            mask=self.mask.take_along_dim(first, dim=1),
            instance=self.instance.take_along_dim(first, dim=1),
        )

    def first_points(self, count: int) -> "ConstellationBatch":
        """The same batch with the first `count` slots only."""
        return replace(
            self,
            positions=self.positions[:, :count],
            mask=self.mask[:, :count],
            instance=self.instance[:, :count],
        )

    @property
    def points(self) -> Int[Tensor, " batch"]:
        return self.mask.sum(dim=1)


class ConstellationExamples(Examples[ConstellationBatch]):
    """Constellations of one split or test set."""

    def __init__(
        self, file: DatasetFile, split: ConstellationSplit, dtype: torch.dtype = torch.float32
    ) -> None:
        super().__init__(file, KIND, split=split, dtype=dtype)
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
            positions=chosen_rows(self._positions, numbers).to(self._dtype),
            mask=chosen_rows(self._mask, numbers),
            instance=chosen_rows(self._instance, numbers).long(),
            counts=chosen_rows(self._counts, numbers).long(),
        )
        return batch.trimmed()
