"""What runs cost beside their steps, and how many threads a run should have.

python -m benchmarks.runs

- First step: seconds from the start of `lietransformer train` until its first training step has
  been done and evaluated, not compiled by torch. With C code that is there already, and the first
  time, when it has to be compiled.
- Not the model: of the time of a run with the paper's settings, the parts that go into getting
  batches and into evaluations.
- Threads: runs per hour of the laptop tier on all cores, with one thread for each run and with as
  many as there are cores, from `lietransformer forecast`.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.comparison import ROWS, Row
from benchmarks.train_step import RowFailed, generate, paper_config, run_config
from lietransformer.data.constellations import ConstellationsConfig
from lietransformer.data.qm9 import QM9Config
from lietransformer.data.springs import SpringsConfig
from lietransformer.forecast.workload import workload
from lietransformer.training.config import available_cores
from lietransformer.training.experiment import Experiment, prepare_process
from lietransformer.training.step import TrainingStep

# One model of each task.
MODELS = (
    "springs LieTransformer-T2 842k",
    "constellations LieTransformer-T2",
    "QM9 LieConv-T3",
)
_BATCHES = 20  # timed, after one that is not
_ONE_STEP = {"epochs": 1, "evaluations": 1, "validation_examples": 1, "test_examples": 1}
_TIER = "laptop"
_PAPER_DATA = {
    "springs": SpringsConfig(),
    "constellations": ConstellationsConfig(),
    "qm9": QM9Config(),
}


def seconds_to_first_step(row: Row, data: Path, cache: Path | None = None) -> float:
    """Until `lietransformer train` shows its first step.

    Args:
        row: what to train.
        data: its dataset, of which one batch is used where the task lets one choose.
        cache: where compiled C code is kept; the user's by default.
    """
    config = run_config(row, data, threads=1)
    settings: dict[str, Any] = {**_ONE_STEP, "compile": False, "batch_size": row.batch_size}
    settings |= config.model_dump(mode="json", include={"task", "model", "data", "target"})
    if row.task != "constellations":
        settings["n_train"] = row.batch_size
    environment = os.environ if cache is None else {**os.environ, "XDG_CACHE_HOME": str(cache)}
    with tempfile.TemporaryDirectory() as folder:
        command = [*_lietransformer("train"), "--out", f"{folder}/run", "--tracking", "none"]
        for name, value in settings.items():
            command += ["--set", f"{name}={json.dumps(value)}"]
        started = time.perf_counter()
        with subprocess.Popen(
            command, env=environment, text=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        ) as process:
            assert process.stderr is not None
            for line in process.stderr:
                if "epoch 1 of 1," in line:
                    seconds = time.perf_counter() - started
                    process.stderr.read()
                    return seconds
    raise RowFailed(f"{' '.join(command)} ended with exit code {process.returncode}")


def shares(row: Row, data: Path) -> tuple[float, float]:
    """Of a run with the paper's settings, the shares of getting batches and of evaluations."""
    config = run_config(row, data, threads=1)
    prepare_process(config)
    experiment = Experiment(config)
    step = TrainingStep(experiment, experiment.optimiser())
    epochs = range(2 + _BATCHES // len(experiment.train))
    batches = (batch for epoch in epochs for batch in experiment.batches(epoch))
    getting, training = 0.0, 0.0
    for number in range(1 + _BATCHES):
        started = time.perf_counter()
        batch = next(batches)
        got = time.perf_counter()
        step(batch, number, config.learning_rate).item()
        if number > 0:  # the first time, memory is fetched and code compiled
            getting, training = getting + got - started, training + time.perf_counter() - got
    experiment.validate()
    started = time.perf_counter()
    experiment.validate()
    of_an_example = (time.perf_counter() - started) / len(experiment.validation)
    work = workload(paper_config(row, data), _PAPER_DATA[row.task])
    getting, training = (work.steps / _BATCHES * seconds for seconds in (getting, training))
    evaluating = work.validations * work.validated * of_an_example
    total = getting + training + evaluating
    return getting / total, evaluating / total


def runs_per_hour(threads: int, folder: Path) -> float:
    """Of the laptop tier on all cores, with so many threads each.

    Forecasts are made beside each other, as the runs would be.
    """
    at_once = max(1, available_cores() // threads)

    def forecast(number: int) -> dict[str, Any]:
        out = folder / f"{threads}-threads-{number}.json"
        command = [*_lietransformer("forecast"), "--out", str(out), "--results", str(folder)]
        command += ["--config", f"tier={_TIER}", f"compute__threads={threads}"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        found: dict[str, Any] = json.loads(out.read_text())
        return found

    with ThreadPoolExecutor(at_once) as pool:
        return sum(throughput(found) for found in pool.map(forecast, range(at_once)))


def throughput(forecast: dict[str, Any]) -> float:
    """Runs per hour of one job at a time, by a forecast."""
    jobs = [job for job in forecast["jobs"] if job["seeds"]]
    return 3600 * sum(len(job["seeds"]) for job in jobs) / sum(job["seconds"] for job in jobs)


def _lietransformer(command: str) -> list[str]:
    return [str(Path(sys.executable).with_name("lietransformer")), command]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    arguments = sys.argv[1:] if arguments is None else arguments
    rows = {row.name: row for row in ROWS}
    if arguments:  # one model, in a process of its own
        name, file = arguments
        print(json.dumps(shares(rows[name], Path(file))))
        return 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        data = {rows[name].task: generate(rows[name].task, folder) for name in MODELS}
        heads = ("first step", "C compiled", "getting batches", "evaluating")
        print(f"{'':<36}" + "".join(f"{head:>17}" for head in heads))
        for name in MODELS:
            row, path = rows[name], data[rows[name].task]
            compiling = seconds_to_first_step(row, path, cache=folder / name)
            compiled = seconds_to_first_step(row, path, cache=folder / name)
            command = [sys.executable, "-m", "benchmarks.runs", name, str(path)]
            output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            getting, evaluating = json.loads(output.splitlines()[-1])
            seconds = f"{compiled:>15.1f} s{compiling:>15.1f} s"
            print(f"{name:<36}{seconds}{getting:>17.2%}{evaluating:>17.2%}", flush=True)
        print(f"\nruns per hour of the {_TIER} tier on {available_cores()} cores")
        for threads in sorted({1, available_cores()}):
            found = runs_per_hour(threads, folder)
            print(f"{threads} thread(s) for each run: {found:.1f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
