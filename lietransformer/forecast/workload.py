"""How many steps, evaluations and tests a run has."""

import math
from dataclasses import dataclass
from typing import Any

from lietransformer.experiments.registry import plan_of
from lietransformer.settings import validated
from lietransformer.sweep.jobs import Configuration, Dataset
from lietransformer.sweep.plan import Plan
from lietransformer.training.config import RunConfig


@dataclass(frozen=True)
class Workload:
    """The work of one run."""

    steps: int  # of training, if the run does not stop early
    may_stop_early: bool  # whether it stops when validation no longer improves
    validations: int  # evaluations on the validation set
    validated: int  # examples in each of them
    tested: int  # examples in a test set
    test_cost: float  # of all test sets together, in units of the first
    weights: int  # sets of weights that are tested and kept


def planned(plan: Plan, configuration: Configuration) -> tuple[RunConfig, Workload]:
    """The settings of a configuration's first run, and its workload."""
    compute, seed = plan.config.compute, configuration.seeds[0]
    where = {"device": compute.device, "threads": compute.threads, "seed": seed}
    run = validated(RunConfig, {**configuration.settings, **where})
    return run, workload(run, generator_settings(plan.datasets[configuration.task]))


def generator_settings(dataset: Dataset) -> Any:
    """All settings of a dataset, with the paper's values where the sweep gives none."""
    return plan_of(dataset.kind).Generator.model_validate(dataset.settings)


def workload(run: RunConfig, data: Any) -> Workload:
    """The work of a run on a dataset with these generator settings."""
    train, validation, test, test_cost = plan_of(run.task).sizes(run, data)
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
