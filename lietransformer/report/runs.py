"""The runs of a results folder as a table: one row for each, whatever its status."""

import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd

from lietransformer.errors import UserError
from lietransformer.experiments.registry import MEASUREMENTS, PartName
from lietransformer.files import read_json
from lietransformer.layout import COPIES, FOLDER, RESTORE, Archive
from lietransformer.layout import MANIFEST as ARCHIVE_MANIFEST
from lietransformer.report.prices import Prices, read_prices

Status = Literal["finished", "diverged", "running", "missing"]
Source = Literal["published", "local"]

MANIFEST = "sweep.json"
PAPER_TIER = "paper"
_SCHEMA_VERSION = 3
_LABELS = ("task", "model", "n_train", "target", "augmentation", "seed", "ablation", "draw")
_REQUIRED = ("folder", "task", "model", "seed")
_RESULTS = ("parameters", "epochs", "git_commit", "dataset_hash", "peak_memory_gb")
# What may differ between runs that count as the same experiment.
_NOT_SETTINGS = ("seed", "data_seed", "sampling_seed", "data", "threads", "device", "compile")
_COLUMNS = (
    *("folder", "source", "parts", *_LABELS, "status", "reason"),
    *(*_RESULTS, "core_hours", "machine", "settings", "data", "not_finite"),
)


@dataclass(frozen=True)
class Sweep:
    """The runs that count.

    Attributes:
        results: the folder that everything is relative to.
        runs: a row for each run. Columns are the labels of the manifest (folder, parts, task,
            model, n_train, target, augmentation, seed, ablation, draw); the `source`, "published"
            if the run is from the archive or "local"; `status` and, where that says nothing about
            numbers, the `reason`; what its files say about it; and a column such as
            "best/test/accuracy" for each number. "running" means begun and not ended;
            `not_finite` names the numbers that overflowed, unlike those not measured.
        tier: how large the sweep is; None if there is no manifest that says so.
        is_changed: whether settings differ from the tier's.
        config: the settings of the sweep, as the manifest has them.
        measurements: the files with what was computed without training, such as "invariance".
        warnings: what to know about these runs, in sentences.
        published: what becomes of published runs: "use", "only" or "ignore".
        published_runs: published runs of the same configurations, for comparison in figures;
            empty where `runs` may be published ones themselves.
    """

    results: Path
    runs: pd.DataFrame
    tier: str | None = None
    published: str | None = None
    is_changed: bool = False
    config: Mapping[str, Any] = field(default_factory=dict)
    measurements: Mapping[str, Path] = field(default_factory=dict)
    warnings: tuple[str, ...] = field(default=())
    published_runs: pd.DataFrame = field(default_factory=lambda: _frame([]))

    @property
    def comparison(self) -> "Sweep | None":
        """The published runs beside local ones; None if there are none to compare with."""
        if not (self.published_runs["status"] == "finished").any():
            return None
        return replace(self, runs=self.published_runs, published_runs=_frame([]))

    @cached_property
    def archive(self) -> Archive:
        """The published runs: within these results, or the results themselves."""
        return _archive(self.results)

    @cached_property
    def prices(self) -> Prices:
        """GPU-hours of runs at the paper's scale, as far as they are known."""
        try:
            path = self.archive.prices
        except UserError:  # a damaged archive, otherwise unused
            path = None
        return read_prices(path)

    @property
    def is_reduced(self) -> bool:
        """Whether these are known not to be the paper's full experiments."""
        return self.tier != PAPER_TIER or self.is_changed

    @cached_property
    def commits(self) -> tuple[str, ...]:
        """The commits that the runs with numbers were made by."""
        return tuple(sorted(self.runs["git_commit"].dropna().unique()))

    def select(self, part: PartName | None = None, **labels: Any) -> pd.DataFrame:
        """The runs of a part of the sweep that have these labels; None stands for no value."""
        is_chosen = np.ones(len(self.runs), dtype=bool)
        if part is not None:
            is_chosen &= np.array([part in parts for parts in self.runs["parts"]], dtype=bool)
        for name, value in labels.items():
            column = self.runs[name]
            is_equal = column.isna() if value is None else column == value
            is_chosen &= is_equal.to_numpy(dtype=bool, na_value=False)
        return self.runs.loc[is_chosen]


