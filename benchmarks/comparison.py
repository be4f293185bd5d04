"""What a training step is compared with: the authors' release, the goals, what is committed."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch

from lietransformer.experiments.registry import TaskName
from lietransformer.machine import describe_machine

BASELINE = Path(__file__).with_name("baseline.json")
# A step this much slower than the committed one is marked: less could be the machine.
REGRESSION = 1.1


@dataclass(frozen=True)
class Row:
    """A training step of the paper; costs are in GEMM-GFLOP.

    Attributes:
        name: as the table calls it.
        task: what is trained.
        model: its preset.
        batch_size: examples in a step.
        original: cost in the authors' released code.
        goal: what it may cost here.
        goal_peak_gb: memory it may take here; None where nothing is demanded.
    """

    name: str
    task: TaskName
    model: str
    batch_size: int
    original: float
    goal: float
    goal_peak_gb: float | None = None


ROWS = (
    Row("springs LieTransformer-T2 842k", "springs", "LieTransformer-T2", 100, 453, 180),
    Row("springs LieTransformer-T2 139k", "springs", "LieTransformer-T2 small", 100, 208, 65),
    Row("springs LieTransformer-SE2 139k", "springs", "LieTransformer-SE2 small", 100, 535, 160),
    Row("springs LieConv-T2 895k", "springs", "LieConv-T2", 100, 368, 180),
    Row("constellations LieTransformer-T2", "constellations", "LieTransformer-T2", 32, 80, 25),
    Row("constellations LieTransformer-SE2", "constellations", "LieTransformer-SE2", 32, 88, 28),
    Row("QM9 LieTransformer-T3", "qm9", "LieTransformer-T3", 75, 2566, 600, goal_peak_gb=3),
    Row("QM9 LieConv-T3", "qm9", "LieConv-T3", 75, 875, 440),
)


@dataclass(frozen=True)
class Measurement:
    """What a row took.

    Attributes:
        name: of the row.
        gemm_gflop: cost of a step: seconds × gemm_gflops.
        peak_gb: the most memory that the row's own process used.
        goal_gemm_gflop: what it may cost.
        seconds: of a step, the median.
        gemm_gflops: GFLOP/s of the matrix product, the median.
        original_gemm_gflop: cost in the authors' released code.
        baseline: the committed cost, in GEMM-GFLOP; None if there is none.
        goal_peak_gb: memory it may take.
        compile_seconds: of the first step. Code that torch has compiled before is on disk.
    """

    name: str
    gemm_gflop: float
    peak_gb: float
    goal_gemm_gflop: float
    seconds: float
    gemm_gflops: float
    original_gemm_gflop: float
    baseline: float | None
    goal_peak_gb: float | None
    compile_seconds: float

    @property
    def half_way(self) -> float:
        """The middle between the authors' cost and the goal."""
        return (self.original_gemm_gflop + self.goal_gemm_gflop) / 2

    @property
    def takes_too_much_memory(self) -> bool:
        return self.goal_peak_gb is not None and self.peak_gb > self.goal_peak_gb

    @property
    def is_regression(self) -> bool:
        """Whether it is slower than the committed figure by more than the machine explains."""
        return self.baseline is not None and self.gemm_gflop > REGRESSION * self.baseline

    @property
    def marks(self) -> tuple[str, ...]:
        """What is met: the goal, in time and memory; or half of the way to it, in time."""
        if self.gemm_gflop <= self.goal_gemm_gflop and not self.takes_too_much_memory:
            marks = ["goal"]
        else:
            marks = ["half-way" if self.gemm_gflop <= self.half_way else "missed"]
        if self.takes_too_much_memory:
            marks.append(f"over {self.goal_peak_gb:g} GB")
        if self.is_regression:
            marks.append("slower than baseline")
        return tuple(marks)


def read_baseline(path: Path) -> dict[str, dict[str, Any]]:
    """The committed rows by name; none if there is no such file."""
    if not path.exists():
        return {}
    return {row["name"]: row for row in json.loads(path.read_text())}


def write_baseline(path: Path, measurements: Sequence[Measurement], threads: int) -> None:
    """Commit these rows; the others keep their figures."""
    machine = describe_machine(torch.device("cpu"))
    note = f"torch {machine['torch']}, {machine['processor']}, {threads} threads"
    figures = ("name", "gemm_gflop", "peak_gb", "seconds", "gemm_gflops", "compile_seconds")
    rows = read_baseline(path)
    for measurement in measurements:
        known = asdict(measurement)
        rows[measurement.name] = {key: known[key] for key in figures} | {"note": note}
    order = [row.name for row in ROWS if row.name in rows]
    content = json.dumps([rows[name] for name in order], indent=2, sort_keys=True)
    path.write_text(content + "\n")


def with_baseline(measurement: Measurement, baseline: dict[str, dict[str, Any]]) -> Measurement:
    """The same, beside the committed cost of this row."""
    row = baseline.get(measurement.name)
    return replace(measurement, baseline=None if row is None else row["gemm_gflop"])
