"""From a run folder to a run in MLflow, as far as the folder has come; safe to repeat."""

import math
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from mlflow import MlflowClient
from mlflow.entities import Metric, Param

from lietransformer.experiments.preset import Preset
from lietransformer.files import read_lines
from lietransformer.tracking.folders import (
    HASH_TAG,
    PUBLISHED,
    SOURCE_TAG,
    SYNCED_TAG,
    digest_of,
    key_of,
    source_of,
)
from lietransformer.training.config import RunConfig
from lietransformer.training.run_folder import RunFolder

T = TypeVar("T")

# What the store takes in one call.
_METRICS_AT_ONCE = 1000
_PARAMETERS_AT_ONCE = 100
_LONGEST_VALUE = 500
_LARGEST_ARTIFACT = 100_000_000  # bytes
_NOT_CURVES = ("step", "time")
# Numbers that differ by more are those of another run. Less can be rounding: a run resumed
# with other threads repeats its steps after the checkpoint up to rounding.
_TOLERANCE = 1e-3


class Ingestion:
    """One run folder and its run in MLflow, which is found again by the hash of its settings."""

    def __init__(self, client: MlflowClient, folder: RunFolder) -> None:
        self._client = client
        self._folder = folder
        self._hash = key_of(folder)
        self._source = source_of(folder)
        self._config = folder.config()
        self._run_id: str | None = None
        # What MLflow has: values by metric and step, and the digest of the folder at its end.
        self._logged: dict[str, dict[int, float]] = {}
        self._synced: str | None = None
        self._is_superseded = False

    def update(self) -> bool:
        """Bring the run in MLflow to where the folder is; whether there was anything to do."""
        # Read before anything is sent: what is added meanwhile is for the next time.
        digest = digest_of(self._folder) if self._folder.is_done else None
        points = [*self._curves(), *(self._final_metrics() if digest else ())]
        run_id = self._attach(digest)
        if self._is_superseded or (digest is not None and digest == self._synced):
            return False
        if self._is_contradicted_by(points):
            # Other code or another machine has led to other numbers for the same settings.
            self._client.delete_run(run_id)
            self._logged = {}
            run_id = self._run_id = self._create()
        new = [point for point in points if point.step not in self._logged.get(point.key, {})]
        for part in _cut(new, _METRICS_AT_ONCE):
            self._client.log_batch(run_id, metrics=part)
            for point in part:
                self._logged.setdefault(point.key, {})[point.step] = point.value
        if digest is not None:
            self._finish(run_id, digest)
        return bool(new) or digest is not None

    # ---- finding and describing

    def _attach(self, digest: str | None) -> str:
        """The run in MLflow, found or created, and what it has, unless that is everything."""
        if self._run_id is not None:
            return self._run_id
        found = self._client.search_runs(
            [self._experiment_id()], f"tags.`{HASH_TAG}` = '{self._hash}'", max_results=1
        )
        if not found:
            self._run_id = self._create()
            return self._run_id
        run_id, data = str(found[0].info.run_id), found[0].data
        if digest is not None and data.tags.get(SYNCED_TAG) == digest:
            self._synced = digest
            return run_id
        if digest is not None and SYNCED_TAG in data.tags:
            # Of two folders with a run of the same settings, the one that ended last is shown.
            # Otherwise they would replace each other with every sync.
            self._is_superseded = self._ended() < (found[0].info.end_time or 0)
            if self._is_superseded:
                return run_id
        self._log_parameters(run_id, set(data.params))
        for key in data.metrics:
            history = self._client.get_metric_history(run_id, key)
            self._logged[key] = {point.step: point.value for point in history}
        self._run_id = run_id
        return run_id

    def _create(self) -> str:
        # A run that has ended began before MLflow heard of it.
        started = round(self._folder.result()["started"] * 1000) if self._folder.is_done else None
        run = self._client.create_run(
            self._experiment_id(),
            start_time=started,
            run_name=run_name(self._config)
            + (f" ({PUBLISHED})" if self._source == PUBLISHED else ""),
            tags=run_tags(self._config) | {HASH_TAG: self._hash, SOURCE_TAG: self._source},
        )
        run_id = str(run.info.run_id)
        self._log_parameters(run_id, set())
        return run_id

    def _experiment_id(self) -> str:
        experiment = self._client.get_experiment_by_name(self._config.task)
        assert experiment is not None  # made when the store was opened
        return str(experiment.experiment_id)

    def _log_parameters(self, run_id: str, known: set[str]) -> None:
        parameters = [
            Param(key, value[:_LONGEST_VALUE])
            for key, value in _flat(self._config)
            if key not in known
        ]
        for part in _cut(parameters, _PARAMETERS_AT_ONCE):
            self._client.log_batch(run_id, params=part)

    def _ended(self) -> int:
        """When the run in the folder ended, in the unit of MLflow."""
        return round(self._folder.result()["ended"] * 1000)

    # ---- metrics

    def _curves(self) -> Iterator[Metric]:
        for record in self._folder.records():
            yield from _points(record, record["step"])
        for number, sample in enumerate(read_lines(self._folder.system_file)):
            yield from _points(sample, number)

    def _final_metrics(self) -> Iterator[Metric]:
        """The tests, as `best/test/accuracy` and so on, at the last step."""
        result = self._folder.result()
        point: dict[str, Any] = {"time": result["ended"]}
        for which, tests in result["test"].items():
            for test, metrics in tests.items():
                point |= {f"{which}/{test}/{name}": value for name, value in metrics.items()}
        yield from _points(point, result["steps"])

    def _is_contradicted_by(self, points: list[Metric]) -> bool:
        """Whether MLflow has other numbers than these.

        A resumed run repeats what it logged before it was stopped, with the same values up to
        rounding.
        """
        return any(
            not math.isclose(point.value, self._logged[point.key][point.step], rel_tol=_TOLERANCE)
            for point in points
            if point.step in self._logged.get(point.key, {}) and _is_repeatable(point.key)
        )

    # ---- the end

    def _finish(self, run_id: str, digest: str) -> None:
        result = self._folder.result()
        for path in sorted(self._folder.path.glob("*")):
            is_wanted = path.suffix in (".json", ".jsonl", ".pt")
            if is_wanted and path.stat().st_size <= _LARGEST_ARTIFACT:
                self._client.log_artifact(run_id, str(path))
        for tag in ("status", "parameters", "git_commit", "dataset_hash"):
            self._client.set_tag(run_id, tag, str(result[tag]))
        status = "FINISHED" if result["status"] == "finished" else "FAILED"
        self._client.set_terminated(run_id, status, end_time=self._ended())
        # Last: a sync that was killed before this is done again.
        self._client.set_tag(run_id, SYNCED_TAG, digest)
        self._synced = digest


