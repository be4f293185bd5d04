"""What a run needs to resume as if it had never stopped.

Data order, augmentation and sampling are functions of a seed and of the step, so there is no
state of a random generator to keep: only how far the run has come.
"""

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lietransformer.errors import UserError
from lietransformer.experiments.task import Evaluation
from lietransformer.training.run_folder import load, save


@dataclass
class Progress:
    """How far a run has come.

    Attributes:
        step: training steps done.
        first_loss: that of the first training step, before the model has learnt anything.
        loss_sum: of the training losses of all examples since the last record.
        loss_count: how many examples those are.
        records: the curves so far.
        best_step: when the best weights were reached; −1 for not yet.
        best_value: their value of the metric that selects.
        started: when the run began.
        seconds: wall-clock time of training, evaluation and tests so far, in all sessions.
        cpu_seconds: CPU time of the same, over all threads.
        sessions: how often the run was started or resumed.
        diverged: when and where numbers exploded; empty if they did not.
        stopped_early: whether patience ran out.
    """

    step: int = 0
    first_loss: float = float("nan")
    loss_sum: float = 0.0
    loss_count: int = 0
    records: list[dict[str, Any]] = field(default_factory=list)
    best_step: int = -1
    best_value: float = float("nan")
    started: float = field(default_factory=time.time)
    seconds: dict[str, float] = field(default_factory=dict)
    cpu_seconds: float = 0.0
    sessions: int = 0
    diverged: dict[str, Any] = field(default_factory=dict)
    stopped_early: bool = False


@dataclass
class Checkpoint:
    """Progress, the state of the optimiser, and the three sets of weights that matter.

    Attributes:
        progress: how far the run has come.
        model: the weights now.
        optimiser: its state.
        best: the weights with the best validation so far.
        good: the weights of the last evaluation whose numbers were within bounds.
        tests: those that are finished, by weights and test set.
    """

    progress: Progress
    model: dict[str, Tensor]
    optimiser: dict[str, Any]
    best: dict[str, Tensor]
    good: dict[str, Tensor]
    tests: dict[str, Evaluation] = field(default_factory=dict)


class CheckpointFile:
    """A checkpoint on disk, named by the hash of the run's settings and data."""

    def __init__(self, folder: Path, identity_hash: str) -> None:
        self.path = folder / f"{identity_hash[:16]}.pt"
        self._hash = identity_hash

    def write(self, checkpoint: Checkpoint) -> None:
        """Replace the checkpoint; if that fails, the old one stays."""
        tests = {name: _plain(test) for name, test in checkpoint.tests.items()}
        content = vars(checkpoint) | {
            "hash": self._hash,
            "progress": vars(checkpoint.progress),
            "tests": tests,
        }
        save(self.path, content)

    def read(self) -> Checkpoint | None:
        """The checkpoint, if there is one; one of another run is refused."""
        if not self.path.exists():
            return None
        content = load(self.path)
        found = content.pop("hash", "none")
        if found != self._hash:
            raise UserError(
                f"the checkpoint {self.path} is of other settings or data (hash {str(found)[:16]}) "
                f"than this run (hash {self._hash[:16]}). Remove it, or start over with --force."
            )
        try:
            content["progress"] = Progress(**content["progress"])
            content["tests"] = {name: _evaluation(test) for name, test in content["tests"].items()}
            return Checkpoint(**content)
        except (KeyError, TypeError) as error:
            raise UserError(
                f"the checkpoint {self.path} is of another version of the package ({error}). "
                "Resume with that version, or start over with --force."
            ) from error

    def remove(self) -> None:
        """The run is done."""
        self.path.unlink(missing_ok=True)


# NumPy arrays could not be read back without running code; tensors can.


def _plain(test: Evaluation) -> dict[str, Any]:
    arrays = {name: torch.from_numpy(array) for name, array in test.arrays.items()}
    return {"metrics": test.metrics, "arrays": arrays}


def _evaluation(stored: dict[str, Any]) -> Evaluation:
    arrays = {name: tensor.numpy() for name, tensor in stored["arrays"].items()}
    return Evaluation(stored["metrics"], arrays)
