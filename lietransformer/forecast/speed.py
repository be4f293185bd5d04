"""How fast a model is on this machine: a few steps and evaluations with the real engine.

Run as a program, it measures one model: each has a process of its own, for its peak memory and so
that none affects another.
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import numpy as np
import psutil
import torch

from lietransformer.data.batches import to_device
from lietransformer.forecast.workload import Workload
from lietransformer.machine import describe_machine, peak_memory_gb
from lietransformer.training.config import RunConfig
from lietransformer.training.experiment import Experiment, prepare_process
from lietransformer.training.step import TrainingStep

_WHAT_MATTERS = {
    *("task", "model", "architecture", "batch_size", "evaluation_batch_size"),
    *("precision", "device", "threads", "compile"),
}
_FEWEST_STEPS = 3
_GOLDEN = 0.618033988749895


@dataclass(frozen=True)
class Subject:
    """What decides how fast a run is: runs that agree in it are measured once.

    Attributes:
        settings: of the run, those that matter.
        validated: examples at a time in an evaluation.
        tested: examples at a time in a test.
    """

    settings: str
    validated: int
    tested: int

    @classmethod
    def of(cls, run: RunConfig, work: Workload) -> "Subject":
        """The subject that stands for a run."""
        settings = {**run.model_dump(mode="json", include=_WHAT_MATTERS), "target": run.target}
        if run.target is not None:
            settings["target"] = "homo"  # each costs the same
        if run.task == "springs":
            settings["batch_size"] = min(run.batch_size, run.n_train or run.batch_size)
        at_once = run.evaluation_batch_size
        return cls(
            json.dumps(settings, sort_keys=True),
            min(work.validated, at_once),
            min(work.tested, at_once),
        )

    @property
    def device(self) -> str:
        """Where it is computed: cpu or cuda."""
        return str(json.loads(self.settings)["device"])

    @property
    def name(self) -> str:
        """For people."""
        settings = json.loads(self.settings)
        words = f"{settings['model']} on {settings['task']}, batches of {settings['batch_size']}"
        return words + (", compiled" if settings["compile"] else "")


@dataclass(frozen=True)
class Speed:
    """What was measured. Times are in seconds.

    Attributes:
        step: of a training step, the mean.
        fastest: training step.
        slowest: training step.
        steps: how many were timed.
        validation: of an example in an evaluation.
        test: of an example in a test.
        preparation: what a process needs before its first step: to start, to read, to compile.
        memory_gb: the most that the process used.
        gpu_memory_gb: the most that it used of the GPU's; null without one.
        data_bytes: of the dataset that it was measured with, which is part of the memory.
        parameters: of the model.
        test_bytes: numbers that are kept of each example of a test.
        gflops: of a product of float32 matrices in the same process: the machine's speed.
        clock: "cpu" if these are seconds of the processor, which other processes do not change;
            "wall" where those would not do, on a GPU and with several threads.
        measured: when.
        machine: where.
    """

    step: float
    fastest: float
    slowest: float
    steps: int
    validation: float
    test: float
    preparation: float
    memory_gb: float
    gpu_memory_gb: float | None
    data_bytes: int
    parameters: int
    test_bytes: float
    gflops: float
    clock: Literal["cpu", "wall"]
    measured: str
    machine: dict[str, Any]

    def scaled(self, gflops: float) -> "Speed":
        """As it would be on a machine of another speed, if all times are in proportion."""
        names = ("step", "fastest", "slowest", "validation", "test", "preparation")
        factor = self.gflops / gflops
        times = {name: getattr(self, name) * factor for name in names}
        return replace(self, **times, gflops=gflops)


class MeasurementFailed(Exception):
    """A model could not be measured; the reason has been shown."""


def measure_apart(subject: Subject, data: Path, seconds: float) -> Speed:
    """Measure in a new process."""
    arguments = json.dumps({**asdict(subject), "data": str(data), "seconds": seconds})
    command = [sys.executable, "-m", "lietransformer.forecast.speed", arguments]
    process = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if process.returncode:
        raise MeasurementFailed(f"exit code {process.returncode}")
    return Speed(**json.loads(process.stdout.splitlines()[-1]))


def measure(subject: Subject, data: Path, seconds: float) -> Speed:
    """Measure in this process, which should have done nothing else before.

    Args:
        subject: what to measure.
        data: a dataset of its task, which may be smaller than that of the runs.
        seconds: how long to time training steps, at least three.
    """
    experiment = _experiment(subject, data)
    config = experiment.config
    by_processor = config.device == "cpu" and config.threads == 1
    clock = time.process_time if by_processor else time.perf_counter
    started = clock() if by_processor else time.time() - psutil.Process().create_time()
    training_step = TrainingStep(experiment, experiment.optimiser())
    batches = _spread(experiment)

    def step() -> None:
        """What the engine (training/loop.py) does with a batch."""
        training_step(next(batches), 0, config.learning_rate).item()

    def timed(work: Callable[[], Any]) -> float:
        return _timed(work, clock)

    # The first time, memory is fetched and code compiled.
    first_step, *steps = timed(step), timed(step)
    first_validation, validation = timed(experiment.validate), timed(experiment.validate)
    first_test, test = first_validation, validation
    if subject.tested != subject.validated:
        first_test, test = (timed(lambda: experiment.test("test")) for _ in range(2))
    while len(steps) < _FEWEST_STEPS or sum(steps) < seconds:
        steps.append(timed(step))
    mean = sum(steps) / len(steps)
    firsts = (first_step - mean, first_validation - validation, first_test - test)
    arrays = experiment.test("test").arrays.values()
    is_cuda = experiment.device.type == "cuda"
    return Speed(
        step=mean,
        fastest=min(steps),
        slowest=max(steps),
        steps=len(steps),
        validation=validation / subject.validated,
        test=test / subject.tested,
        preparation=started + sum(max(0.0, excess) for excess in firsts),
        memory_gb=peak_memory_gb(),
        gpu_memory_gb=torch.cuda.max_memory_allocated() / 1e9 if is_cuda else None,
        data_bytes=data.stat().st_size,
        parameters=experiment.parameters,
        test_bytes=sum(array.nbytes for array in arrays) / subject.tested,
        gflops=_gflops(experiment.device, clock),
        clock="cpu" if by_processor else "wall",
        measured=datetime.now(UTC).isoformat(timespec="seconds"),
        machine=describe_machine(experiment.device),
    )


def _experiment(subject: Subject, data: Path) -> Experiment:
    settings = json.loads(subject.settings)
    config = RunConfig.model_validate(
        {
            **settings,
            "data": data,
            "n_train": settings["batch_size"] if settings["task"] == "springs" else None,
            "validation_examples": subject.validated,
            "test_examples": subject.tested,
            # Recording takes longer than the steps that are timed; a run with graphs is faster.
            "graphs": False,
        }
    )
    prepare_process(config)
    return Experiment(config)


def _timed(work: Callable[[], Any], clock: Callable[[], float]) -> float:
    started = clock()
    work()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return clock() - started


def _spread(experiment: Experiment) -> Iterator[Any]:
    """Training batches without end; where sizes differ, few of them stand for an epoch.

    The first one is the largest, so that peak memory is that of training.
    """
    loader = experiment.train
    numbers = [each for each in loader.batches(0) if len(each) == loader.batch_size]
    numbers = numbers or loader.batches(0)
    sizes = loader.examples.sizes
    if sizes is not None:
        numbers.sort(key=lambda each: -int(sizes[each].max()))
    place = 0.0
    while True:
        yield to_device(loader.examples.take(numbers[int(place * len(numbers))]), experiment.device)
        place = (place + _GOLDEN) % 1


def _gflops(device: torch.device, clock: Callable[[], float]) -> float:
    """GFLOP/s of the product of a 2048×1024 and a 1024×1024 float32 matrix, the median of ten."""
    left, right = torch.ones(2048, 1024, device=device), torch.ones(1024, 1024, device=device)
    seconds = [_timed(lambda: left @ right, clock) for _ in range(13)][3:]
    return float(2 * 2048 * 1024 * 1024 / np.median(seconds) / 1e9)


def main() -> None:
    """Measure what the argument says; the last line of the output is the result."""
    given = json.loads(sys.argv[1])
    data, seconds = Path(given.pop("data")), given.pop("seconds")
    print(json.dumps(asdict(measure(Subject(**given), data, seconds))))


if __name__ == "__main__":
    main()
