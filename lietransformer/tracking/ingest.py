"""From a run folder to a run in MLflow, as far as the folder has come; safe to repeat."""

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from mlflow import MlflowClient
from mlflow.entities import Metric, Param

from lietransformer.models.presets import Preset
from lietransformer.training.config import RunConfig
from lietransformer.training.run_folder import RunFolder, read_lines

T = TypeVar("T")

HASH_TAG = "lietransformer.hash"
SYNCED_TAG = "lietransformer.synced"

# What the store takes in one call.
_METRICS_AT_ONCE = 1000
_PARAMETERS_AT_ONCE = 100
_LONGEST_VALUE = 500
_LARGEST_ARTIFACT = 100_000_000  # bytes
_NOT_CURVES = ("step", "time")


class Ingestion:
    """One run folder and its run in MLflow, which is found again by the hash of its settings."""

    def __init__(self, client: MlflowClient, folder: RunFolder) -> None:
        stored = folder.read_config_json()
        self._client = client
        self._folder = folder
        self._hash = str(stored["hash"])
        self._config = folder.config()
        self._logged: dict[str, tuple[int, int]] = {}
        self._run_id: str | None = None

    @property
    def run_id(self) -> str:
        """The run in MLflow, found or created."""
        if self._run_id is None:
            self._run_id = self._find() or self._create()
        return self._run_id

    def update(self) -> bool:
        """Bring the run in MLflow to where the folder is; whether there was anything to do."""
        if self._is_synced():
            return False
        # Read before anything is sent: what is added meanwhile is for the next time.
        is_done = self._folder.is_done
        metrics = [*self._curves(), *(self._final_metrics() if is_done else ())]
        for part in _cut(metrics, _METRICS_AT_ONCE):
            self._client.log_batch(self.run_id, metrics=part)
            for metric in part:
                self._logged[metric.key] = (metric.step, metric.timestamp)
        if is_done:
            self._finish()
        return bool(metrics) or is_done

    # ---- finding and describing

    def _find(self) -> str | None:
        experiment = self._client.get_experiment_by_name(self._config.task)
        assert experiment is not None  # made when the store was opened
        found = self._client.search_runs(
            [experiment.experiment_id], f"tags.`{HASH_TAG}` = '{self._hash}'", max_results=1
        )
        if not found:
            return None
        run_id = str(found[0].info.run_id)
        for key in found[0].data.metrics:
            history = self._client.get_metric_history(run_id, key)
            self._logged[key] = max((point.step, point.timestamp) for point in history)
        return run_id

    def _create(self) -> str:
        experiment = self._client.get_experiment_by_name(self._config.task)
        assert experiment is not None  # made when the store was opened
        run = self._client.create_run(
            experiment.experiment_id,
            run_name=run_name(self._config),
            tags=run_tags(self._config) | {HASH_TAG: self._hash},
        )
        run_id = str(run.info.run_id)
        parameters = [Param(key, value[:_LONGEST_VALUE]) for key, value in _flat(self._config)]
        for part in _cut(parameters, _PARAMETERS_AT_ONCE):
            self._client.log_batch(run_id, params=part)
        return run_id

    def _is_synced(self) -> bool:
        if not self._folder.is_done:
            return False
        run = self._client.get_run(self.run_id)
        return bool(run.data.tags.get(SYNCED_TAG) == _digest(self._folder.result_file))

    # ---- metrics

    def _curves(self) -> Iterator[Metric]:
        """Points of the curves that are not logged yet."""
        for record in self._folder.records():
            names = (name for name in record if name not in _NOT_CURVES)
            yield from self._new_points(record, record["step"], names)
        for number, sample in enumerate(read_lines(self._folder.system_file)):
            names = (name for name in sample if name not in _NOT_CURVES)
            yield from self._new_points(sample, number, names)

    def _final_metrics(self) -> Iterator[Metric]:
        """The tests, as `best/test/accuracy` and so on, at the last step."""
        result = self._folder.result()
        point: dict[str, Any] = {"time": result["ended"]}
        for which, tests in result["test"].items():
            for test, metrics in tests.items():
                point |= {f"{which}/{test}/{name}": value for name, value in metrics.items()}
        names = (name for name in point if name not in _NOT_CURVES)
        yield from self._new_points(point, result["steps"], names)

    def _new_points(
        self, values: dict[str, Any], step: int, names: Iterator[str]
    ) -> Iterator[Metric]:
        for name in names:
            # Steps only grow. Those of a resumed run that were logged before it was stopped
            # come again, with the same values.
            last_step, _ = self._logged.get(name, (-1, 0))
            if values[name] is not None and step > last_step:
                yield Metric(name, float(values[name]), round(values["time"] * 1000), step)

    # ---- the end

    def _finish(self) -> None:
        result = self._folder.result()
        for path in sorted(self._folder.path.glob("*")):
            is_wanted = path.suffix in (".json", ".jsonl", ".pt")
            if is_wanted and path.stat().st_size <= _LARGEST_ARTIFACT:
                self._client.log_artifact(self.run_id, str(path))
        for tag in ("status", "parameters", "git_commit", "dataset_hash"):
            self._client.set_tag(self.run_id, tag, str(result[tag]))
        status = "FINISHED" if result["status"] == "finished" else "FAILED"
        ended = round(result["ended"] * 1000)
        self._client.set_terminated(self.run_id, status, end_time=ended)
        # Last: a sync that was killed before this is done again.
        self._client.set_tag(self.run_id, SYNCED_TAG, _digest(self._folder.result_file))


def run_name(config: RunConfig) -> str:
    """What tells runs apart in a list, the most telling first."""
    parts = [config.model, config.target, f"n={config.n_train or 'all'}"]
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


def run_folders(root: Path) -> list[RunFolder]:
    """Every run below a folder, or the folder itself."""
    return [RunFolder(path.parent) for path in sorted(root.rglob("config.json"))]


def _flat(config: RunConfig) -> Iterator[tuple[str, str]]:
    for name, value in config.identity.items():
        if isinstance(value, dict):
            yield from ((f"{name}.{key}", str(inner)) for key, inner in value.items())
        else:
            yield name, str(value)
    preset = config.preset()
    yield "group", preset.group or "none"
    yield "size", preset.size or "–"


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _cut(items: Sequence[T], length: int) -> Iterator[Sequence[T]]:
    return (items[start : start + length] for start in range(0, len(items), length))
