"""How much a run has to do, in numbers of steps and examples."""

import math
from dataclasses import dataclass
from typing import Any

from lietransformer.experiments.constellations.dataset import TEST_SETS, ConstellationsConfig
from lietransformer.experiments.qm9.dataset import QM9Config
from lietransformer.experiments.qm9.sources.molecules import CHARACTERIZED
from lietransformer.experiments.springs.dataset import SpringsConfig
from lietransformer.training.config import RunConfig


@dataclass(frozen=True)
class Workload:
    """What a run does.

    Attributes:
        steps: of training, if it is not stopped early.
        may_stop_early: whether it ends when it gets no better.
        validations: how often it is evaluated.
        validated: examples of each evaluation.
        tested: examples of a test set.
        test_cost: what all tests of one set of weights cost, in tests of `tested` examples that
            are evaluated like those for validation.
        weights: sets of weights that are tested.
    """

    steps: int
    may_stop_early: bool
    validations: int
    validated: int
    tested: int
    test_cost: float
    weights: int


def workload(run: RunConfig, data: Any) -> Workload:
    """What a run does with a dataset of these settings."""
    train, validation, test, test_cost = _sizes(run, data)
    steps = run.epochs * math.ceil(train / min(run.batch_size, train))
    return Workload(
        steps=steps,
        may_stop_early=run.patience is not None and run.patience < run.epochs,
        validations=min(steps, run.evaluations),
        validated=min(validation, run.validation_examples or validation),
        tested=min(test, run.test_examples or test),
        test_cost=test_cost,
        weights=len(run.test_weights),
    )


def _sizes(run: RunConfig, data: Any) -> tuple[int, int, int, float]:
    """Examples for training, validation and a test, and the cost of all tests."""
    if isinstance(data, ConstellationsConfig):
        return run.n_train or data.train, data.validation, data.test, float(sum(TEST_SETS.values()))
    if isinstance(data, SpringsConfig):
        assert run.n_train is not None  # which the settings insist on
        # A trajectory costs what its steps do, and there are short ones and long ones.
        long = (data.long_chunk - 1) / (data.chunk - 1)
        return run.n_train, min(run.n_train, data.validation), data.test, 1 + long
    assert isinstance(data, QM9Config)
    molecules = min(data.limit or CHARACTERIZED, CHARACTERIZED)
    test = int(data.test_fraction * molecules)
    return run.n_train or data.train, molecules - data.train - test, test, 1.0