def finished(runs: pd.DataFrame) -> pd.DataFrame:
    """Those whose numbers count. A run that diverged is counted, but has no number."""
    return runs[runs["status"] == "finished"]


def numbers(runs: pd.DataFrame, metric: str) -> dict[int, float]:
    """A metric such as "best/test/accuracy" of the finished runs, by seed."""
    if metric not in runs.columns:
        return {}
    done = finished(runs)
    pairs = zip(done["seed"], done[metric], strict=True)
    return {int(seed): float(value) for seed, value in pairs if not pd.isna(value)}


def read_sweep(results: Path) -> Sweep:
    """The planned runs, or else those of the archive, or else all there are below the folder.

    Published runs are checked against the archive's manifest.
    """
    if not results.is_dir():
        raise UserError(
            f"{results} is not a folder of results: it "
            f"{'is a file' if results.exists() else 'does not exist'}. Run the experiments first, "
            "or give another folder."
        )
    archive = _archive(results)
    if (results / MANIFEST).exists():
        content = read_json(results / MANIFEST)
        sweep = _listed(results, content, results / MANIFEST)
        if content is not None and content.get("published") == "ignore":
            return _with_sound_comparison(sweep)
    elif archive.manifest["sweep"]:
        within = "" if archive.path == results else f"{FOLDER}/"
        file = archive.path / ARCHIVE_MANIFEST
        sweep = _listed(results, archive.manifest["sweep"], file, within)
    else:
        rows = [_row(results, archive, labels) for labels in _found(results, archive)]
        note = f"There is no {MANIFEST}: all runs in the folder count, and what was planned is not "
        sweep = Sweep(
            results,
            _frame(rows),
            measurements=_only_ones(results),
            warnings=(f"{note}known.", *_mixtures(rows)),
        )
    _require_intact(sweep)
    return replace(sweep, warnings=(*sweep.warnings, *_left_overs(sweep.archive)))


def _listed(
    results: Path, content: Mapping[str, Any] | None, file: Path, within: str = ""
) -> Sweep:
    """The runs that a file plans; its paths are relative to the folder `within` the results."""
    if content is None or not _is_sound(content):
        again = "Run the workflow again, which writes it, or remove the file: then all runs count"
        restore = f"Restore it with `git checkout -- {file}`"
        raise UserError(
            f"{file} is not a list of runs of schema version {_SCHEMA_VERSION}. "
            f"{again if file.name == MANIFEST else restore}."
        )
    archive = _archive(results)
    rows, published = (
        [
            _row(results, archive, {**run, "folder": f"{within}{run['folder']}"})
            for run in content.get(name, ())
        ]
        for name in ("runs", "published_runs")
    )
    measurements = content.get("measurements") or {}
    return Sweep(
        results,
        _frame(rows),
        tier=content.get("tier"),
        published=content.get("published"),
        is_changed=bool(content.get("is_changed")),
        config=content.get("config") or {},
        measurements={name: results / f"{within}{path}" for name, path in measurements.items()},
        warnings=tuple(_mixtures(rows)),
        published_runs=_frame(published),
    )


def _is_sound(content: Mapping[str, Any]) -> bool:
    """Whether a manifest has the lists of runs that it should have."""
    lists = (content.get("runs"), content.get("published_runs", []))
    return content.get("schema_version") == _SCHEMA_VERSION and all(
        isinstance(runs, list)
        and all(
            isinstance(run, dict) and all(run.get(name) is not None for name in _REQUIRED)
            for run in runs
        )
        for runs in lists
    )


def _archive(results: Path) -> Archive:
    """The archive that results are, or that is in them."""
    itself = Archive(results)
    return itself if itself.exists else Archive(results / FOLDER)