def run_name(config: RunConfig) -> str:
    """What tells runs apart in a list, the most telling first."""
    parts = [config.model, config.target, f"n={config.n_train or 'all'}"]
    if config.draw:
        parts.append(f"draw {config.draw}")
    if config.augmentation != "none":
        parts.append(f"+{config.augmentation}")
    parts += [f"{name}={value}" for name, value in config.architecture.items()]
    return " ".join(str(part) for part in (*parts, f"seed {config.seed}") if part)


def run_tags(config: RunConfig) -> dict[str, str]:
    """What runs are filtered, grouped and compared by."""
    preset: Preset = config.preset()
    return {
        "task": config.task,
        "model": config.model,
        "group": preset.group or "none",
        "size": preset.size or "–",
        "n_train": str(config.n_train or "all"),
        "target": config.target or "–",
        "augmentation": config.augmentation,
        "seed": str(config.seed),
        "status": "running",
    }


def _flat(config: RunConfig) -> Iterator[tuple[str, str]]:
    for name, value in {**config.identity, "draw": config.draw}.items():
        if isinstance(value, dict):
            yield from ((f"{name}.{key}", str(inner)) for key, inner in value.items())
        else:
            yield name, str(value)
    preset = config.preset()
    yield "group", preset.group or "none"
    yield "size", preset.size or "–"


def _points(values: dict[str, Any], step: int) -> Iterator[Metric]:
    time = round(values["time"] * 1000)
    for name, value in values.items():
        if name not in _NOT_CURVES and value is not None:
            yield Metric(name, float(value), time, step)


def _is_repeatable(key: str) -> bool:
    """What the machine does is never the same; a drift of what is conserved is all rounding."""
    return not key.startswith("system/") and not key.endswith("_drift")


def _cut(items: Sequence[T], length: int) -> Iterator[Sequence[T]]:
    return (items[start : start + length] for start in range(0, len(items), length))
