"""Time and memory of one training step of the paper's models, beside the authors' and the goals.

python -m benchmarks.train_step [--json] [--only NAME ...] [--repetitions N] [--threads N]

The unit is the GEMM-GFLOP: seconds of a step × GFLOP/s that a float32 matrix product reaches in
the same process with the same threads. It cancels most of the machine. Each row is measured in
several processes, of which the median counts.
"""

import argparse
import json
import math
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch

from benchmarks.comparison import (
    BASELINE,
    ROWS,
    Measurement,
    Row,
    read_baseline,
    with_baseline,
    write_baseline,
)
from lietransformer.data.batches import to_device
from lietransformer.experiments.qm9.properties import PROPERTIES
from lietransformer.experiments.registry import TaskName
from lietransformer.machine import peak_memory_gb
from lietransformer.processes import available_cores
from lietransformer.training.config import RunConfig
from lietransformer.training.experiment import Experiment, prepare_process
from lietransformer.training.step import TrainingStep

WARM_UP_STEPS = 2
TIMED_STEPS = 7
_MATRIX_PRODUCTS = 5  # timed before each step, and after the last one


# Examples of one size can be few. Molecules differ in size, so of those all are needed.
_DATA_SETTINGS: dict[TaskName, tuple[str, ...]] = {
    "springs": ("systems=300", "validation=50", "test=50"),
    "constellations": ("train=192", "validation=32", "test=32"),
    "qm9": (),
}
_SPRINGS_SYSTEMS = 100
_PAPER_SPRINGS_SYSTEMS = 3_000


class RowFailed(Exception):
    """A row could not be measured."""


# ---- one row, in a process of its own


def paper_config(row: Row, data: Path, **others: Any) -> RunConfig:
    """The paper's run of this row, on all examples."""
    given: dict[str, Any] = {"task": row.task, "model": row.model, "data": data}
    if row.task == "qm9":
        given["target"] = PROPERTIES[0].name  # each costs the same
    if row.task == "springs":
        given["n_train"] = _PAPER_SPRINGS_SYSTEMS
    return RunConfig.model_validate(given | others)


def run_config(row: Row, data: Path, threads: int) -> RunConfig:
    """The paper's run of this row, but for the number of examples."""
    paper = paper_config(row, data)
    return paper_config(
        row,
        data,
        n_train=_SPRINGS_SYSTEMS if row.task == "springs" else None,
        batch_size=row.batch_size,
        precision="float32",
        device="cpu",
        threads=threads,
        compile=paper.compile,  # which the short run alone would not be worth
    )


def measure(row: Row, data: Path, *, threads: int) -> Measurement:
    """Train for a few steps in this process, which should have done nothing else before."""
    config = run_config(row, data, threads)
    prepare_process(config)
    experiment = Experiment(config)
    step = TrainingStep(experiment, experiment.optimiser())
    # A shared machine is faster and slower by turns: a step is compared with products beside it.
    rates, times = [_matrix_product_rate()], []
    for number, batch in enumerate(_batches(experiment, TIMED_STEPS)):
        times.append(_timed(step, batch, number, config.learning_rate))
        rates.append(_matrix_product_rate())
    costs = [time * sum(beside) / 2 for time, beside in zip(times, pairwise(rates), strict=True)]
    cost = statistics.median(costs[WARM_UP_STEPS:])
    seconds = statistics.median(times[WARM_UP_STEPS:])
    return Measurement(
        name=row.name,
        gemm_gflop=cost,
        peak_gb=peak_memory_gb(),
        goal_gemm_gflop=row.goal,
        seconds=seconds,
        gemm_gflops=cost / seconds,
        original_gemm_gflop=row.original,
        baseline=None,
        goal_peak_gb=row.goal_peak_gb,
        compile_seconds=times[0],
    )


def _batches(experiment: Experiment, count: int) -> Iterator[Any]:
    """Full batches of the first epoch of training: those to warm up with, then those to time.

    Where their sizes differ, the first ones are the largest of the epoch, so that peak memory
    is that of training; the timed ones are spread evenly over all from small to large, so that
    few of them stand for the epoch.
    """
    loader = experiment.train
    sizes = loader.examples.sizes
    full = [numbers for numbers in loader.batches(0) if len(numbers) == loader.batch_size]
    if sizes is not None:
        full.sort(key=lambda numbers: int(sizes[numbers].max()))
    timed = (full[int((k + 0.5) / count * len(full))] for k in range(count))
    for numbers in (*WARM_UP_STEPS * [full[-1]], *timed):
        yield to_device(loader.examples.take(numbers), experiment.device)


def _timed(step: TrainingStep, batch: Any, number: int, rate: float) -> float:
    """Seconds of what the engine (training/loop.py) does with a batch."""
    started = time.perf_counter()
    value = step(batch, number, rate).item()
    seconds = time.perf_counter() - started
    if not math.isfinite(value):
        raise RowFailed(f"training loss {value} at step {number}")
    return seconds


def _matrix_product_rate() -> float:
    """GFLOP/s of the product of a 2048×1024 and a 1024×1024 float32 matrix, the median of some."""
    rows, inner, columns = 2048, 1024, 1024
    generator = torch.Generator().manual_seed(0)
    left = torch.randn(rows, inner, generator=generator)
    right = torch.randn(inner, columns, generator=generator)
    product = torch.empty(rows, columns)
    times = []
    for _ in range(3 + _MATRIX_PRODUCTS):
        started = time.perf_counter()
        torch.mm(left, right, out=product)
        times.append(time.perf_counter() - started)
    # The first ones start threads and fetch memory.
    return 2 * rows * inner * columns / statistics.median(times[3:]) / 1e9