def _with_sound_comparison(sweep: Sweep) -> Sweep:
    """Without the published runs if they are damaged: none of the numbers rests on them."""
    try:
        _require_intact(sweep)
    except UserError as error:
        warnings = (*sweep.warnings, f"Published runs are not shown for comparison. {error}")
        return replace(sweep, published_runs=_frame([]), warnings=warnings)
    return sweep


def _require_intact(sweep: Sweep) -> None:
    """Refuse published runs and measurements that are not as the archive's manifest has them."""
    archive = sweep.archive
    folders = [
        sweep.results / folder
        for runs in (sweep.runs, sweep.published_runs)
        for folder in runs.loc[runs["source"] == "published", "folder"]
    ]
    if not archive.exists and any(folder.exists() for folder in folders):
        raise UserError(
            f"There are published runs such as {folders[0]}, but {ARCHIVE_MANIFEST} is missing. "
            f"{RESTORE}"
        )
    known = (name for folder in folders if (name := archive.name_of(folder)) is not None)
    for name in (*known, "measurements", "trajectories"):
        archive.require_intact(name)


def _left_overs(archive: Archive) -> Iterator[str]:
    """A warning about run folders in the archive that its manifest does not know."""
    folders = (file.parent for file in sorted((archive.path / "runs").rglob("config.json")))
    unknown = [folder for folder in folders if archive.name_of(folder) is None]
    if unknown:
        yield (
            f"Run folders in the archive ({len(unknown)}, such as {unknown[0]}) are not in its "
            "manifest and count as not published. Run `lietransformer publish --check`."
        )


def _found(results: Path, archive: Archive) -> Iterator[dict[str, Any]]:
    """Labels of all runs below a folder, from their settings; local ones hide published ones."""
    source = "published" if archive.path == results else "local"
    for file in sorted(results.rglob("config.json")):
        stored = read_json(file)
        config = stored.get("config") if stored else None
        folder = file.parent.relative_to(results)
        is_copy = not {*COPIES, ".resume", "verification"}.isdisjoint(folder.parts)
        if folder.parts[:1] == (FOLDER,):
            is_copy |= (results / Path(*folder.parts[1:]) / "config.json").exists()
            is_copy |= archive.name_of(file.parent) is None
        if not isinstance(config, dict) or "task" not in config or is_copy:
            continue
        ablation = ablation_of(config.get("architecture") or {})
        yield {
            **{name: config.get(name) for name in _LABELS},
            "folder": folder.as_posix(),
            "source": source,
            "ablation": ablation,
            "parts": ["draws"]
            if config.get("draw")
            else _parts(config["task"], str(config.get("model")), ablation),
        }


def ablation_of(architecture: Mapping[str, Any]) -> str | None:
    """Which of the paper's ablations a changed architecture is."""
    if (architecture.get("attention") or {}).get("normalisation") == "softmax":
        return "softmax"
    return "log_lift" if architecture.get("pair_features") == "log" else None


def _parts(task: str, model: str, ablation: str | None) -> list[PartName]:
    """Which parts of a sweep such a run can belong to."""
    if ablation is not None:
        return ["ablations"]
    if task == "springs":
        is_lie = model.startswith(("LieTransformer", "LieConv"))
        return ["data_efficiency", "parameter_efficiency"] if is_lie else ["data_efficiency"]
    return [part for part in get_args(PartName) if part == task]


