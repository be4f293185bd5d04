"""Small runs of the real engine, and what of them has to be the same every time."""

import json
import signal
from pathlib import Path
from typing import Any

import torch

from lietransformer.interruption import Interruption
from lietransformer.training.config import RunConfig
from lietransformer.training.run_folder import RunFolder, load

TINY: dict[str, Any] = {
    "task": "springs",
    "model": "Fully-connected (direct)",
    "architecture": {"width": 8, "layers": 1},
    "n_train": 12,
    "batch_size": 5,
    "epochs": 4,
    "evaluations": 6,
    "compile": False,
    "test_examples": 3,
    "threads": 1,
}


def settings(**given: Any) -> RunConfig:
    """Settings, with the paper's where nothing is given."""
    return RunConfig.model_validate(given)


def tiny(data: Path, **changes: Any) -> RunConfig:
    """Twelve training steps of a very small model on springs."""
    return settings(**{**TINY, "data": data, **changes})


def constellations(data: Path, **changes: Any) -> RunConfig:
    """A very small LieTransformer-SE2, which draws a lift sample for each point."""
    given = {
        "task": "constellations",
        "model": "LieTransformer-SE2",
        "architecture": {"width": 8, "layers": 1, "heads": 2},
        "data": data,
        "threads": 1,
        "validation_examples": 10,
        "test_examples": 10,
    }
    return settings(**{**given, **changes})


def command(data: Path, out: Path, *more: str, **changes: Any) -> list[str]:
    """The same as a command."""
    chosen = {**TINY, "data": str(data), **changes}
    pairs = [f"{key}={json.dumps(value)}" for key, value in chosen.items() if value is not None]
    sets = [part for pair in pairs for part in ("--set", pair)]
    return ["train", "--out", str(out), "--tracking", "none", *sets, *more]


def numbers(folder: Path) -> dict[str, Any]:
    """All that follows from a run's settings and data: everything but times and machines."""
    run = RunFolder(folder)
    result = run.result()
    for name in (
        "started",
        "ended",
        "seconds",
        "cpu_seconds",
        "sessions",
        "peak_memory_gb",
        "machine",
        "git_commit",
    ):
        del result[name]
    for name in ("best", "final"):
        if result[name] is not None:
            del result[name]["time"]
    records = [{k: v for k, v in record.items() if k != "time"} for record in run.records()]
    weights = {
        f"{which}/{name}": tensor.tolist()
        for which, state in load(run.model_file).items()
        for name, tensor in state.items()
    }
    return {
        "result": result,
        "records": records,
        "weights": weights,
        "evaluation": run.evaluation_file.exists() and run.evaluation_file.read_bytes(),
    }


def weights_are_finite(folder: Path) -> bool:
    states = load(RunFolder(folder).model_file)
    return all(torch.isfinite(t).all() for state in states.values() for t in state.values())


class After(Interruption):
    """Asks to stop at the n-th time that it is looked at: anywhere in the run."""

    def __init__(self, looks: int) -> None:
        super().__init__()
        self.left = looks

    def check(self) -> None:
        self.left -= 1
        if self.left < 0:
            self.signal = signal.SIGTERM
        super().check()
