"""From measured speeds and a plan to core-hours or GPU-hours, wall time, memory and disk."""

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from lietransformer.forecast.speed import Speed, subject
from lietransformer.forecast.workload import Workload, planned
from lietransformer.layout import run_name
from lietransformer.machine import git_commit
from lietransformer.sweep.jobs import Pack
from lietransformer.sweep.plan import Plan
from lietransformer.training.run_folder import RunFolder

_PRICES_SCHEMA_VERSION = 1
# What a price is: in the prices file, and below the printed forecast.
_GPU = "GPU of {gflops:,.0f} GFLOP/s (float32)"
_SCALED = (
    "GPU-h: hours of a {gpu}, scaled by its speed in matrix products: a lower bound, which leaves "
    "out the time of launching kernels."
)
_NOT_INCLUDED = (
    "Not included: queueing; datasets (minutes and 0.5 GB at the paper's sizes); measurements, "
    "tables and figures (minutes)."
)


@dataclass(frozen=True)
class Job:
    """One training job of the workflow."""

    pack: Pack
    run_seconds: float  # of each run: training, evaluations and tests
    seconds: float  # of the whole job
    may_stop_early: bool  # whether these are upper bounds
    memory_gb: float  # at its peak
    disk_bytes: float  # of the run folders

    @property
    def part(self) -> str:
        """The part of the sweep; the first one if several need the job."""
        return next(iter(self.pack.configuration.parts))

    @property
    def is_done(self) -> bool:
        return self.pack.summary.exists()


