"""Constellations: how many instances of each pattern (§4.1, App. I.1)."""

from collections.abc import Iterable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from lietransformer.clouds import PointCloud
from lietransformer.data.examples import Examples, FirstExamples
from lietransformer.data.reader import DatasetFile
from lietransformer.errors import UserError
from lietransformer.experiments.constellations.examples import (
    ConstellationBatch,
    ConstellationExamples,
)
from lietransformer.experiments.constellations.plan import TEST_SETS
from lietransformer.experiments.task import Splits, Task, total

_REPETITIONS = 2  # that the paper's models have outputs for


class ConstellationsTask(Task[ConstellationBatch]):
    """A classification of each pattern's count; cross-entropy, accuracy over all of them.

    Args:
        repetitions: how often a pattern can occur; the count is one of repetitions + 1 classes.
    """

    name = "constellations"
    selection = "accuracy"
    larger_is_better = True
    copies = TEST_SETS

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


def make_task(run: Any, file: DatasetFile) -> ConstellationsTask:  # noqa: ARG001
    """The task on a dataset that the paper's models have outputs for."""
    repetitions = int(file.config["repetitions"])
    if repetitions != _REPETITIONS:
        raise UserError(
            f"patterns occur up to {repetitions} times in {file.path}, but the paper's models "
            f"have outputs for up to {_REPETITIONS}. Generate the dataset with "
            f"repetitions={_REPETITIONS}."
        )
    return ConstellationsTask(repetitions)


def make_examples(run: Any, file: DatasetFile, dtype: torch.dtype) -> Splits:
    """All examples, or the first `n_train` for training."""

    def examples(split: Any) -> Examples[Any]:
        return ConstellationExamples(file, split, dtype)

    train = examples("train")
    if run.n_train is not None:
        train = FirstExamples(train, run.n_train)
    return train, examples("validation"), {name: examples(name) for name in TEST_SETS}