# ---- all rows


def generate(task: TaskName, folder: Path) -> Path:
    """The dataset of a task, as a user would write it."""
    path = folder / f"{task}.h5"
    program = Path(sys.executable).with_name("lietransformer")
    command = [str(program), "data", task, "--out", str(path)]
    for setting in _DATA_SETTINGS[task]:
        command += ["--set", setting]
    _output_of(command)
    return path


def measure_apart(row: Row, data: Path, *, repetitions: int, threads: int) -> Measurement:
    """Measure in new processes, for the peak memory and so that no row affects another.

    Of the repetitions, the one of the median cost.
    """
    command = [sys.executable, "-m", "benchmarks.train_step", "--row", row.name]
    command += ["--data", str(data), "--threads", str(threads)]
    outputs = [_output_of(command) for _ in range(repetitions)]
    found = [Measurement(**json.loads(output.splitlines()[-1])) for output in outputs]
    return sorted(found, key=lambda measurement: measurement.gemm_gflop)[(len(found) - 1) // 2]


def _output_of(command: list[str]) -> str:
    """Run a program of this project; its messages are shown, its output is returned."""
    folder = Path(__file__).parents[1]
    process = subprocess.run(command, stdout=subprocess.PIPE, text=True, cwd=folder, check=False)
    if process.returncode:
        raise RowFailed(f"{' '.join(command)} ended with exit code {process.returncode}")
    return process.stdout


def measure_all(
    rows: Sequence[Row], *, repetitions: int, threads: int
) -> dict[str, Measurement | None]:
    """What each row took, by name; None where it failed, of which the reason is shown."""
    measured: dict[str, Measurement | None] = {}
    datasets: dict[str, Path] = {}
    with tempfile.TemporaryDirectory() as folder:
        for row in rows:
            print(f"measuring {row.name}", file=sys.stderr, flush=True)
            try:
                if row.task not in datasets:
                    datasets[row.task] = generate(row.task, Path(folder))
                measured[row.name] = measure_apart(
                    row, datasets[row.task], repetitions=repetitions, threads=threads
                )
            except RowFailed as error:
                print(f"{row.name} failed: {error}", file=sys.stderr, flush=True)
                measured[row.name] = None
    return measured


# ---- the command


def table(measured: dict[str, Measurement | None]) -> str:
    """All rows for reading."""
    headings = ("original", "goal", "half-way", "measured", "baseline", "peak GB")
    lines = [f"{'training step':<36}" + "".join(f"{text:>10}" for text in headings) + "  met"]
    for name, row in measured.items():
        if row is None:
            lines.append(f"{name:<36}failed")
            continue
        cells = (
            f"{row.original_gemm_gflop:.0f}",
            f"{row.goal_gemm_gflop:.0f}",
            f"{row.half_way:.0f}",
            f"{row.gemm_gflop:.0f}",
            "-" if row.baseline is None else f"{row.baseline:.0f}",
            f"{row.peak_gb:.1f}" + (f" of {row.goal_peak_gb:g}" if row.goal_peak_gb else ""),
        )
        line = f"{name:<36}" + "".join(f"{cell:>10}" for cell in cells)
        lines.append(line + "  " + ", ".join(row.marks))
    lines.append("GEMM-GFLOP: seconds of a step × GFLOP/s of a float32 matrix product")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the rows that were asked for and print the figures."""
    options = _parser().parse_args(arguments)
    settings = {"repetitions": options.repetitions, "threads": options.threads}
    if options.row is not None:
        row = next(row for row in ROWS if row.name == options.row)
        print(json.dumps(asdict(measure(row, options.data, threads=options.threads))))
        return 0
    rows = [row for row in ROWS if options.only is None or row.name in options.only]
    measured = measure_all(rows, **settings)
    baseline = read_baseline(BASELINE)
    compared = {
        name: None if row is None else with_baseline(row, baseline)
        for name, row in measured.items()
    }
    succeeded = [row for row in compared.values() if row is not None]
    if options.json:
        print(json.dumps([asdict(row) for row in succeeded], indent=2))
    else:
        print(table(compared))
    if options.update_baseline:
        write_baseline(BASELINE, succeeded, options.threads)
    return 0 if len(succeeded) == len(rows) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.train_step",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    names = [row.name for row in ROWS]
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument(
        "--only",
        nargs="+",
        action="extend",
        choices=names,
        metavar="NAME",
        help="measure these rows only: " + ", ".join(f'"{name}"' for name in names),
    )
    parser.add_argument(
        "--repetitions",
        type=_count,
        default=3,
        metavar="N",
        help="processes for each row (default: 3)",
    )
    parser.add_argument(
        "--threads",
        type=_count,
        default=min(2, available_cores()),
        metavar="N",
        help="CPU threads (default: 2, as for the figures to beat)",
    )
    parser.add_argument(
        "--update-baseline", action="store_true", help=f"write the figures to {BASELINE.name}"
    )
    # What the process of a single row is told.
    parser.add_argument("--row", choices=names, help=argparse.SUPPRESS)
    parser.add_argument("--data", type=Path, help=argparse.SUPPRESS)
    return parser


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("at least 1 is needed")
    return number


if __name__ == "__main__":
    sys.exit(main())
