"""Datasets, archive, runs, sweep, leftovers and MLflow store of a results folder."""

import fcntl
import os
import zipfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import get_args

from mlflow import MlflowClient

from lietransformer.data.reader import DatasetError, DatasetFile
from lietransformer.doctor.findings import Check, Finding, listed, message, size
from lietransformer.errors import UserError
from lietransformer.experiments.registry import TaskName
from lietransformer.files import PART_SUFFIX, read_json
from lietransformer.layout import COPIES, FOLDER, Archive
from lietransformer.report.runs import MANIFEST, read_sweep
from lietransformer.tracking import address
from lietransformer.tracking.folders import HASH_TAG, SYNCED_TAG, digest_of
from lietransformer.tracking.store import reason
from lietransformer.training.checkpoint import CheckpointFile
from lietransformer.training.run_folder import RunFolder

_MAX_RESULTS = 50_000  # what MLflow allows
_DONE = ("finished", "diverged")
_OF_A_RUN = ("config.json", "result.json", "model.pt")
_AGAIN = "Snakemake, or the same `lietransformer train`,"


def examine(run: RunFolder) -> tuple[str, str]:
    """The status of a run and, if it is damaged, what is wrong.

    The status is finished, diverged, running, damaged, resumable from a checkpoint, or begun.
    """
    try:
        status, fault = _status(run), ""
    except Exception as error:  # damaged files raise whatever their library raises
        status, fault = "damaged", message(error)
    # Checked last: a run may have started while its files were read.
    if status not in _DONE and is_locked(run.state_folder / "lock"):
        return "running", ""
    return status, fault


def _status(run: RunFolder) -> str:
    config, its_hash = run.config(), run.read_config_json()["hash"]
    run.records()
    if not run.is_done:
        checkpoint = CheckpointFile(run.state_folder, its_hash).path
        if not checkpoint.exists():
            return "begun"
        _require_weights(checkpoint)
        return "resumable"
    result = run.result()
    if result["status"] not in _DONE or result.get("hash") != its_hash:
        raise UserError("result.json does not belong to the run of config.json")
    _require_weights(run.model_file)
    if config.task == "springs" and result.get("test"):
        DatasetFile(run.evaluation_file, kind="evaluation", verify=False)
    return str(result["status"])


def _require_weights(path: Path) -> None:
    if not zipfile.is_zipfile(path):  # as torch writes them
        raise UserError(f"{path.name} is {'damaged' if path.exists() else 'missing'}")


