"""Constellations: how many instances of each pattern (§4.1, App. I.1)."""

from collections.abc import Iterable

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from lietransformer.clouds import PointCloud
from lietransformer.experiments.constellations.examples import ConstellationBatch
from lietransformer.experiments.task import Task, total


class ConstellationsTask(Task[ConstellationBatch]):
    """A classification of each pattern's count; cross-entropy, accuracy over all of them.

    Args:
        repetitions: how often a pattern can occur; the count is one of repetitions + 1 classes.
    """

    name = "constellations"
    selection = "accuracy"
    larger_is_better = True

    def __init__(self, repetitions: int = 2) -> None:
        self.classes = repetitions + 1

    def logits(
        self,
        predictor: nn.Module,
        batch: ConstellationBatch,
        *,
        generator: torch.Generator | None = None,
    ) -> Float[Tensor, "batch patterns classes"]:
        """Every point has the feature 1; the outputs are the classes of each pattern in turn."""
        cloud = PointCloud(batch.positions, mask=batch.mask)
        return predictor(cloud, generator=generator).unflatten(1, (-1, self.classes))

    def loss(
        self,
        predictor: nn.Module,
        batch: ConstellationBatch,
        *,
        generator: torch.Generator | None = None,
    ) -> Float[Tensor, ""]:
        logits = self.logits(predictor, batch, generator=generator)
        return F.cross_entropy(logits.flatten(0, 1), batch.counts.flatten())

    @torch.no_grad()
    def metrics(
        self,
        predictor: nn.Module,
        batches: Iterable[ConstellationBatch],
        *,
        generator: torch.Generator | None = None,
    ) -> dict[str, float]:
        """The loss, and the share of right counts among all patterns of all examples."""
        losses, right, count = [], [], 0
        for batch in batches:
            logits = self.logits(predictor, batch, generator=generator).to(batch.positions.dtype)
            classes = batch.counts.flatten()
            losses.append(F.cross_entropy(logits.flatten(0, 1), classes, reduction="sum"))
            right.append((logits.argmax(dim=-1) == batch.counts).sum())
            count += batch.counts.numel()
        return {"loss": total(losses) / count, "accuracy": total(right) / count}
