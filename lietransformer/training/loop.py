"""The engine: one run from its first step to its result, interrupted or not."""

import copy
import logging
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import torch
from torch import Tensor

from lietransformer.data.batches import size_of
from lietransformer.errors import UserError
from lietransformer.files import exclusive
from lietransformer.tasks import Evaluation
from lietransformer.training.checkpoint import Checkpoint, CheckpointFile, Progress
from lietransformer.training.config import RunConfig
from lietransformer.training.display import Display
from lietransformer.training.evaluation import run_tests
from lietransformer.training.experiment import Experiment, prepare_process
from lietransformer.training.interruption import Interrupted, Interruption
from lietransformer.training.machine import monitoring
from lietransformer.training.result import describe_result
from lietransformer.training.run_folder import RunFolder, write_json
from lietransformer.training.schedule import evaluation_steps, learning_rate_factor
from lietransformer.training.step import TrainingStep

log = logging.getLogger(__name__)

_SECONDS_BETWEEN_CHECKPOINTS = 60.0
_SECONDS_BETWEEN_TRIES = 0.5
# Reading a loss waits for the GPU. There it is done once in so many steps.
_STEPS_BETWEEN_READS = {"cpu": 1, "cuda": 50}

# A loss that is so many times that of the untrained model has exploded, even if it is finite: all
# tasks begin with a loss of about the size of their data. Not compared with the smallest loss so
# far, which in a healthy run can be a millionth of the first one.
_EXPLOSION = 1e6

Weights = dict[str, Tensor]


class _Diverged(Exception):
    """A number is not finite, or has grown out of all bounds."""