def is_locked(path: Path) -> bool:
    """Whether another process holds the lock on a file."""
    try:
        with open(path, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:  # others: it is gone, or its file system has no locks
        return isinstance(error, BlockingIOError)
    return False


@dataclass
class Results:
    """The checks of a results folder, which is walked only once.

    Attributes:
        path: the folder.
        tracking: the MLflow store; None for the environment's, the sweep's or the folder's.
        thorough: whether to verify the hashes of datasets.
    """

    path: Path
    tracking: str | None = None
    thorough: bool = False

    @property
    def checks(self) -> dict[str, Check]:
        """All checks by the titles of their sections."""
        names = ("datasets", "archive", "runs", "sweep", "leftovers", "store")
        return {name.capitalize(): getattr(self, name) for name in names}

    @cached_property
    def _files(self) -> list[Path]:
        """All files except published runs and MLflow's copies."""
        files = []
        for folder, folders, names in os.walk(self.path):
            folders[:] = set(folders) - COPIES - {FOLDER}
            files += [Path(folder, name) for name in names]
        return sorted(files)

    @cached_property
    def _runs(self) -> dict[Path, tuple[str, str]]:
        folders = dict.fromkeys(path.parent for path in self._files if path.name in _OF_A_RUN)
        return {path: examine(RunFolder(path)) for path in folders}

    @cached_property
    def _done(self) -> list[RunFolder]:
        return [RunFolder(path) for path, (status, _) in self._runs.items() if status in _DONE]

    def datasets(self) -> Iterator[Finding]:
        """Headers of all datasets; `thorough` also verifies their hashes."""
        for path in sorted((self.path / "data").glob("*.h5")):
            try:
                file = DatasetFile(path, verify=self.thorough)
            except DatasetError as error:
                remedy = f"remove {path} and run the workflow, which generates it again"
                yield Finding("problem", str(error), remedy)
            else:
                how = "hashes match" if self.thorough else "complete"
                yield Finding("ok", f"{path.name}: {file.kind}, {how}, {_size([path])}")

    def archive(self) -> Iterator[Finding]:
        """Published runs against the archive's manifest."""
        archive = Archive(self.path / FOLDER)
        yield Finding("ok", f"{len(archive.runs)} published runs")
        restore = f"restore them with `git checkout -- {archive.path}`"
        yield from listed("problem", "damaged published files", archive.problems(), restore)
        yield from listed("warning", "unknown published files", archive.strays(), "remove them")

    def runs(self) -> Iterator[Finding]:
        """What became of every run."""
        found: dict[str, list[str]] = defaultdict(list)
        for path, (status, fault) in self._runs.items():
            found[status].append(f"{path} ({fault})" if fault else str(path))
        numbers = ", ".join(f"{len(found[status])} {status}" for status in (*_DONE, "running"))
        yield Finding("ok", f"{len(self._runs)} runs: {numbers}")
        what = "unfinished runs with a checkpoint"
        yield from listed("note", what, found["resumable"], f"{_AGAIN} resumes them")
        what = "unfinished runs without a checkpoint"
        yield from listed("note", what, found["begun"], f"{_AGAIN} starts them over")
        remedy = (
            f"remove the folder, and the one in .resume beside it: {_AGAIN} trains it again. "
            "`lietransformer evaluate` is enough if only evaluation.h5 is damaged or missing"
        )
        yield from listed("problem", "damaged runs", found["damaged"], remedy)

    def sweep(self) -> Iterator[Finding]:
        """Planned runs against those in the folder."""
        if not (self.path / MANIFEST).is_file():
            yield Finding("note", f"no {MANIFEST}, so the plan is unknown", "`snakemake` writes it")
            return
        planned = read_sweep(self.path).runs
        yield Finding("ok", f"{planned['status'].isin(_DONE).sum()} of {len(planned)} runs done")
        missing = planned.loc[planned["status"] == "missing", "folder"]
        remedy = "run `snakemake` with the sweep's settings"
        yield from listed("note", "missing runs", missing, remedy)
        others = self._runs.keys() - {self.path / folder for folder in planned["folder"]}
        used = _size(path for path in self._files if path.parent in others)
        remedy = "no table or figure uses them; remove them if no other sweep needs them"
        yield from listed("note", f"runs outside this sweep, {used}", sorted(others), remedy)

    def leftovers(self) -> Iterator[Finding]:
        """What killed processes left behind."""
        parts = [
            path
            for path in self._files
            if path.suffix == PART_SUFFIX and not is_locked(path) and path.exists()
        ]
        old = [path for run in self._done for path in sorted(run.state_folder.glob("*.pt"))]
        remedy = "remove them when nothing is running"
        yield from listed("warning", f"partly written files, {_size(parts)}", parts, remedy)
        yield from listed("warning", f"checkpoints of finished runs, {_size(old)}", old, remedy)

    def store(self) -> Iterator[Finding]:
        """Whether the MLflow store can be read and holds the finished runs."""
        uri = self._uri()
        if uri == address.NO_TRACKING:
            yield Finding("note", "MLflow is not used")
            return
        address.require_usable(uri)
        sync = f"`lietransformer sync {self.path} --tracking {uri}`"
        database = address.database_of(uri)
        if is_locked(database.with_name(f"{database.name}.lock")):
            yield Finding("note", f"{uri} is being written", "check again later")
            return
        try:
            is_there = address.is_server(uri) or database.is_file()  # MLflow would create the file
            stored = _stored_runs(uri) if is_there else {}
        except Exception as error:  # MLflow, SQLAlchemy and HTTP have no common ancestor
            first = "start the server" if address.is_server(uri) else f"move {database} away"
            remedy = f"{first}; {sync} restores it from the run folders"
            yield Finding("problem", f"MLflow cannot read {uri} ({reason(error)})", remedy)
            return
        yield Finding(
            "ok", f"{len(stored)} runs in {uri}" if is_there else f"no store at {uri} yet"
        )
        # Of several folders with the same settings and data, MLflow shows one.
        digests = {digest_of(run) for run in self._done}
        hashes = {run.path: run.read_config_json()["hash"] for run in self._done}
        absent = [path for path, its_hash in hashes.items() if stored.get(its_hash) not in digests]
        yield from listed("warning", "finished runs missing in MLflow", absent, f"run {sync}")

    def _uri(self) -> str:
        config = (read_json(self.path / MANIFEST) or {}).get("config")
        planned = config.get("tracking") if isinstance(config, dict) else None
        if planned in (None, address.DEFAULT_URI):  # which is relative to the project
            planned = f"{address.SQLITE}{self.path / 'mlflow.db'}"
        return self.tracking or os.environ.get("MLFLOW_TRACKING_URI") or str(planned)


def _stored_runs(uri: str) -> dict[str, str | None]:
    """Digests of runs as they were synced, by the hash of their settings and data."""
    client = MlflowClient(tracking_uri=uri)
    found = [client.get_experiment_by_name(task) for task in get_args(TaskName)]
    experiments = [each.experiment_id for each in found if each is not None]
    runs = client.search_runs(experiments, max_results=_MAX_RESULTS) if experiments else []
    return {run.data.tags.get(HASH_TAG, ""): run.data.tags.get(SYNCED_TAG) for run in runs}


def _size(paths: Iterable[Path]) -> str:
    return size(sum(path.lstat().st_size for path in paths if path.exists()))
