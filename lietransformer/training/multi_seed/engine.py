"""The engine for several seeds of one configuration at once on one device.

Every seed is a run with its own folder, as if it had been trained alone, with the same numbers up
to rounding. Seeds go through their steps together. One that is over
is left out of the steps that follow; one that diverges harms no other.
"""

import logging
import time
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, Literal

import torch
from torch import Tensor

from lietransformer.data.batches import size_of
from lietransformer.interruption import Interrupted
from lietransformer.training.cuda_graphs import Recorder
from lietransformer.training.display import Display
from lietransformer.training.experiment import Experiment, prepare_process
from lietransformer.training.loop import STEPS_BETWEEN_READS, Run
from lietransformer.training.monitoring import monitoring
from lietransformer.training.multi_seed.conditions import reason_against
from lietransformer.training.multi_seed.stack import Stack
from lietransformer.training.state import Diverged, RunState

log = logging.getLogger(__name__)


class RunsAtOnce:
    """Runs that differ in nothing but their seeds."""

    def __init__(self, runs: Sequence[Run], recorder: Recorder | None = None) -> None:
        """Read the data; nothing is written yet.

        Args:
            runs: one for each seed.
            recorder: how steps are recorded, as `Stack` takes it.
        """
        self.runs = list(runs)
        self._recorder = recorder
        for run in runs:
            # A stack is not compiled: torch would compile it anew whenever it changes.
            run.config = run.config.model_copy(update={"compile": False})
        prepare_process(runs[0].config)
        self._experiment = Experiment(runs[0].config)

    def execute(self) -> list[dict[str, Any]]:
        """Train, test and write all results, or resume where an earlier call was stopped.

        Runs that are done already are left as they are.
        """
        with ExitStack() as opened:
            self._states: list[RunState] = []
            with ExitStack() as monitored:
                # In one order everywhere, so that two processes never wait for each other.
                for run in sorted(self.runs, key=lambda run: run.folder.path):
                    state = opened.enter_context(run.opened(self._experiment))
                    if state is not None:
                        self._states.append(state)
                        path = run.folder.system_file
                        monitored.enter_context(monitoring(path, self._experiment.device))
                for state in self._states:
                    state.restore()
                self._train()
                tests = [state.test() for state in self._states]
            for state, tested in zip(self._states, tests, strict=True):
                state.finish(tested)
        return [run.folder.result() for run in self.runs]

    # ---- training

    def _train(self) -> None:
        """All steps that are left, with their evaluations."""
        states = self._states
        if not states:
            return
        self._stack: Stack | None = None
        self._saved = time.monotonic()
        self._unread: list[tuple[Tensor, int]] = []
        first = min(states, key=lambda state: state.progress.step)
        seeds = [state.config.seed for state in states]
        with Display(first.config, first.total_steps, first.progress.step, seeds) as self._display:
            try:
                self._evaluate(states)
                while any(not state.is_over for state in states):
                    self._train_epoch()
            except Interrupted:
                self._save()
                raise
        self._save()

    def _train_epoch(self) -> None:
        """Steps of one epoch, until it ends or other runs than before are to be trained."""
        stack = self._stack = self._stack_of_now()
        progress = stack.trained[0].progress
        epoch, first = divmod(progress.step, self._experiment.steps_per_epoch)
        iterators = (state.experiment.batches(epoch, first) for state in stack.states)
        for batches in zip(*iterators, strict=True):
            self.runs[0].interruption.check()
            self._step(stack, batches)
            self._display.step(progress)
            self._evaluate(stack.trained)
            if (stack.states, stack.trained) != self._aboard_and_trained():
                return
            if time.monotonic() - self._saved > self.runs[0].seconds_between_checkpoints:
                self._save()

    def _step(self, stack: Stack, batches: Sequence[Any]) -> None:
        started, cpu_started = time.perf_counter(), time.process_time()
        state = stack.trained[0]
        step = state.progress.step
        losses = stack.step(batches, step, state.learning_rate(step))
        self._unread.append((losses, size_of(batches[0])))
        if len(self._unread) >= STEPS_BETWEEN_READS[state.config.device]:
            self._read_losses()
        passed, cpu_passed = time.perf_counter() - started, time.process_time() - cpu_started
        share = 1 / len(stack.trained)
        for state in stack.trained:
            state.add_seconds("training", share * passed, share * cpu_passed)
            state.progress.step += 1

    # ---- who takes part

    def _aboard_and_trained(self) -> tuple[list[RunState], list[RunState]]:
        """Who takes part in the next step, and who among them is trained by it.

        After a process was killed some runs may be ahead of others, for whom they wait. They take
        part nevertheless: see `Stack`.
        """
        going_on = [state for state in self._states if not state.is_over]
        if not going_on:
            return [], []
        step = min(state.progress.step for state in going_on)
        aboard = [s for s in self._states if not s.is_over or s.progress.step > step]
        return aboard, [state for state in going_on if state.progress.step == step]

    def _stack_of_now(self) -> Stack:
        self._read_losses()
        aboard, trained = self._aboard_and_trained()
        before = self._stack
        if before is not None:
            if (before.states, before.trained) == (aboard, trained):
                return before
            before.hand_back()
        passengers = [state for state in aboard if state not in trained]
        return Stack(aboard, passengers, self._recorder)

    # ---- numbers

    def _read_losses(self) -> None:
        """Add the losses since the last time to their sums; end runs whose loss has exploded."""
        if self._stack is None or not self._unread:
            return
        tensors, sizes = zip(*self._unread, strict=True)
        self._unread = []
        by_run = torch.stack(tensors).T.tolist()
        for state, losses in zip(self._stack.states, by_run, strict=True):
            if state in self._stack.trained:
                try:
                    for loss, size in zip(losses, sizes, strict=True):
                        state.add_loss(loss, size)
                except Diverged as error:
                    self._end(state, error)

    def _end(self, state: RunState, error: Diverged) -> None:
        """End a run; nothing that the stack computes reaches it any more."""
        if self._stack is not None:
            self._stack.hand_back()
            self._stack.trained.remove(state)
        state.diverge(error)

    def _evaluate(self, states: Sequence[RunState]) -> None:
        """Evaluate those for which it is time, each with its own model."""
        if not any(state.is_due for state in states):
            return
        self._read_losses()
        if self._stack is not None:
            self._stack.hand_back()
        for state in [state for state in states if state.is_due]:
            try:
                with state.averaged():
                    with state.timed("evaluation"):
                        metrics = state.experiment.validate()
                    state.record(metrics, self._display)
            except Diverged as error:
                self._end(state, error)

    def _save(self) -> None:
        self._saved = time.monotonic()
        self._read_losses()
        if self._stack is not None:
            self._stack.hand_back()
        for state in self._states:
            state.save_if_possible()


class OneRun:
    """A run by itself, with the interface of several."""

    def __init__(self, run: Run) -> None:
        self.runs = [run]

    def execute(self) -> list[dict[str, Any]]:
        """Train, test and write the result, or resume where an earlier call was stopped."""
        return [run.execute() for run in self.runs]


def group_runs(
    runs: Sequence[Run], at_once: Literal["auto", "true", "false"]
) -> list[RunsAtOnce] | list[OneRun]:
    """Runs that differ in nothing but their seeds, all at once or one after the other.

    Args:
        runs: one for each seed.
        at_once: "true" where that can be done; "auto" also only where it pays: on a GPU, which a
            small model leaves mostly idle. On a CPU, a run for each core is faster. So is one run
            after the other for molecules: their models are large, and their batches of different
            size would be padded to the largest.
    """
    config = runs[0].config
    pays = config.device == "cuda" and config.task != "qm9"
    if len(runs) > 1 and (at_once == "true" or (at_once == "auto" and pays)):
        prepare_process(config)
        reason = reason_against(Experiment(config.model_copy(update={"compile": False})))
        if reason is None:
            return [RunsAtOnce(runs)]
        log.info("the seeds are trained one after the other: %s", reason)
    return [OneRun(run) for run in runs]
