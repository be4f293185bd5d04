"""Learning rates and evaluations over a run."""

import math
from itertools import pairwise

import pytest
import torch

from lietransformer.experiments.springs.plan import paper_epochs
from lietransformer.training.schedule import evaluation_steps, learning_rate_factor


def test_constant() -> None:
    assert {learning_rate_factor("constant", t) for t in (0.0, 0.3, 1.0)} == {1.0}


def test_cosine_is_that_of_torch() -> None:
    optimiser = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, T_max=50)
    for epoch in range(50):
        expected = optimiser.param_groups[0]["lr"]
        assert learning_rate_factor("cosine", epoch / 50) == pytest.approx(expected)
        optimiser.step()
        schedule.step()


def test_warm_up_rises_in_a_straight_line_and_then_follows_the_cosine() -> None:
    assert learning_rate_factor("cosine_warmup", 0.0, 0.1) == 0
    assert learning_rate_factor("cosine_warmup", 0.025, 0.1) == pytest.approx(0.25)
    assert learning_rate_factor("cosine_warmup", 0.1, 0.1) == pytest.approx(1)
    halfway = 0.1 + 0.9 / 2
    assert learning_rate_factor("cosine_warmup", halfway, 0.1) == pytest.approx(0.5)
    assert learning_rate_factor("cosine_warmup", 1.0, 0.1) == pytest.approx(0)
    assert learning_rate_factor("cosine_warmup", 0.5, 0.0) == learning_rate_factor("cosine", 0.5)


def test_exponential_decays_from_the_start_and_rises_during_the_warm_up() -> None:
    for t in (0.0, 0.25, 1.0):
        assert learning_rate_factor("exponential", t, 0.0, 0.01) == pytest.approx(0.01**t)
    assert learning_rate_factor("exponential", 0.0, 0.1, 0.01) == 0
    assert learning_rate_factor("exponential", 0.05, 0.1, 0.01) == pytest.approx(0.5 * 0.01**0.05)
    assert learning_rate_factor("exponential", 0.5, 0.1, 0.01) == pytest.approx(0.1)


def test_evaluations_are_evenly_spaced_and_the_last_is_at_the_end() -> None:
    steps = evaluation_steps(6928, 100)
    assert len(steps) == 100
    assert steps[0] == math.ceil(69.28)
    assert steps[-1] == 6928
    gaps = {after - before for before, after in pairwise(steps)}
    assert gaps == {69, 70}


def test_no_more_evaluations_than_steps() -> None:
    assert evaluation_steps(3, 100) == [1, 2, 3]


@pytest.mark.parametrize(("n_train", "epochs"), [(10, 6928), (3000, 400), (96000, 71), (100, 2191)])
def test_epochs_of_the_paper(n_train: int, epochs: int) -> None:
    assert paper_epochs(n_train) == epochs