class Run:
    """One run: a function from settings and data to a result, with a folder to keep it in."""

    def __init__(
        self,
        config: RunConfig,
        folder: RunFolder,
        *,
        interruption: Interruption | None = None,
        seconds_between_checkpoints: float = _SECONDS_BETWEEN_CHECKPOINTS,
        start_over: bool = False,
        wait: bool = False,
        on_record: Callable[[], None] = lambda: None,
    ) -> None:
        """Prepare a run; nothing is read or written yet.

        Args:
            config: its settings.
            folder: where it is kept.
            interruption: how it learns that it has to stop.
            seconds_between_checkpoints: how much work may be lost at most.
            start_over: remove what the folder holds of a run, as soon as this one can begin.
            wait: wait for another process that works on the folder, instead of refusing to.
            on_record: called when a point was added to the curves, and at the end.
        """
        self.config = config
        self.folder = folder
        self._interruption = interruption or Interruption()
        self._seconds_between_checkpoints = seconds_between_checkpoints
        self._start_over = start_over
        self._wait = wait
        self._on_record = on_record
        self._has_waited = False
        self.has_begun = False  # whether the folder is known to be this run's

    def execute(self) -> dict[str, Any]:
        """Train, test, and write the result; or go on where an earlier call was stopped.

        A run that is done already is left as it is.
        """
        config, folder = self.config, self.folder
        prepare_process(config)
        wait = self._wait_a_moment if self._wait else None
        with exclusive(folder.state_folder / "lock", f"runs in {folder.path}", wait=wait):
            self.experiment = Experiment(config)
            self.experiment.between_steps = self._interruption.check
            identity_hash = config.identity_hash(self.experiment.file.content_hash)
            if self._start_over:
                folder.clear()
            folder.claim(config, identity_hash, self.experiment.task.constants)
            self.has_begun = True
            self._checkpoints = CheckpointFile(folder.state_folder, identity_hash)
            if not folder.is_done:
                with monitoring(folder.system_file, self.experiment.device):
                    self._restore()
                    self._train()
                    tests = self._test()
                # Last of all: its existence means that the run is done.
                result = describe_result(config, self.experiment, self.progress, tests)
                write_json(folder.result_file, {"hash": identity_hash, **result})
                self._on_record()
            self._checkpoints.remove()
        _remove_if_empty(folder)
        return folder.result()

    def _wait_a_moment(self) -> None:
        """While another process works on the run: what it does need not be done again."""
        if not self._has_waited:
            log.info("waiting for another process that works on %s", self.folder.path)
        self._has_waited = True
        self._interruption.check()
        time.sleep(_SECONDS_BETWEEN_TRIES)

    # ---- the state of a run

    def _restore(self) -> None:
        """Begin, or go on from the checkpoint."""
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
            self.optimiser.load_state_dict(checkpoint.optimiser)
            log.info("going on after step %d of %d", self.progress.step, self.total_steps)
        self._step = TrainingStep(self.experiment, self.optimiser)
        self.progress.sessions += 1
        # What was added to the curves after the checkpoint is about to be computed again.
        self.folder.write_records(self.progress.records)

    def _save(self, model: Weights) -> None:
        self._saved = time.monotonic()
        self._read_losses()
        checkpoint = Checkpoint(
            self.progress,
            model,
            self.optimiser.state_dict(),
            self.best,
            self.good,
            self.tests,
        )
        self._checkpoints.write(checkpoint)

    def _save_if_possible(self, model: Weights | None = None) -> None:
        """A checkpoint that cannot be written costs time if the run is stopped, no more."""
        try:
            self._save(self.experiment.model.state_dict() if model is None else model)
        except UserError as error:
            log.warning("no checkpoint was written: %s", error)

    @property
    def total_steps(self) -> int:
        return self.config.epochs * self.experiment.steps_per_epoch

    # ---- training

    def _train(self) -> None:
        """All steps that are left, with their evaluations."""
        self._saved = time.monotonic()
        self._due = set(evaluation_steps(self.total_steps, self.config.evaluations))
        self._unread: list[tuple[Tensor, int]] = []
        progress = self.progress
        with Display(self.config, self.total_steps, progress.step) as self._display:
            try:
                self._evaluate_if_due()
                while not self._is_over():
                    self._train_epoch()
            except _Diverged as error:
                epoch = progress.step / self.experiment.steps_per_epoch
                what = f"{error} at step {progress.step} (epoch {epoch:.1f})"
                progress.diverged = {"step": progress.step, "epoch": epoch, "what": what}
                self.experiment.model.load_state_dict(self.good)
                log.error("diverged: %s; the last good weights are kept", what)
            except Interrupted:
                with suppress(_Diverged):  # the next session will come to it again
                    self._save_if_possible()
                raise
        self._save_if_possible()

    def _is_over(self) -> bool:
        progress = self.progress
        ended = progress.step >= self.total_steps or progress.stopped_early
        return ended or bool(progress.diverged)

    def _train_epoch(self) -> None:
        progress, experiment = self.progress, self.experiment
        epoch, first = divmod(progress.step, experiment.steps_per_epoch)
        for batch in experiment.batches(epoch, first):
            self._interruption.check()
            with self._timed("training"):
                loss = self._step(batch, progress.step, self._scheduled(epoch))
                self._unread.append((loss, size_of(batch)))
                if len(self._unread) >= _STEPS_BETWEEN_READS[self.config.device]:
                    self._read_losses()
                progress.step += 1
            self._display.step(progress)
            self._evaluate_if_due()
            if self._is_over():
                return
            if time.monotonic() - self._saved > self._seconds_between_checkpoints:
                self._save_if_possible()

    def _scheduled(self, epoch: int) -> float:
        """The learning rate now."""
        config = self.config
        done = epoch / config.epochs
        if config.schedule_per == "step":
            done = self.progress.step / self.total_steps
        return learning_rate_factor(config.schedule, done, config.warmup) * config.learning_rate

    def _read_losses(self) -> None:
        """Add the losses since the last time to their sum; notice if one has exploded."""
        if not self._unread:
            return
        tensors, sizes = zip(*self._unread, strict=True)
        self._unread = []
        for loss, size in zip(torch.stack(tensors).tolist(), sizes, strict=True):
            if math.isnan(self.progress.first_loss):
                self.progress.first_loss = loss
            self._require_bounded("training loss", loss)
            self.progress.loss_sum += size * loss
            self.progress.loss_count += size

    def _require_bounded(self, name: str, loss: float) -> None:
        first = self.progress.first_loss
        if not math.isfinite(loss):
            raise _Diverged(f"{name} {loss}")
        if loss > _EXPLOSION * first:
            raise _Diverged(f"{name} {loss:.3g}, more than {_EXPLOSION:g} times the first one")

    # ---- evaluation

    def _evaluate_if_due(self) -> None:
        """Evaluate after this step, unless that has been done already."""
        progress = self.progress
        last = progress.records[-1]["step"] if progress.records else 0
        if progress.step in self._due and progress.step != last and not progress.diverged:
            self._read_losses()
            with self._timed("evaluation"):
                metrics = self.experiment.validate()
            self._record(metrics)

    def _record(self, metrics: dict[str, float]) -> None:
        progress, task = self.progress, self.experiment.task
        for name, number in metrics.items():
            if not math.isfinite(number):
                raise _Diverged(f"validation {name} {number}")
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
            "learning_rate": float(self.optimiser.param_groups[0]["lr"]),
            "train/loss": progress.loss_sum / max(1, progress.loss_count),
            **{f"validation/{name}": number for name, number in metrics.items()},
        }
        progress.loss_sum, progress.loss_count = 0.0, 0
        progress.records.append(record)
        self.folder.add_record(record)
        self._display.record(record, task.selection, is_best=progress.best_step == progress.step)
        patience = self.config.patience
        since_best = (progress.step - progress.best_step) / self.experiment.steps_per_epoch
        progress.stopped_early = patience is not None and since_best >= patience
        self._on_record()

    # ---- the end

    def _test(self) -> dict[str, Any]:
        """Keep the best and the final weights, and test them."""
        final = _copy_of(self.experiment.model)
        weights = {"best": self.best, "final": final}
        self.folder.write_weights(weights)
        return run_tests(
            self.experiment,
            {str(name): weights[name] for name in self.config.test_weights},
            self.folder.evaluation_file,
            finished=self.tests,
            one_test=partial(self._one_test, final),
        )

    @contextmanager
    def _one_test(self, final: Weights) -> Iterator[None]:
        """Tests can be long: one that is finished is not done again if the next is stopped."""
        with self._timed("test"):
            yield
        self._save_if_possible(final)

    @contextmanager
    def _timed(self, what: str) -> Iterator[None]:
        started = time.perf_counter()
        try:
            yield
        finally:
            passed = time.perf_counter() - started
            self.progress.seconds[what] = self.progress.seconds.get(what, 0.0) + passed


def _copy_of(model: torch.nn.Module) -> Weights:
    return copy.deepcopy(model.state_dict())


def _remove_if_empty(folder: RunFolder) -> None:
    """The folders for resuming, when nothing is left to resume."""
    for path in (folder.state_folder, folder.state_folder.parent):
        try:
            path.rmdir()
        except OSError:
            return
