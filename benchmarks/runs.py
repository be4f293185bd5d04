"""What runs cost beside their steps, and how many threads a run should have.

python -m benchmarks.runs

- Cold start: seconds of a whole `lietransformer train` of one step, with its evaluation and test
  of one example: an upper bound of the time until the first step has been done.
- Share: what part of an epoch of training is not spent in steps, but in getting batches.
- Threads: runs per hour of two runs at once with one thread each, and of one run with two.
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.comparison import ROWS, Row
from benchmarks.train_step import generate, measure_apart, run_config, timed_step
from lietransformer.data.batches import to_device
from lietransformer.training.experiment import Experiment, prepare_process

_BATCHES = 20  # timed, after one that is not
# One model of each task, and for threads the small one of springs as well.
_MODELS = (
    "springs LieTransformer-T2 842k",
    "constellations LieTransformer-T2",
    "QM9 LieConv-T3",
)
_SMALL = "springs LieTransformer-T2 139k"
_ONE_STEP = ("epochs=1", "evaluations=1", "test_examples=1", "validation_examples=1")


def cold_start(row: Row, data: Path) -> float:
    """Seconds of the command for a single step."""
    program = Path(sys.executable).with_name("lietransformer")
    settings = [f"task={row.task}", f"model={row.model}", f"data={data}", "compile=false"]
    settings += [*_ONE_STEP, f"batch_size={row.batch_size}", *_one_batch(row)]
    with tempfile.TemporaryDirectory() as folder:
        command = [str(program), "train", "--out", f"{folder}/run"]
        for setting in settings:
            command += ["--set", setting]
        started = time.perf_counter()
        subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
        return time.perf_counter() - started


def _one_batch(row: Row) -> list[str]:
    """Settings for a training set of one batch."""
    if row.task == "constellations":
        return []  # always all of its examples: two batches in the file that `generate` makes
    return [f"n_train={row.batch_size}", *(["target=homo"] if row.task == "qm9" else [])]


def share_outside_of_steps(row: Row, data: Path, threads: int) -> float:
    """The part of an epoch of training that goes into getting batches."""
    config = run_config(row, data, threads)
    prepare_process(config)
    experiment = Experiment(config)
    optimiser = experiment.optimiser()
    loader, outside, inside = experiment.train, 0.0, 0.0
    epochs = range(1 + _BATCHES // len(loader))
    batches = (numbers for epoch in epochs for numbers in loader.batches(epoch))
    for number, numbers in zip(range(1 + _BATCHES), batches, strict=False):
        started = time.perf_counter()
        batch = to_device(loader.examples.take(numbers), experiment.device)
        getting = time.perf_counter() - started
        step = timed_step(experiment, optimiser, batch, number)
        if number > 0:
            outside, inside = outside + getting, inside + step
    return outside / (outside + inside)


def runs_per_hour(row: Row, data: Path, *, at_once: int, threads: int, steps: int) -> float:
    """How many runs of so many steps end in an hour, from the time of a step."""

    def seconds(_: int) -> float:
        return measure_apart(row, data, repetitions=1, threads=threads).seconds

    with ThreadPoolExecutor(at_once) as pool:
        slowest = max(pool.map(seconds, range(at_once)))
    return at_once * 3600 / (steps * slowest)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    if arguments is None:
        arguments = sys.argv[1:]
    rows = {row.name: row for row in ROWS}
    if arguments:  # in a process of its own
        name, file = arguments
        print(share_outside_of_steps(rows[name], Path(file), threads=1))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        tasks = {rows[name].task for name in _MODELS}
        data = {task: generate(task, Path(folder)) for task in tasks}
        print(f"{'':<36}{'cold start':>12}{'not in steps':>14}")
        for name in _MODELS:
            path = data[rows[name].task]
            command = [sys.executable, "-m", "benchmarks.runs", name, str(path)]
            output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            share = float(output.splitlines()[-1])
            print(f"{name:<36}{cold_start(rows[name], path):>10.1f} s{share:>14.1%}", flush=True)
        print(f"\n{'runs of 1,000 steps per hour':<36}{'2 × 1 thread':>14}{'1 × 2 threads':>15}")
        for name in (*_MODELS, _SMALL):
            path = data[rows[name].task]
            two = runs_per_hour(rows[name], path, at_once=2, threads=1, steps=1000)
            one = runs_per_hour(rows[name], path, at_once=1, threads=2, steps=1000)
            print(f"{name:<36}{two:>14.1f}{one:>15.1f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
