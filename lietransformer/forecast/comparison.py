"""A forecast beside what the runs really took. Nothing here needs torch."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lietransformer.errors import UserError, explain
from lietransformer.forecast.table import aligned, duration


@dataclass
class Comparison:
    """Finished runs added up.

    Attributes:
        name: of what they have in common.
        runs: how many are finished.
        planned: how many there will be.
        forecast: seconds that the finished ones were to take.
        real: seconds that they took.
        memory_forecast: the most memory that one was to need, in GB.
        memory_real: the most that one needed.
    """

    name: str
    runs: int = 0
    planned: int = 0
    forecast: float = 0.0
    real: float = 0.0
    memory_forecast: float = 0.0
    memory_real: float = 0.0

    def cells(self) -> tuple[str, ...]:
        """For a table; a dash where nothing can be said."""
        runs = f"{self.runs} of {self.planned}"
        if not self.runs:
            return (self.name, runs, *["–"] * 5)
        ratio = f"{self.real / self.forecast:.2f}" if self.forecast else "–"
        memory = (f"{number:.1f} GB" for number in (self.memory_forecast, self.memory_real))
        return (self.name, runs, duration(self.forecast), duration(self.real), ratio, *memory)


def read_forecast(path: Path) -> dict[str, Any]:
    """A forecast that was kept."""
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(stored, dict) and isinstance(stored.get("jobs"), list):
            return stored
        problem = "something else"
    except (OSError, ValueError) as error:
        problem = getattr(error, "strerror", None) or "a file that is not JSON"
    raise UserError(
        explain(
            expected=f"a forecast in {path}",
            found=problem,
            remedy="make one first with `lietransformer forecast`",
        )
    )


def compare(forecast: dict[str, Any], results: Path) -> list[Comparison]:
    """By part of the sweep, by model, and in total."""
    found: dict[tuple[str, str], Comparison] = {}
    for job in forecast["jobs"]:
        for seed in job["seeds"]:
            rows = [
                found.setdefault((kind, job[kind]), Comparison(job[kind]))
                for kind in ("part", "trains")
            ]
            rows.append(found.setdefault(("total", "total"), Comparison("total")))
            result = _result((results / job["name"]).parent / f"seed-{seed}" / "result.json")
            for row in rows:
                row.planned += 1
                if result is not None and job["run_seconds"]:
                    _add(row, job, result)
    order = {"part": 0, "trains": 1, "total": 2}
    return [found[key] for key in sorted(found, key=lambda key: order[key[0]])]


def text(rows: list[Comparison], forecast: dict[str, Any]) -> str:
    """For reading."""
    heads = ("finished", "forecast", "real", "real/forecast", "forecast", "real")
    table = aligned([("runs", *heads), *(row.cells() for row in rows)])
    notes = (
        f"Forecast of {forecast['created']} (tier {forecast['tier']}). Times are of training, "
        "evaluation and tests of the finished runs, memory is the most that one of them needed. "
        "Runs that stopped early took less than the most that was forecast."
    )
    return f"{table}\n\n{notes}"


def _add(row: Comparison, job: dict[str, Any], result: dict[str, Any]) -> None:
    row.runs += 1
    row.forecast += sum(job["run_seconds"].values())
    row.real += sum(result["seconds"].values())
    row.memory_forecast = max(row.memory_forecast, job["memory_gb"])
    row.memory_real = max(row.memory_real, result["peak_memory_gb"])


def _result(path: Path) -> dict[str, Any] | None:
    """What a run says of itself; None if it is not done, or not readable."""
    try:
        result = json.loads(path.read_text(encoding="utf-8"))
        return result if {"seconds", "peak_memory_gb"} <= result.keys() else None
    except (OSError, ValueError, AttributeError):
        return None
