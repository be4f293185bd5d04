"""All that a forecast needs to know of a machine: measured, kept in a file, read again."""

import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from lietransformer.errors import UserError, explain
from lietransformer.experiments.registry import TaskName
from lietransformer.experiments.symmetry.config import InvarianceConfig
from lietransformer.experiments.symmetry.measure import measure
from lietransformer.forecast.datasets import DatasetSpeed, generator_settings, measure_dataset
from lietransformer.forecast.estimate import subject_of
from lietransformer.forecast.speed import MeasurementFailed, Speed, Subject, measure_apart
from lietransformer.sweep.plan import Plan


@dataclass
class Measurements:
    """Speeds of models, of datasets and of Figure 3's measurement.

    Attributes:
        models: by what was measured; None where that failed.
        datasets: by task.
        invariance: seconds of one run of Figure 3's measurement.
        load: how many processes wanted a core when measuring began.
    """

    models: dict[Subject, Speed | None] = field(default_factory=dict)
    datasets: dict[str, DatasetSpeed] = field(default_factory=dict)
    invariance: float | None = None
    load: float | None = None

    @property
    def device(self) -> str:
        """Where runs were measured: cpu or cuda."""
        return next((subject.device for subject in self.models), "cpu")

    def scaled(self, gflops: float) -> "Measurements":
        """As they would be on a machine of another speed, if all times are in proportion."""
        models = {
            subject: None if speed is None else speed.scaled(gflops)
            for subject, speed in self.models.items()
        }
        known = [speed.gflops for speed in self.models.values() if speed is not None]
        # The rest was measured without a rate of its own.
        factor = statistics.median(known) / gflops if known else 1.0
        datasets = {
            task: replace(speed, seconds=speed.seconds * factor)
            for task, speed in self.datasets.items()
        }
        invariance = None if self.invariance is None else self.invariance * factor
        return Measurements(models, datasets, invariance, self.load)

    def stored(self) -> dict[str, Any]:
        """As JSON."""
        models = [
            {**asdict(subject), "speed": None if speed is None else asdict(speed)}
            for subject, speed in self.models.items()
        ]
        datasets = {task: asdict(speed) for task, speed in self.datasets.items()}
        figure = {"seconds_of_a_run": self.invariance}
        return {"models": models, "datasets": datasets, "figure 3": figure, "load": self.load}

    @classmethod
    def read(cls, path: Path) -> "Measurements":
        """Those of an earlier forecast, perhaps of another machine."""
        try:
            stored = json.loads(path.read_text(encoding="utf-8"))["measurements"]
            models = {
                Subject(entry["settings"], entry["validated"], entry["tested"]): (
                    None if entry["speed"] is None else Speed(**entry["speed"])
                )
                for entry in stored["models"]
            }
            datasets = {task: DatasetSpeed(**entry) for task, entry in stored["datasets"].items()}
            return cls(models, datasets, stored["figure 3"]["seconds_of_a_run"], stored["load"])
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise UserError(
                explain(
                    expected=f"measurements of `lietransformer forecast` in {path}",
                    found=getattr(error, "strerror", None) or "something else",
                    remedy="give the forecast.json of an earlier forecast",
                )
            ) from error

    def require(self, subjects: Sequence[Subject], path: Path) -> None:
        """Refuse a file in which a model of the sweep is missing."""
        missing = [subject.name for subject in subjects if subject not in self.models]
        if missing:
            raise UserError(
                explain(
                    expected=f"measurements of all models of the sweep in {path}",
                    found=f"none of {'; '.join(missing)}",
                    remedy="measure with the same sweep, or leave --speed out to do so here",
                )
            )


def subjects_of(plan: Plan, device: str) -> dict[Subject, TaskName]:
    """What there is to measure for a sweep on a kind of device, and its task."""
    return {subject_of(plan, each, device)[0]: each.task for each in plan.trained}


def measure_all(plan: Plan, seconds: float) -> Measurements:
    """Measure everything here; what is being measured is told to the terminal."""
    device = plan.config.compute.device
    if device == "cuda" and not torch.cuda.is_available():
        raise UserError(
            explain(
                expected="a GPU to measure on, because compute.device is cuda",
                found="none on this machine",
                remedy="run this on a node that has one, or give its forecast.json by --speed, "
                "or say --config 'compute={device: cpu}'",
            )
        )
    subjects = subjects_of(plan, device)
    largest = max((json.loads(s.settings)["batch_size"] for s in subjects), default=1)
    largest = max([largest, *(max(s.validated, s.tested) for s in subjects)])
    result = Measurements(load=os.getloadavg()[0])
    with tempfile.TemporaryDirectory() as folder:
        files = {}
        for dataset in plan.needed_datasets:
            _tell(f"making a small dataset of {dataset.kind}")
            files[dataset.kind], result.datasets[dataset.kind] = measure_dataset(
                dataset.kind, generator_settings(dataset), Path(folder), largest
            )
        for number, (subject, task) in enumerate(subjects.items(), 1):
            _tell(f"measuring {subject.name} ({number} of {len(subjects)})")
            try:
                result.models[subject] = measure_apart(subject, files[task], seconds)
            except MeasurementFailed as error:
                _tell(f"{subject.name} could not be measured: {error}")
                result.models[subject] = None
    if plan.measures("invariance"):
        _tell("measuring Figure 3")
        result.invariance = _invariance(plan)
    return result


def _invariance(plan: Plan) -> float:
    config = InvarianceConfig.model_validate({**plan.config.invariance, "runs": 1})
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        started = time.process_time()
        measure(config)
        return time.process_time() - started
    finally:
        torch.set_num_threads(threads)


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
