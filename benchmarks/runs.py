"""What runs cost beside their steps, and how many threads a run should have.

python -m benchmarks.runs

- First step: seconds from the start of `lietransformer train` until its first training step has
  been done and evaluated, not compiled by torch. With C code that is there already, and the first
  time, when it has to be compiled.
- Not the model: of the time of a run with the paper's settings, the parts that go into getting
  batches and into evaluations.
- Threads: runs per hour of the workstation tier, springs at n = 10, on all cores, with one thread
  for each run and with as many as there are cores; from a few steps of each run, in processes
  beside each other.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

from benchmarks.comparison import ROWS, Row
from benchmarks.train_step import RowFailed, generate, paper_config, run_config
from lietransformer.experiments.constellations.plan import ConstellationsConfig
from lietransformer.experiments.qm9.plan import QM9Config
from lietransformer.experiments.springs.plan import SpringsConfig
from lietransformer.forecast.workload import planned, workload
from lietransformer.processes import available_cores
from lietransformer.sweep.jobs import Configuration
from lietransformer.sweep.plan import Plan
from lietransformer.sweep.reading import resolve
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
_SWEEP = {
    "tier": "workstation",
    "published": "ignore",
    "springs": {
        "data_efficiency": {"n_train": [10]},
        "parameter_efficiency": {"n_train": 10},
        "ablations": {"kinds": []},
    },
}
_TIERS = Path(__file__).parents[1] / "workflow" / "tiers"
_STEPS = 4  # timed of each run of the tier, after one that is not
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
    batches = _endless(experiment)
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


def sweep(folder: Path, threads: int) -> Plan:
    """What threads are compared by."""
    compute = {"device": "cpu", "threads": threads}
    return Plan(resolve(_SWEEP | {"compute": compute}, _TIERS), folder)


def seconds_of_all_runs(folder: Path, threads: int) -> float:
    """Training of the sweep, one run after the other, from a few steps of each.

    Args:
        folder: of the datasets that `generate` made.
        threads: of a run.
    """
    plan = sweep(folder, threads)
    return sum(_seconds_of_runs(plan, each, folder) for each in plan.configurations)


def _seconds_of_runs(plan: Plan, configuration: Configuration, folder: Path) -> float:
    data = {"data": folder / f"{configuration.task}.h5"}
    given = replace(configuration, settings=configuration.settings | data)
    config, work = planned(plan, given)
    prepare_process(config)
    experiment = Experiment(config)
    step = TrainingStep(experiment, experiment.optimiser())
    times = []
    for number, batch in zip(range(1 + _STEPS), _endless(experiment), strict=False):
        started = time.perf_counter()
        step(batch, number, config.learning_rate).item()
        times.append(time.perf_counter() - started)
    return len(configuration.seeds) * work.steps * statistics.median(times[1:])


def _endless(experiment: Experiment) -> Iterator[Any]:
    """Training batches, epoch after epoch."""
    return (batch for epoch in count() for batch in experiment.batches(epoch))


def runs_per_hour(folder: Path, threads: int) -> float:
    """Runs of the sweep on all cores, with this number of threads each."""
    at_once = max(1, available_cores() // threads)
    with ThreadPoolExecutor(at_once) as pool:
        seconds = list(pool.map(_apart, at_once * [("all", str(folder), str(threads))]))
    runs = sum(len(each.seeds) for each in sweep(folder, threads).configurations)
    return sum(3600 * runs / each for each in seconds)


def _apart(arguments: Sequence[str]) -> Any:
    """What this program prints for some arguments, in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.runs", *arguments]
    process = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True)
    if process.returncode:
        raise RowFailed(f"{' '.join(command)} ended with exit code {process.returncode}")
    return json.loads(process.stdout.splitlines()[-1])


def _lietransformer(command: str) -> list[str]:
    return [str(Path(sys.executable).with_name("lietransformer")), command]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    rows = {row.name: row for row in ROWS}
    match sys.argv[1:] if arguments is None else arguments:
        case ["shares", name, file]:
            print(json.dumps(shares(rows[name], Path(file))))
            return 0
        case ["all", folder, threads]:
            print(json.dumps(seconds_of_all_runs(Path(folder), int(threads))))
            return 0
    with tempfile.TemporaryDirectory() as temporary:
        _measure_and_print([rows[name] for name in MODELS], Path(temporary))
    return 0


def _measure_and_print(rows: Sequence[Row], folder: Path) -> None:
    data = {row.task: generate(row.task, folder) for row in rows}
    heads = ("first step", "C compiled", "getting batches", "evaluating")
    print(f"{'':<36}" + "".join(f"{head:>17}" for head in heads))
    for row in rows:
        compiling = seconds_to_first_step(row, data[row.task], cache=folder / row.name)
        compiled = seconds_to_first_step(row, data[row.task], cache=folder / row.name)
        getting, evaluating = _apart(["shares", row.name, str(data[row.task])])
        seconds = f"{compiled:>15.1f} s{compiling:>15.1f} s"
        print(f"{row.name:<36}{seconds}{getting:>17.2%}{evaluating:>17.2%}", flush=True)
    print(f"\nruns per hour of the {_SWEEP['tier']} tier on {available_cores()} cores")
    for threads in sorted({1, available_cores()}):
        print(f"threads of a run: {threads}{runs_per_hour(folder, threads):>12.1f}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