class Forecast:
    """The cost of a sweep.

    Args:
        plan: the sweep.
        speeds: the speed of each subject.
        at_once: jobs that run at the same time.
        gflops: GFLOP/s of the GPU to forecast for; None: the machine that was measured.
    """

    def __init__(
        self, plan: Plan, speeds: Mapping[str, Speed], *, at_once: int, gflops: float | None = None
    ) -> None:
        self.plan, self.at_once, self.gflops = plan, at_once, gflops
        runs = {each.folder: planned(plan, each) for each in plan.trained}
        on_gpu = gflops is not None or any(run.device == "cuda" for run, _ in runs.values())
        self.unit, self._cores = ("GPU-h", 1) if on_gpu else ("core-h", plan.config.compute.threads)
        self.jobs, used = [], set()
        for pack in plan.packs.values():
            run, work = runs[pack.configuration.folder]
            speed = speeds[subject(run, work)]
            self.jobs.append(_job(pack, work, speed, speed.gflops / (gflops or speed.gflops)))
            used.add(speed)
        self._processors = ", ".join(sorted({speed.processor for speed in used}))
        self._measured = min((speed.measured for speed in used), default="")

    @property
    def wall_seconds(self) -> float:
        """Time until the last job ends, if each starts as soon as another ends."""
        ends = [0.0] * self.at_once
        for job in self.jobs:
            if not job.is_done:
                heapq.heapreplace(ends, ends[0] + job.seconds)
        return max(ends)

    def prices(self) -> dict[str, Any]:
        """GPU-hours of one run of each configuration, by its name, as JSON."""
        assert self.gflops is not None
        hours = {
            run_name(job.pack.configuration.labels): job.seconds / len(job.pack.seeds) / 3600
            for job in self.jobs
        }
        return {
            "schema_version": _PRICES_SCHEMA_VERSION,
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "git_commit": git_commit(),
            "gpu": _GPU.format(gflops=self.gflops),
            "measured_on": self._processors,
            "hours": {name: float(f"{each:.3g}") for name, each in hours.items()},
        }

    def text(self) -> str:
        """A table by part of the sweep, the wall time, and notes."""
        heads = ("part", "jobs", "done", "runs", self.unit, "longest job", "memory", "disk")
        rows = [heads, *(self._row(part, jobs) for part, jobs in self._parts().items())]
        left = self._hours(job.seconds for job in self.jobs if not job.is_done)
        return (
            f"{_table(rows)}\n\nWall time of what is left ({left}) with {self.at_once} jobs at a "
            f"time: {self.wall_seconds / 3600:,.2f} h\n\n" + "\n".join(self._notes())
        )

    def comparison(self) -> str:
        """A table of what finished runs were forecast to take and took."""
        rows = [("part", "finished", "forecast", "took", "took/forecast")]
        for part, jobs in self._parts().items():
            folders = ((job, RunFolder(path)) for job in jobs for path in job.pack.runs)
            runs = [(job, folder.result()) for job, folder in folders if folder.is_done]
            forecast = [job.run_seconds for job, _ in runs]
            took = [sum(result["seconds"].values()) for _, result in runs]
            ratio = f"{sum(took) / sum(forecast):.2f}" if runs else "–"
            rows.append((part, f"{len(runs)}", self._hours(forecast), self._hours(took), ratio))
        return _table(rows)

    def _parts(self) -> dict[str, list[Job]]:
        """The jobs of each part, and all of them as the last."""
        parts: dict[str, list[Job]] = {}
        for job in self.jobs:
            parts.setdefault(job.part, []).append(job)
        return {**parts, "total": self.jobs}

    def _row(self, name: str, jobs: list[Job]) -> tuple[str, ...]:
        most = "≤ " if any(job.may_stop_early for job in jobs) else ""
        return (
            name,
            f"{len(jobs)}",
            f"{sum(job.is_done for job in jobs)}",
            f"{sum(len(job.pack.seeds) for job in jobs)}",
            most + self._hours(job.seconds for job in jobs),
            f"{most}{max((job.seconds for job in jobs), default=0) / 3600:,.2f} h",
            f"{max((job.memory_gb for job in jobs), default=0):.1f} GB",
            f"{sum(job.disk_bytes for job in jobs) / 1e9:,.2f} GB",
        )

    def _hours(self, seconds: Iterable[float]) -> str:
        return f"{sum(seconds) * self._cores / 3600:,.2f} {self.unit}"

    def _notes(self) -> Iterator[str]:
        """What the numbers rest on, and what they leave out."""
        if self.jobs:
            yield (
                f"Measured on {self._processors} since {self._measured}, one process at a time. "
                "Jobs that share a machine are slower."
            )
        if self.gflops is not None:
            yield _SCALED.format(gpu=_GPU.format(gflops=self.gflops))
        if any(job.may_stop_early for job in self.jobs):
            yield "≤: some runs stop when validation no longer improves."
        runs = self.plan.manifest()["runs"]
        if used := sum(run["source"] == "published" for run in runs):
            yield f"{used} of {len(runs)} runs are published and cost nothing."
        if self.plan.left_out:
            yield (
                f"{self.plan.left_out} runs are neither published nor trained, because `published` "
                "is `only`; --config published=use says what they cost."
            )
        if self.plan.verifies:
            yield f"Verification takes up to {self.plan.config.verification.budget} more."
        yield _NOT_INCLUDED


def _job(pack: Pack, work: Workload, speed: Speed, factor: float) -> Job:
    """The cost of a job, with its seconds multiplied by a factor."""
    run_seconds = factor * (
        work.steps * speed.step
        + work.validations * work.validated * speed.validation
        + work.weights * work.tested * work.test_cost * speed.test
    )
    kept = work.weights * (speed.weight_bytes + work.tested * work.test_cost * speed.test_bytes)
    return Job(
        pack=pack,
        run_seconds=run_seconds,
        seconds=factor * speed.start + len(pack.seeds) * run_seconds,
        may_stop_early=work.may_stop_early,
        memory_gb=speed.memory_gb,
        disk_bytes=len(pack.seeds) * kept,
    )


def _table(rows: Sequence[Sequence[str]]) -> str:
    """Rows in columns, the first aligned left and all others right."""
    first, *others = [max(map(len, column)) for column in zip(*rows, strict=True)]
    form = f"{{:<{first}}}" + "".join(f"  {{:>{width}}}" for width in others)
    return "\n".join(form.format(*row) for row in rows)
