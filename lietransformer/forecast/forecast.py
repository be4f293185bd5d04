"""A forecast as it is kept and shown."""

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from lietransformer.forecast.estimate import (
    Row,
    added_up,
    dataset_jobs,
    invariance_jobs,
    rows,
    training_jobs,
    verification_jobs,
    wall_seconds,
)
from lietransformer.forecast.measuring import Measurements
from lietransformer.forecast.table import aligned, duration, hours, size
from lietransformer.layout import run_name
from lietransformer.machine import git_commit
from lietransformer.sweep.plan import Plan

SCHEMA_VERSION = 1


class Forecast:
    """What a sweep will take.

    Args:
        plan: the sweep.
        measured: speeds, as they were measured.
        jobs_at_once: how many jobs run at a time.
        gflops: speed of the machine that is forecast for; None: that which was measured.
    """

    def __init__(
        self, plan: Plan, measured: Measurements, *, jobs_at_once: int, gflops: float | None = None
    ) -> None:
        self.plan = plan
        self.measured = measured
        self.jobs_at_once = jobs_at_once
        self.gflops = gflops
        self.device = measured.device
        speeds = measured if gflops is None else measured.scaled(gflops)
        self.jobs = [
            *dataset_jobs(plan, speeds.datasets),
            *training_jobs(plan, speeds.models, speeds.datasets, self.device),
            *invariance_jobs(plan, speeds.invariance),
            *verification_jobs(plan),
        ]
        self.total = added_up("total", self.jobs)
        self.wall = wall_seconds(self.jobs, jobs_at_once)

    def stored(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "schema_version": SCHEMA_VERSION,
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "git_commit": git_commit(),
            "tier": self.plan.config.tier,
            "device": self.device,
            "threads": self.plan.config.compute.threads,
            "jobs_at_once": self.jobs_at_once,
            "gflops": self.gflops,
            "wall_seconds": self.wall,
            "total": asdict(self.total),
            "parts": [asdict(row) for row in rows(self.jobs, "part")],
            "jobs": [asdict(job) for job in self.jobs],
            "measurements": self.measured.stored(),
        }

    def prices(self) -> dict[str, Any]:
        """GPU-hours of one run of each configuration, by its name, as JSON."""
        by_name = {job.name: job for job in self.jobs}
        seconds = {}
        for summary, pack in self.plan.packs.items():
            job = by_name[summary.relative_to(self.plan.results).as_posix()]
            if job.seconds is not None:
                seconds[run_name(pack.configuration.labels)] = job.seconds / len(job.seeds)
        machines = [speed.machine for speed in self.measured.models.values() if speed]
        processors = {machine["gpu"] or machine["processor"] for machine in machines}
        return {
            "schema_version": SCHEMA_VERSION,
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "git_commit": git_commit(),
            "gpu": f"GPU of {self.gflops:,.0f} GFLOP/s (float32)",
            "measured_on": ", ".join(sorted(processors)),
            "hours": {name: float(f"{each / 3600:.3g}") for name, each in seconds.items()},
        }

    def text(self) -> str:
        """For reading: a table by part, one by model, and what they are worth."""
        by_part = rows(self.jobs, "part")
        by_model = rows([job for job in self.jobs if job.trains], "trains")
        unit = "GPU-h" if self.device == "cuda" else "core-h"
        heads = ("jobs", "done", "runs", unit, "longest job", "memory", "disk")
        tables = [
            aligned([(name, *heads), *(self._cells(row) for row in lines)])
            for name, lines in (
                ("part", [*by_part, self.total]),
                ("model", by_model),
            )
        ]
        left = f"{hours(self._cost(self.total.left))} {unit}"
        wall = f"Wall time of what is left ({left}) with {self.jobs_at_once} jobs at a time: "
        return "\n".join(["\n\n".join(tables), "", wall + duration(self.wall), *self._notes()])

    def _cost(self, seconds: float) -> float:
        """Core-seconds or GPU-seconds."""
        return seconds * (1 if self.device == "cuda" else self.plan.config.compute.threads)

    def _cells(self, row: Row) -> tuple[str, ...]:
        most = "≤ " if row.may_stop_early else ""
        known = row.jobs > row.unknown
        cost = hours(self._cost(row.seconds)) + (" + ?" if row.unknown else "")
        return (
            row.name,
            f"{row.jobs:,}",
            f"{row.done:,}",
            f"{row.runs:,}" if row.runs else "–",
            most + cost if known else "?",
            most + duration(row.longest) if known else "?",
            f"{row.memory_gb:.1f} GB" if row.memory_gb else "–",
            size(row.disk_bytes) if row.disk_bytes else "–",
        )

    def _notes(self) -> list[str]:
        speeds = [speed for speed in self.measured.models.values() if speed is not None]
        notes = ["", *self._published()]
        if speeds:
            machine, spread = speeds[0].machine, max(s.slowest / s.fastest for s in speeds)
            processor = machine["gpu"] or machine["processor"]
            times = sorted(speed.measured for speed in speeds)
            notes.append(
                f"Measured on {machine['host']} ({processor}, {machine['cores']} cores), "
                f"{times[0]} to {times[-1]}, one process at a time: "
                f"{len(speeds)} models, {min(s.steps for s in speeds)} or more training steps and "
                "an evaluation each."
            )
            notes.append(
                f"Steps of one model differed by up to a factor of {spread:.1f}. Jobs that share a "
                "machine also share its memory and caches, and are slower than one alone."
            )
            load = self.measured.load
            if load is not None and load > machine["cores"] / 2:
                waiting = "counts" if speeds[0].clock == "wall" else "does not count, sharing does"
                notes.append(
                    f"The machine was busy (load {load:.1f}) when this was measured. Waiting for a "
                    f"core {waiting}: expect less where it is not."
                )
        if self.gflops is not None:
            notes.append(
                f"Scaled to a machine of {self.gflops:,.0f} GFLOP/s in float32 matrix products, as "
                "if all else were in proportion. For a GPU this is a lower bound: small kernels "
                "and their launches take longer."
            )
        if self.total.may_stop_early:
            notes.append("≤: some runs stop when they get no better; these are the most they take.")
        if self.total.unknown:
            notes.append(f"?: {self.total.unknown} jobs could not be measured.")
        notes.append(
            "Not in it: waiting in a queue, the cost of layers, tables and figures (minutes), "
            "failed jobs."
        )
        return notes

    def _published(self) -> list[str]:
        """What is not trained here, and why."""
        runs = self.plan.manifest()["runs"]
        used = sum(run["source"] == "published" for run in runs)
        notes = [f"{used} of {len(runs)} runs are published and cost nothing."] if used else []
        if self.plan.left_out:
            notes.append(
                f"{self.plan.left_out} runs are neither published nor trained, because `published` "
                "is `only`; --config published=use says what they cost."
            )
        return notes
