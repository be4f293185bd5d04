"""Molecules in batches, straight from the dataset's file."""

from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from lietransformer.data.batches import Batch, moved_positions
from lietransformer.data.config import Augmentation
from lietransformer.data.examples import Examples, Split, chosen_rows, require_at_most
from lietransformer.data.reader import DatasetFile
from lietransformer.errors import require_choice
from lietransformer.experiments.qm9.dataset import KIND


@dataclass(frozen=True, eq=False)
class MoleculeBatch(Batch):
    """Molecules, padded to the largest.

    Attributes:
        positions: atoms, in Å; padding is 0.
        charges: nuclear charges; padding is 0.
        mask: which atoms are real.
        targets: the 12 properties in the table's units.
        index: numbers of the molecules in QM9.
    """

    positions: Float[Tensor, "batch n 3"]
    charges: Int[Tensor, "batch n"]
    mask: Bool[Tensor, "batch n"]
    targets: Float[Tensor, "batch properties"]
    index: Int[Tensor, "batch"]

    def augmented(self, kind: Augmentation, *, generator: torch.Generator) -> "MoleculeBatch":
        """Each molecule moved by its own random transformation."""
        return replace(self, positions=moved_positions(self.positions, self.mask, kind, generator))

    def first_points(self, count: int) -> "MoleculeBatch":
        """The same batch with the first `count` slots only."""
        return replace(
            self,
            positions=self.positions[:, :count],
            charges=self.charges[:, :count],
            mask=self.mask[:, :count],
        )

    @property
    def points(self) -> Int[Tensor, " batch"]:
        return self.mask.sum(dim=1)


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
        super().__init__(file, KIND, split=split, n_train=n_train, dtype=dtype)
        require_choice("split", split, Split)
        chosen = np.array(file.array(f"split/{split}"))
        if split == "train" and n_train is not None:
            require_at_most(n_train, len(chosen), "training molecules")
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
            targets=chosen_rows(self._targets, self._rows[numbers]).to(self._dtype),
            index=chosen_rows(self._index, numbers).long(),
        )
