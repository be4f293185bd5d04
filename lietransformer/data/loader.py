"""Batches in an order that follows from a seed."""

from collections.abc import Iterator
from typing import Generic

import numpy as np
import torch

from lietransformer.data.batches import B
from lietransformer.data.config import Augmentation
from lietransformer.data.examples import Examples
from lietransformer.errors import require_at_least_one, require_choice
from lietransformer.rng import stream


class Loader(Generic[B]):
    """Batches of examples, epoch by epoch.

    Batch k of epoch e is a function of the seeds, e and k alone: training that resumes in
    the middle of an epoch gets the batches it would have got.
    """

    def __init__(
        self,
        examples: Examples[B],
        batch_size: int,
        *,
        order_seed: int | None = None,
        augmentation: Augmentation = "none",
        augmentation_seed: int = 0,
        drop_incomplete: bool = False,
        size_pool: int = 1,
    ) -> None:
        """Describe the batches.

        Args:
            examples: where they come from.
            batch_size: examples in a batch; the last one may have fewer.
            order_seed: of the random order, a new one in each epoch. None for a fixed order:
                that of the file, or by size where sizes differ.
            augmentation: random transformation of each example, a new one in each epoch.
            augmentation_seed: of the transformations.
            drop_incomplete: leave out a last batch that is not full.
            size_pool: where sizes differ, examples are sorted by size within this many
                batches of a random order, and then cut into batches, whose order is random.
                1 leaves batches as they were drawn. More means less padding (for QM9 1, 8 and
                64 fill 72, 94 and 99 per cent of the slots) but batches of similar molecules,
                whose mean target wanders from step to step.
        """
        require_at_least_one("batch_size", batch_size)
        require_at_least_one("size_pool", size_pool)
        require_choice("augmentation", augmentation, Augmentation)
        self.examples = examples
        self.batch_size = batch_size
        self.order_seed = order_seed
        self.augmentation: Augmentation = augmentation
        self.augmentation_seed = augmentation_seed
        self.drop_incomplete = drop_incomplete
        self.size_pool = size_pool

    def __len__(self) -> int:
        """Number of batches in an epoch."""
        full, rest = divmod(len(self.examples), self.batch_size)
        return full + (rest > 0 and not self.drop_incomplete)

    def batches(self, epoch: int) -> list[np.ndarray]:
        """The numbers of the examples in each batch of an epoch."""
        count, sizes = len(self.examples), self.examples.sizes
        generator = None
        order = np.arange(count)
        if self.order_seed is not None:
            generator = stream(self.order_seed, "order", epoch)
            order = torch.randperm(count, generator=generator).numpy()
        if self.drop_incomplete:
            order = order[: count - count % self.batch_size]
        if sizes is None:
            return _cut(order, self.batch_size)
        if generator is None:
            return _cut(order[np.argsort(sizes[order], kind="stable")], self.batch_size)
        together = self.batch_size * self.size_pool
        batches = [
            batch
            for pool in _cut(order, together)
            for batch in _cut(pool[np.argsort(sizes[pool], kind="stable")], self.batch_size)
        ]
        return [batches[i] for i in torch.randperm(len(batches), generator=generator)]

    def epoch(self, epoch: int, *, first: int = 0) -> Iterator[B]:
        """The batches of an epoch, from number `first` on."""
        for number, numbers in enumerate(self.batches(epoch)):
            if number >= first:
                batch = self.examples.take(numbers)
                if self.augmentation != "none":
                    generator = stream(self.augmentation_seed, "augmentation", epoch, number)
                    batch = batch.augmented(self.augmentation, generator=generator)
                yield batch


def _cut(order: np.ndarray, length: int) -> list[np.ndarray]:
    return [order[start : start + length] for start in range(0, len(order), length)]
