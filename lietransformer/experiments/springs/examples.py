"""Pieces of trajectories in batches, straight from the dataset's file."""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from lietransformer.data.augmentation import draw_transformations, transform
from lietransformer.data.batches import Batch
from lietransformer.data.config import Augmentation
from lietransformer.data.examples import Examples, Split, chosen_rows, require_at_most
from lietransformer.data.reader import DatasetError, DatasetFile
from lietransformer.data.splits import nested_ranges
from lietransformer.device import send
from lietransformer.errors import require_choice
from lietransformer.experiments.springs.dataset import KIND, config_of

Span = Literal["chunk", "long_chunk", "trajectory"]


@dataclass(frozen=True, eq=False)
class SpringBatch(Batch):
    """Pieces of trajectories.

    Attributes:
        states: q and p of each particle at successive times.
        masses: of the particles.
        stiffness: k of the particles.
    """

    states: Float[Tensor, "batch times 2 particles space"]
    masses: Float[Tensor, "batch particles"]
    stiffness: Float[Tensor, "batch particles"]

    def augmented(self, kind: Augmentation, *, generator: torch.Generator) -> "SpringBatch":
        """Each system moved by its own random transformation: positions by g, momenta by dg."""
        if kind == "none":
            return self
        states = self.states
        elements = draw_transformations(kind, len(states), generator=generator, dtype=states.dtype)
        elements = send(elements, states.device)
        position, momentum = states.unbind(dim=2)
        moved = transform(position.flatten(1, 2), elements, kind).view_as(position)
        differential = elements[:, None, : states.shape[-1], : states.shape[-1]]
        turned = momentum @ differential.mT
        return replace(self, states=torch.stack([moved, turned], dim=2))


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
        super().__init__(file, KIND, **chosen, dtype=dtype)
        require_choice("split", split, Split)
        require_choice("span", span, Span)
        if span != "chunk" and split != "test":
            raise DatasetError(
                f"span must be 'chunk' for the {split} systems, got {span!r}. Only test systems "
                "have longer pieces of trajectory."
            )
        config = config_of(file)
        ranges = nested_ranges(
            config.systems, train=n_train, validation=config.validation, test=config.test
        )
        systems = ranges[split]
        if split == "train":
            require_at_most((draw + 1) * n_train, ranges["validation"].start, "training systems")
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
            states=chosen_rows(self._states, numbers).to(self._dtype),
            masses=chosen_rows(self._masses, numbers).to(self._dtype),
            stiffness=chosen_rows(self._stiffness, numbers).to(self._dtype),
        )