def _row(results: Path, archive: Archive, labels: Mapping[str, Any]) -> dict[str, Any]:
    """A run's row, from its files; a published one must be in the archive's manifest."""
    folder = results / str(labels["folder"])
    row = {name: labels.get(name) for name in ("folder", *_LABELS)}
    is_published = labels.get("source") == "published" or folder.is_relative_to(results / FOLDER)
    row["source"] = "published" if is_published else "local"
    row["parts"], row["not_finite"] = tuple(labels.get("parts") or ()), ()
    if is_published and not _is_known(archive, folder):
        return row | {"status": "missing", "reason": "not run"}
    row["status"], row["reason"], result = _outcome(folder)
    config = (read_json(folder / "config.json") or {}).get("config")
    if isinstance(config, dict):
        row["settings"] = _fingerprint(config)
        row["data"] = config.get("data")
    if result is not None:
        row |= {name: result.get(name) for name in _RESULTS}
        row["core_hours"] = _number(result.get("cpu_seconds")) / 3600
        row["machine"] = machine_in_words(result.get("machine"))
        metrics = _flat(result.get("test"))
        row |= metrics
        row["not_finite"] = tuple(name for name, own in metrics.items() if not math.isfinite(own))
    return row


def _is_known(archive: Archive, folder: Path) -> bool:
    """Whether the manifest has a run; what is wrong with the manifest `_require_intact` says."""
    try:
        return archive.name_of(folder) is not None
    except UserError:
        return True


def _outcome(folder: Path) -> tuple[Status, str | None, dict[str, Any] | None]:
    """The status of a run, why it has no numbers, and its result."""
    file = folder / "result.json"
    if file.exists():
        result = read_json(file)
        if result is None or result.get("status") not in ("finished", "diverged"):
            return "missing", "its result.json cannot be read", None
        if result["status"] == "diverged":
            what = result.get("diverged") or {}
            return "diverged", f"at step {what.get('step', 'unknown')}", result
        return "finished", None, result
    if (folder / "config.json").exists():
        return "running", "begun and not ended", None
    return "missing", "not run", None


def _flat(test: Any) -> dict[str, float]:
    """{"best": {"test": {"mae": 1}}} as {"best/test/mae": 1.0}; null is NaN."""
    return {
        f"{weights}/{name}/{metric}": _number(value, missing=math.nan)
        for weights, sets in _items(test)
        for name, metrics in _items(sets)
        for metric, value in _items(metrics)
    }


def _items(content: Any) -> Iterable[tuple[str, Any]]:
    return content.items() if isinstance(content, dict) else ()


def machine_in_words(machine: Any) -> str | None:
    """The machine that computed a run, in one line."""
    if not isinstance(machine, dict):
        return None
    parts = (machine.get(name) for name in ("gpu", "processor", "system"))
    versions = (f"{name} {machine[name]}" for name in ("python", "torch") if machine.get(name))
    return ", ".join([*(str(part) for part in parts if part), *versions]) or None


def _number(value: Any, missing: float = 0.0) -> float:
    return float(value) if isinstance(value, int | float) else missing


def _fingerprint(config: Mapping[str, Any]) -> str:
    """A hash of a run's settings, the same for all its seeds."""
    kept = {name: value for name, value in config.items() if name not in _NOT_SETTINGS}
    return hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()[:8]


def _mixtures(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Warnings about runs with the same labels but different settings."""
    settings: dict[tuple[Any, ...], set[str]] = {}
    for row in rows:
        if "settings" in row:
            labels = tuple(row[name] for name in _LABELS if name != "seed")
            settings.setdefault(labels, set()).add(row["settings"])
    for labels, different in settings.items():
        if len(different) > 1:
            name = ", ".join(str(label) for label in labels if label not in (None, "none"))
            yield f"Runs of {len(different)} different settings are mixed in {name}."


def _only_ones(results: Path) -> dict[str, Path]:
    """The file of each measurement that has exactly one."""
    found = {name: list(results.glob(f"{name}-*.json")) for name in MEASUREMENTS}
    return {name: files[0] for name, files in found.items() if len(files) == 1}


def _frame(rows: list[dict[str, Any]]) -> pd.DataFrame:
    metrics = sorted({name for row in rows for name in row} - set(_COLUMNS))
    frame = pd.DataFrame(rows, columns=[*_COLUMNS, *metrics])
    return frame.astype(dict.fromkeys(("seed", "n_train", "draw", "parameters"), "Int64"))
