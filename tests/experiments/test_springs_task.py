"""Springs: the paper's losses by hand, and what an exact model achieves."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lietransformer.data.loader import Loader
from lietransformer.data.reader import DatasetFile
from lietransformer.experiments.springs.examples import SpringBatch, SpringExamples
from lietransformer.experiments.springs.task import RolloutErrors, SpringsTask
from lietransformer.lift import LiftConfig
from lietransformer.models import LieTransformer, LieTransformerConfig
from tests.cases import seeded
from tests.dynamics.known_models import ExactPotential


def test_means_by_hand() -> None:
    """Two trajectories of two steps."""
    squared = torch.tensor([[1.0, 8.0], [3.0, 24.0]], dtype=torch.float64)
    drift = torch.tensor([[0.1, -0.2], [0.3, 0.4]], dtype=torch.float64)
    errors = RolloutErrors(squared, drift, drift.abs(), torch.zeros(2, 2, 6, 2))
    assert errors.per_step().tolist() == [2, 16]
    assert errors.per_trajectory().tolist() == pytest.approx([math.sqrt(8), math.sqrt(72)])
    metrics = errors.metrics()
    assert metrics["mse_geometric"] == pytest.approx(math.sqrt(2 * 16))
    assert metrics["mse_arithmetic"] == pytest.approx(9)
    assert metrics["mse_last"] == 16
    assert metrics["energy_drift"] == pytest.approx(0.2)  # the lower of two medians


def test_the_best_weights_have_the_lowest_arithmetic_error() -> None:
    """It prefers the first of these two, the geometric mean the second."""
    task = SpringsTask("potential", step=5 / 499)
    drift = torch.zeros(1, 2)
    even, uneven = (
        RolloutErrors(torch.tensor([squared]), drift, drift, torch.zeros(1, 2, 6, 2)).metrics()
        for squared in ([2.0, 2.0], [0.1, 5.0])
    )
    assert even["mse_geometric"] > uneven["mse_geometric"]
    assert even[task.selection] < uneven[task.selection]
    assert not task.larger_is_better


class StandStill(nn.Module):
    """V = 0: particles move on straight lines."""

    def forward(self, cloud: object, *, generator: torch.Generator | None = None) -> Tensor:
        assert generator is None
        return 0 * cloud.positions.sum(dim=(1, 2))[:, None]  # type: ignore[attr-defined]


@pytest.fixture
def file(springs_file: Path) -> DatasetFile:
    return DatasetFile(springs_file)


def test_the_true_potential_is_exact_to_rounding(file: DatasetFile) -> None:
    """Same rule and same step as the data: also over 100 states."""
    task = SpringsTask("potential", step=5 / 499)
    predictor = task.predictor(ExactPotential())
    for span in ("chunk", "long_chunk"):
        examples = SpringExamples(file, "test", n_train=5, span=span, dtype=torch.float64)
        metrics = task.metrics(predictor, Loader(examples, 30).epoch(0))
        assert metrics["mse_geometric"] < 1e-22
        assert metrics["momentum_drift"] < 1e-11
        assert abs(metrics["energy_drift"]) < 1e-3  # that of the rule itself


def test_errors_of_free_motion_by_hand(file: DatasetFile) -> None:
    task = SpringsTask("potential", step=5 / 499)
    predictor = task.predictor(StandStill())
    examples = SpringExamples(file, "test", n_train=5, dtype=torch.float64)
    batch = examples.take(np.arange(30))
    time = 5 / 499 * torch.arange(5, dtype=torch.float64)[None, :, None, None]
    start = batch.states[:, :1]
    velocity = start[:, :, 1] / batch.masses[:, None, :, None]
    predicted = torch.stack(
        [start[:, :, 0] + time * velocity, start[:, :, 1].expand(-1, 5, -1, -1)], dim=2
    )
    loss = task.loss(predictor, batch)
    torch.testing.assert_close(loss, F.mse_loss(predicted, batch.states))
    errors = task.errors(predictor, Loader(examples, 8).epoch(0))
    expected = (predicted - batch.states)[:, 1:].square().mean(dim=(2, 3, 4))
    torch.testing.assert_close(errors.squared, expected)
    # The training loss counts the given state, whose error is zero: 5 states, 4 of them wrong.
    assert loss.item() == pytest.approx(errors.metrics()["mse_arithmetic"] * 4 / 5)
    assert (errors.momentum < 1e-13).all()
    assert (errors.energy.abs() > 1e-4).any()


def test_a_test_can_be_ended_at_each_state(file: DatasetFile) -> None:
    """A hundred states of a large model take longer than a scheduler waits."""
    task = SpringsTask("potential", step=5 / 499)
    predictor = task.predictor(StandStill())
    examples = SpringExamples(file, "test", n_train=5, span="long_chunk")
    steps: list[int] = []
    task.evaluate(predictor, Loader(examples, 30).epoch(0), between_steps=lambda: steps.append(1))
    assert len(steps) == 100

    def stop() -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        task.evaluate(predictor, Loader(examples, 30).epoch(0), between_steps=stop)


def test_metrics_do_not_depend_on_batches(file: DatasetFile) -> None:
    task = SpringsTask("potential", step=5 / 499)
    predictor = task.predictor(StandStill())
    examples = SpringExamples(file, "test", n_train=5, dtype=torch.float64)
    one, other = (task.metrics(predictor, Loader(examples, size).epoch(0)) for size in (30, 7))
    assert one == pytest.approx(other)


def test_random_models_are_rolled_out_as_one_function() -> None:
    config = LieTransformerConfig("SE(2)", 2, 1, 8, 1, 2, lift=LiftConfig("random", 2))
    task = SpringsTask("potential", step=0.01)
    predictor = task.predictor(LieTransformer(config))
    batch = SpringBatch(
        torch.randn(2, 5, 2, 6, 2, generator=seeded()), torch.ones(2, 6), torch.ones(2, 6)
    )
    one, again = (task.loss(predictor, batch, generator=seeded(1)) for _ in range(2))
    torch.testing.assert_close(one, again, rtol=0, atol=0)


@pytest.mark.usefixtures("without_shape_checks")
def test_an_unknown_prediction() -> None:
    with pytest.raises(
        ValueError, match="predicts must be one of potential, hamiltonian, velocity"
    ):
        SpringsTask("force", 0.01)  # type: ignore[arg-type]
