"""Constellations: loss and accuracy by hand, whatever the batches."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from lietransformer.clouds import PointCloud
from lietransformer.data.loader import Loader
from lietransformer.data.reader import DatasetFile
from lietransformer.experiments.constellations.examples import (
    ConstellationBatch,
    ConstellationExamples,
)
from lietransformer.experiments.constellations.task import ConstellationsTask
from lietransformer.experiments.registry import get_preset


class Fixed(nn.Module):
    """Answers every example with the logits it was given, whatever the input."""

    def __init__(self, logits: Tensor) -> None:
        super().__init__()
        self.logits = logits

    def forward(self, cloud: PointCloud, *, generator: torch.Generator | None = None) -> Tensor:
        assert generator is None
        assert (cloud.features == 1).all()
        return self.logits.expand(len(cloud.mask), -1)


def batch_of(counts: list[list[int]]) -> ConstellationBatch:
    size = len(counts)
    return ConstellationBatch(
        torch.zeros(size, 5, 2),
        torch.ones(size, 5, dtype=torch.bool),
        torch.zeros(size, 5, dtype=torch.long),
        torch.tensor(counts),
    )


def test_by_hand() -> None:
    """Two patterns, three classes: probabilities (½, ¼, ¼) and (¼, ¼, ½)."""
    model = Fixed(torch.tensor([[0.5, 0.25, 0.25, 0.25, 0.25, 0.5]]).log())
    batch = batch_of([[0, 2], [1, 2], [0, 0]])
    task = ConstellationsTask()
    expected = (
        math.log(2) + math.log(2) + math.log(4) + math.log(2) + math.log(2) + math.log(4)
    ) / 6
    assert task.loss(model, batch).item() == pytest.approx(expected)
    metrics = task.metrics(model, [batch])
    assert metrics == {"loss": pytest.approx(expected), "accuracy": pytest.approx(4 / 6)}


def test_metrics_are_means_over_examples_not_over_batches() -> None:
    model = Fixed(torch.tensor([[0.5, 0.25, 0.25]]).log())
    everything = batch_of([[0], [0], [1], [0], [2]])
    pieces = [batch_of([[0], [0], [1], [0]]), batch_of([[2]])]
    task = ConstellationsTask()
    assert task.metrics(model, pieces) == pytest.approx(task.metrics(model, [everything]))


def test_translations_change_nothing_for_a_translation_invariant_model(
    constellations_file: Path,
) -> None:
    """The claim of Table 1, before any training: the same numbers on D_test and D_test^T2."""
    file = DatasetFile(constellations_file)
    model = get_preset("constellations", "LieTransformer-T2").build(seed=0)
    task = ConstellationsTask()
    plain, moved = (
        task.metrics(model, Loader(ConstellationExamples(file, split), 32).epoch(0))
        for split in ("test", "test_T2")
    )
    assert moved["accuracy"] == plain["accuracy"]
    assert moved["loss"] == pytest.approx(plain["loss"], rel=1e-5)
    first = ConstellationExamples(file, "test").take(np.arange(5))
    assert task.logits(model, first).shape == (5, 4, 3)
