"""The engine: one run from its first step to its result, interrupted or not."""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import torch
from torch import Tensor

from lietransformer.data.batches import size_of
from lietransformer.files import exclusive
from lietransformer.interruption import Interrupted, Interruption
from lietransformer.training.checkpoint import CheckpointFile
from lietransformer.training.config import RunConfig
from lietransformer.training.display import Display
from lietransformer.training.experiment import Experiment, prepare_process
from lietransformer.training.monitoring import monitoring
from lietransformer.training.run_folder import RunFolder
from lietransformer.training.state import Diverged, RunState
from lietransformer.training.step import TrainingStep

log = logging.getLogger(__name__)

_SECONDS_BETWEEN_CHECKPOINTS = 60.0
_SECONDS_BETWEEN_TRIES = 0.5
# Reading a loss waits for the GPU, where it is therefore done rarely.
STEPS_BETWEEN_READS = {"cpu": 1, "cuda": 50}


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
        self.interruption = interruption or Interruption()
        self.seconds_between_checkpoints = seconds_between_checkpoints
        self._start_over = start_over
        self._wait = wait
        self._on_record = on_record
        self._has_waited = False
        self.has_begun = False  # whether the folder is known to be this run's

    def execute(self) -> dict[str, Any]:
        """Train, test and write the result, or resume where an earlier call was stopped.

        A run that is done already is left as it is.
        """
        prepare_process(self.config)
        with self.opened() as state:
            if state is not None:
                with monitoring(self.folder.system_file, state.experiment.device):
                    state.restore()
                    self._state = state
                    self._train()
                    tests = state.test()
                state.finish(tests)
        return self.folder.result()

    @contextmanager
    def opened(self, like: Experiment | None = None) -> Iterator[RunState | None]:
        """The run's state, not yet restored, inside the block; None if there is nothing to do.

        Nobody else can work on the folder meanwhile. After the block nothing is left to resume.

        Args:
            like: the experiment of a run that differs in its seeds alone, to share its data.
        """
        config, folder = self.config, self.folder
        wait = self._wait_a_moment if self._wait else None
        with exclusive(folder.state_folder / "lock", f"runs in {folder.path}", wait=wait):
            experiment = Experiment(config) if like is None else like.with_seeds_of(config)
            experiment.between_steps = self.interruption.check
            identity_hash = config.identity_hash(experiment.file.content_hash)
            if self._start_over:
                folder.clear()
            folder.claim(config, identity_hash, experiment.task.constants)
            self.has_begun = True
            is_done = folder.is_done
            yield None if is_done else RunState(experiment, folder, identity_hash, self._on_record)
            CheckpointFile(folder.state_folder, identity_hash).remove()
        _remove_if_empty(folder)

    def _wait_a_moment(self) -> None:
        """While another process works on the run: what it does need not be done again."""
        if not self._has_waited:
            log.info("waiting for another process that works on %s", self.folder.path)
        self._has_waited = True
        self.interruption.check()
        time.sleep(_SECONDS_BETWEEN_TRIES)

    # ---- training

    def _train(self) -> None:
        """All steps that are left, with their evaluations."""
        state = self._state
        self._step = TrainingStep(state.experiment, state.optimiser)
        self._saved = time.monotonic()
        self._unread: list[tuple[Tensor, int]] = []
        with Display(self.config, state.total_steps, state.progress.step) as self._display:
            try:
                self._evaluate_if_due()
                while not state.is_over:
                    self._train_epoch()
            except Diverged as error:
                state.diverge(error)
            except Interrupted:
                with suppress(Diverged):  # the next session will come to it again
                    self._save()
                raise
        self._save()

    def _train_epoch(self) -> None:
        state, progress = self._state, self._state.progress
        epoch, first = divmod(progress.step, state.experiment.steps_per_epoch)
        for batch in state.experiment.batches(epoch, first):
            self.interruption.check()
            with state.timed("training"):
                loss = self._step(batch, progress.step, state.learning_rate(progress.step))
                self._unread.append((loss, size_of(batch)))
                if len(self._unread) >= STEPS_BETWEEN_READS[self.config.device]:
                    self._read_losses()
                progress.step += 1
            self._display.step(progress)
            self._evaluate_if_due()
            if state.is_over:
                return
            if time.monotonic() - self._saved > self.seconds_between_checkpoints:
                self._save()

    def _read_losses(self) -> None:
        """Add the losses since the last time to their sum; notice if one has exploded."""
        if self._unread:
            losses, sizes = zip(*self._unread, strict=True)
            self._unread = []
            for loss, size in zip(torch.stack(losses).tolist(), sizes, strict=True):
                self._state.add_loss(loss, size)

    def _evaluate_if_due(self) -> None:
        state = self._state
        if state.is_due:
            self._read_losses()
            with state.averaged():
                with state.timed("evaluation"):
                    metrics = state.experiment.validate()
                state.record(metrics, self._display)

    def _save(self) -> None:
        self._saved = time.monotonic()
        self._read_losses()
        self._state.save_if_possible()


def _remove_if_empty(folder: RunFolder) -> None:
    """The folders for resuming, when nothing is left to resume."""
    for path in (folder.state_folder, folder.state_folder.parent):
        try:
            path.rmdir()
        except OSError:
            return
