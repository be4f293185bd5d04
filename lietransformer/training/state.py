"""How far a run has come, what it keeps, and when it is over: all of a run but its arithmetic."""

import logging
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from lietransformer.errors import UserError
from lietransformer.experiments.task import Evaluation
from lietransformer.training import optimiser
from lietransformer.training.checkpoint import Checkpoint, CheckpointFile, Progress
from lietransformer.training.display import Display
from lietransformer.training.evaluation import run_tests
from lietransformer.training.experiment import Experiment
from lietransformer.training.result import describe_result
from lietransformer.training.run_folder import RunFolder, write_json
from lietransformer.training.schedule import evaluation_steps, learning_rate_factor

log = logging.getLogger(__name__)

# A loss this many times that of the untrained model has exploded, even if it is finite: all tasks
# begin with a loss of about the size of their data. Not compared with the smallest loss so
# far, which in a healthy run can be a millionth of the first one.
_EXPLOSION = 1e6

Weights = dict[str, Tensor]


class Diverged(Exception):
    """A number is not finite, or has exploded."""


class RunState:
    """One run between its first step and its result, in memory and on disk.

    Attributes:
        experiment: its task, model and data; the model has the current weights.
        optimiser: of the model, in its current state.
        progress: how far it has come.
        best: the weights with the best validation so far.
        good: the weights of the last evaluation whose numbers were within bounds.
        tests: those that are finished.
    """

    def __init__(
        self,
        experiment: Experiment,
        folder: RunFolder,
        identity_hash: str,
        on_record: Callable[[], None],
    ) -> None:
        self.experiment = experiment
        self.config = experiment.config
        self._folder = folder
        self._hash = identity_hash
        self._on_record = on_record
        self._checkpoints = CheckpointFile(folder.state_folder, identity_hash)
        self._due = set(evaluation_steps(self.total_steps, self.config.evaluations))

    def restore(self) -> None:
        """Start, or resume from the checkpoint."""
        model = self.experiment.model
        self.optimiser = self.experiment.optimiser()
        checkpoint = self._checkpoints.read()
        if checkpoint is None:
            self.progress = Progress()
            self.best = self.good = _copy_of(model)
            self.tests: dict[str, Evaluation] = {}
        else:
            self.progress = checkpoint.progress
            self.best, self.good = checkpoint.best, checkpoint.good
            self.tests = checkpoint.tests
            model.load_state_dict(checkpoint.model)
            optimiser.restore(self.optimiser, checkpoint.optimiser)
            log.info("resuming after step %d of %d", self.progress.step, self.total_steps)
        self.progress.sessions += 1
        # What was added to the curves after the checkpoint is about to be computed again.
        self._folder.write_records(self.progress.records)

    def save_if_possible(self, model: Weights | None = None) -> None:
        """A checkpoint that cannot be written costs time if the run is stopped, no more."""
        checkpoint = Checkpoint(
            self.progress,
            self.experiment.model.state_dict() if model is None else model,
            self.optimiser.state_dict(),
            self.best,
            self.good,
            self.tests,
        )
        try:
            self._checkpoints.write(checkpoint)
        except UserError as error:
            log.warning("no checkpoint was written: %s", error)

    @property
    def total_steps(self) -> int:
        return self.config.epochs * self.experiment.steps_per_epoch

    @property
    def is_over(self) -> bool:
        progress = self.progress
        ended = progress.step >= self.total_steps or progress.stopped_early
        return ended or bool(progress.diverged)

    @property
    def is_due(self) -> bool:
        """Whether to evaluate after this step, unless that has been done already."""
        progress = self.progress
        last = progress.records[-1]["step"] if progress.records else 0
        return progress.step in self._due and progress.step != last and not progress.diverged

    def learning_rate(self, step: int) -> float:
        """The learning rate of the step after `step` steps."""
        config = self.config
        done = step // self.experiment.steps_per_epoch / config.epochs
        if config.schedule_per == "step":
            done = step / self.total_steps
        factor = learning_rate_factor(config.schedule, done, config.warmup, config.final_rate)
        return factor * config.learning_rate

    @contextmanager
    def averaged(self) -> Iterator[None]:
        """The model with the weights that are evaluated: their average, where one is kept."""
        average = {} if self.progress.diverged else optimiser.averages(self.optimiser)
        current = {weight: weight.detach().clone() for weight in average}
        _overwrite(average)
        try:
            yield
        finally:
            _overwrite(current)

    # ---- numbers

    def add_loss(self, loss: float, size: int) -> None:
        """Add a training loss to the sum; notice if it has exploded."""
        if math.isnan(self.progress.first_loss):
            self.progress.first_loss = loss
        self._require_bounded("training loss", loss)
        self.progress.loss_sum += size * loss
        self.progress.loss_count += size

    def _require_bounded(self, name: str, loss: float) -> None:
        first = self.progress.first_loss
        if not math.isfinite(loss):
            raise Diverged(f"{name} {loss}")
        if loss > _EXPLOSION * first:
            raise Diverged(f"{name} {loss:.3g}, more than {_EXPLOSION:g} times the first one")

    def record(self, metrics: dict[str, float], display: Display) -> None:
        """Add a point to the curves, and keep weights that are the best so far."""
        progress, task = self.progress, self.experiment.task
        for name, number in metrics.items():
            if not math.isfinite(number):
                raise Diverged(f"validation {name} {number}")
        self._require_bounded(f"validation {task.loss_metric}", metrics[task.loss_metric])
        value = metrics[task.selection]
        weights = _copy_of(self.experiment.model)
        is_first = progress.best_step < 0
        gain = (value - progress.best_value) * (1 if task.larger_is_better else -1)
        self.good = weights
        if is_first or gain > 0:
            self.best, progress.best_step, progress.best_value = weights, progress.step, value
        epoch = progress.step / self.experiment.steps_per_epoch
        record = {
            "step": progress.step,
            "epoch": epoch,
            "time": time.time(),
            "learning_rate": self.learning_rate(progress.step - 1),
            "train/loss": progress.loss_sum / max(1, progress.loss_count),
            **{f"validation/{name}": number for name, number in metrics.items()},
        }
        progress.loss_sum, progress.loss_count = 0.0, 0
        progress.records.append(record)
        self._folder.add_record(record)
        is_best = progress.best_step == progress.step
        display.record(record, task.selection, is_best=is_best, seed=self.config.seed)
        patience = self.config.patience
        since_best = (progress.step - progress.best_step) / self.experiment.steps_per_epoch
        progress.stopped_early = patience is not None and since_best >= patience
        self._on_record()

    def diverge(self, error: Diverged) -> None:
        """End the run with the last weights that were good."""
        progress = self.progress
        epoch = progress.step / self.experiment.steps_per_epoch
        what = f"{error} at step {progress.step} (epoch {epoch:.1f})"
        progress.diverged = {"step": progress.step, "epoch": epoch, "what": what}
        self.experiment.model.load_state_dict(self.good)
        log.error("diverged: %s; the last good weights are kept", what)

    # ---- the end

    def test(self) -> dict[str, Any]:
        """Keep the best and the final weights, and test them."""
        with self.averaged():
            final = _copy_of(self.experiment.model)
        weights = {"best": self.best, "final": final}
        self._folder.write_weights(weights)

        @contextmanager
        def one_test() -> Iterator[None]:
            """Tests can be long: one that is finished is not done again if the next is stopped."""
            with self.timed("test"):
                yield
            self.save_if_possible(final)

        return run_tests(
            self.experiment,
            {str(name): weights[name] for name in self.config.test_weights},
            self._folder.evaluation_file,
            finished=self.tests,
            one_test=one_test,
        )

    def finish(self, tests: dict[str, Any]) -> None:
        """Write the result, last of all: its existence means that the run is done."""
        result = describe_result(self.config, self.experiment, self.progress, tests)
        write_json(self._folder.result_file, {"hash": self._hash, **result})
        self._on_record()

    @contextmanager
    def timed(self, what: str) -> Iterator[None]:
        """Count the time inside the block."""
        started, cpu_started = time.perf_counter(), time.process_time()
        try:
            yield
        finally:
            passed, cpu_passed = time.perf_counter() - started, time.process_time() - cpu_started
            self.add_seconds(what, passed, cpu_passed)

    def add_seconds(self, what: str, passed: float, cpu_passed: float) -> None:
        """Count wall-clock and CPU time that was spent on this run."""
        self.progress.seconds[what] = self.progress.seconds.get(what, 0.0) + passed
        self.progress.cpu_seconds += cpu_passed


def _copy_of(model: torch.nn.Module) -> Weights:
    return {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}


@torch.no_grad()
def _overwrite(values: dict[Tensor, Tensor]) -> None:
    """Write a new value into each parameter."""
    for weight, value in values.items():
        weight.copy_(value)
