"""Seconds per training step and per evaluated example of each model on this machine.

`python -m lietransformer.forecast.speed SUBJECT DATASET` measures one model with the training
engine, in a fresh process because peak memory is per process.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from statistics import fmean, median
from typing import Any

import psutil
import torch

from lietransformer.data.batches import to_device
from lietransformer.errors import UserError
from lietransformer.experiments.constellations import dataset as constellations
from lietransformer.experiments.qm9 import dataset as qm9
from lietransformer.experiments.springs import dataset as springs
from lietransformer.experiments.task import Evaluation
from lietransformer.forecast.workload import Workload, generator_settings, planned
from lietransformer.machine import describe_machine, git_commit, peak_memory_gb
from lietransformer.sweep.jobs import Dataset
from lietransformer.sweep.plan import Plan
from lietransformer.training.config import RunConfig
from lietransformer.training.experiment import Experiment, prepare_process
from lietransformer.training.run_folder import write_json
from lietransformer.training.step import TrainingStep

_RELEVANT = {
    *("task", "model", "architecture", "batch_size", "evaluation_batch_size"),
    *("precision", "device", "threads", "compile"),
}
_FEWEST_STEPS, _SECONDS = 3, 2.0  # of timed training steps; both are minima


@dataclass(frozen=True)
class Speed:
    """Measured costs of a model."""

    step: float  # seconds per training step
    validation: float  # seconds per example of the validation set
    test: float  # seconds per example of the test set
    start: float  # seconds before the first step: imports, reading, compilation
    memory_gb: float  # peak of the process
    weight_bytes: int  # of one set of weights
    test_bytes: float  # kept for each example of a test
    gflops: float  # GFLOP/s of a float32 matrix product on the same device and threads
    processor: str  # the CPU or GPU
    measured: str  # date and time


def subject(run: RunConfig, work: Workload) -> str:
    """The settings, as JSON, that decide how fast a run is; runs that share them share a speed."""
    settings = run.model_dump(mode="json", include=_RELEVANT)
    settings["target"] = run.target and "homo"  # all targets cost the same
    if run.task == "springs":
        settings["batch_size"] = min(run.batch_size, run.n_train or run.batch_size)
    settings["validation_examples"] = min(work.validated, run.evaluation_batch_size)
    settings["test_examples"] = min(work.tested, run.evaluation_batch_size)
    return json.dumps(settings, sort_keys=True)


def measure_all(plan: Plan, cache: Path) -> dict[str, Speed]:
    """The speed of every subject of a sweep; those that the cache lacks are measured."""
    speeds = _read(cache)
    subjects = {subject(*planned(plan, each)): each.data for each in plan.trained}
    missing = {what: data for what, data in subjects.items() if what not in speeds}
    settings = {what: json.loads(what) for what in missing}
    sizes = ("batch_size", "validation_examples", "test_examples")
    examples = max((each[size] for each in settings.values() for size in sizes), default=0)
    if not torch.cuda.is_available() and any(s["device"] == "cuda" for s in settings.values()):
        raise UserError(
            "compute.device is cuda, but this machine has no GPU to measure on. Run this on a node "
            "with a GPU, or add --config 'compute={device: cpu}'."
        )
    with tempfile.TemporaryDirectory() as folder:
        for number, (what, data) in enumerate(missing.items(), 1):
            path = Path(folder) / data.path.name
            if not path.exists():
                _generate(data, examples, path)
            name = f"{settings[what]['model']}, batches of {settings[what]['batch_size']}"
            print(f"measuring {name} ({number} of {len(missing)})", file=sys.stderr, flush=True)
            speeds[what] = measure_apart(what, path)
            stored = {key: asdict(speed) for key, speed in speeds.items()}
            write_json(cache, {"git_commit": git_commit(), "speeds": stored})
    return speeds


def _read(cache: Path) -> dict[str, Speed]:
    """The speeds in a cache; none if it is missing, damaged or of another commit."""
    try:
        stored = json.loads(cache.read_text(encoding="utf-8"))
        if stored["git_commit"] == git_commit():
            return {what: Speed(**speed) for what, speed in stored["speeds"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        pass
    return {}


def _generate(dataset: Dataset, examples: int, path: Path) -> None:
    """Generate a dataset with this many examples in each split; of QM9, all molecules."""
    settings = generator_settings(dataset)
    if dataset.kind == "qm9":
        qm9.generate(settings, path)
    elif dataset.kind == "springs":
        sizes = {"systems": 3 * examples, "validation": examples, "test": examples}
        springs.generate(settings.model_copy(update=sizes), path)
    else:
        sizes = dict.fromkeys(constellations.SPLITS, examples)
        constellations.generate(settings.model_copy(update=sizes), path)


def measure_apart(what: str, data: Path) -> Speed:
    """Measure a subject in a new process."""
    command = [sys.executable, "-m", "lietransformer.forecast.speed", what, str(data)]
    process = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if process.returncode:
        model = json.loads(what)["model"]
        raise UserError(f"{model} could not be measured; the reason is printed above.")
    return Speed(**json.loads(process.stdout.splitlines()[-1]))


def measure(what: str, data: Path) -> Speed:
    """Measure a subject on a dataset of its task, in a process that has done nothing else."""
    settings = json.loads(what)
    n_train = None if settings["task"] == "qm9" else settings["batch_size"]
    # Without CUDA graphs: capturing one takes longer than the steps that are timed.
    given = {**settings, "data": data, "n_train": n_train, "graphs": False}
    config = RunConfig.model_validate(given)
    prepare_process(config)
    experiment = Experiment(config)
    # CPU time ignores what else runs on the machine, but misleads with a GPU or several threads.
    on_one_core = config.device == "cpu" and config.threads == 1
    clock = time.process_time if on_one_core else time.perf_counter
    start = clock() if on_one_core else time.time() - psutil.Process().create_time()
    training_step = TrainingStep(experiment, experiment.optimiser())
    batches = (batch for epoch in count() for batch in experiment.batches(epoch))
    tests: list[Evaluation] = []

    def step(batch: Any = None) -> None:
        training_step(batch or next(batches), 0, config.learning_rate).item()

    def test() -> None:
        tests.append(experiment.test("test"))

    # The first call of each allocates and compiles; the largest batch decides the peak memory.
    largest = to_device(experiment.largest_batch(), experiment.device)
    first = [_timed(lambda: step(largest), clock)]
    first += [_timed(work, clock) for work in (experiment.validate, test)]
    steps: list[float] = []
    while len(steps) < _FEWEST_STEPS or sum(steps) < _SECONDS:
        steps.append(_timed(step, clock))
    later = [fmean(steps), _timed(experiment.validate, clock), _timed(test, clock)]
    machine = describe_machine(experiment.device)
    test_bytes = sum(array.nbytes for array in tests[0].arrays.values())
    return Speed(
        step=later[0],
        validation=later[1] / settings["validation_examples"],
        test=later[2] / settings["test_examples"],
        start=start + sum(max(0.0, a - b) for a, b in zip(first, later, strict=True)),
        memory_gb=peak_memory_gb(),
        weight_bytes=sum(each.nbytes for each in experiment.model.parameters()),
        test_bytes=test_bytes / settings["test_examples"],
        gflops=_gflops(experiment.device, clock),
        processor=machine["gpu"] or machine["processor"],
        measured=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _timed(work: Callable[[], Any], clock: Callable[[], float]) -> float:
    started = clock()
    work()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return clock() - started


def _gflops(device: torch.device, clock: Callable[[], float]) -> float:
    """GFLOP/s of the product of a 2048×1024 and a 1024×1024 float32 matrix, the median of ten."""
    left, right = torch.ones(2048, 1024, device=device), torch.ones(1024, 1024, device=device)
    seconds = [_timed(lambda: left @ right, clock) for _ in range(13)][3:]
    return 2 * 2048 * 1024 * 1024 / median(seconds) / 1e9


if __name__ == "__main__":
    print(json.dumps(asdict(measure(sys.argv[1], Path(sys.argv[2])))))
