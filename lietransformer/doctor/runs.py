"""What became of each run."""

import os
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import h5py

from lietransformer.data.reader import DatasetFile
from lietransformer.doctor.findings import Finding, counted, some
from lietransformer.doctor.locks import look_at
from lietransformer.errors import UserError
from lietransformer.training.run_folder import RunFolder, load

Status = Literal["finished", "diverged", "running", "stopped", "begun", "broken", "gone"]

_TRAIN_AGAIN = (
    "remove the folder, and the one of its name in .resume beside it; Snakemake, or the same "
    "`lietransformer train`, then trains it again"
)
_TEST_AGAIN = "`lietransformer evaluate FOLDER` tests it again and writes the file"
_PERMISSIONS = "check the permissions"


@dataclass(frozen=True)
class ExaminedRun:
    """A run and what became of it.

    Attributes:
        folder: of the run.
        status: "stopped" can go on from a checkpoint, "begun" has none and starts over; "gone"
            was removed while we looked.
        hash: the name of its settings and data; None where that cannot be read.
        fault: what is broken.
        remedy: what to do about that.
    """

    folder: RunFolder
    status: Status
    hash: str | None = None
    fault: str | None = None
    remedy: str = _TRAIN_AGAIN


class _Broken(Exception):
    """Something of a run is missing or damaged."""

    def __init__(self, fault: str, remedy: str = _TRAIN_AGAIN) -> None:
        super().__init__(fault)
        self.remedy = remedy


def examine(folder: RunFolder, *, thorough: bool = False) -> ExaminedRun:
    """Look at all files of a run; thoroughly, also at all that is in them."""
    if _is_worked_on(folder):
        return ExaminedRun(folder, "running", _hash_of(folder))
    try:
        examined = _examine(folder, thorough=thorough)
    except Exception as error:  # files can hold anything, and libraries say so in many ways
        examined = ExaminedRun(folder, "broken", _hash_of(folder), *_explained(error))
    # A run that was begun again, or removed, while we looked is not what it seemed to be.
    if _is_worked_on(folder):
        return ExaminedRun(folder, "running", _hash_of(folder))
    return examined if folder.path.exists() else ExaminedRun(folder, "gone")


def _explained(error: Exception) -> tuple[str, str]:
    """What is broken, and what to do."""
    match error:
        case _Broken():
            return str(error), error.remedy
        case PermissionError():
            return str(error), _PERMISSIONS
        case UserError():
            return str(error).rstrip("."), _TRAIN_AGAIN
    return f"{type(error).__name__}: {error}", _TRAIN_AGAIN


def _is_worked_on(folder: RunFolder) -> bool:
    return look_at(folder.state_folder / "lock").state == "held"


def _hash_of(folder: RunFolder) -> str | None:
    """Of a run that may be begun or removed just now, or be damaged."""
    try:
        return str(folder.read_config_json()["hash"]) if folder.config_file.is_file() else None
    except (UserError, RecursionError):
        return None


def _examine(folder: RunFolder, *, thorough: bool) -> ExaminedRun:
    for path in vars(folder).values():
        if path != folder.path and path.exists() and not path.is_file():
            raise _Broken(f"{path.name} is no file")
        if path.exists() and not os.access(path, os.R_OK):
            raise _Broken(f"{path.name} may not be read", _PERMISSIONS)
    if not folder.config_file.exists():
        raise _Broken("config.json is missing")
    task, its_hash = folder.config().task, str(folder.read_config_json()["hash"])
    folder.records()
    if not folder.is_done:
        return ExaminedRun(folder, _unfinished(folder, its_hash), its_hash)
    result = folder.result()
    if result["status"] not in ("finished", "diverged"):
        raise _Broken("result.json has an unknown status")
    if result.get("hash") != its_hash:
        raise _Broken("result.json is that of another run than config.json")
    if not folder.metrics_file.exists():
        raise _Broken("metrics.jsonl is missing")
    _require_weights(folder.model_file, "model.pt", thorough=thorough)
    # Springs are tested trajectory by trajectory, unless the settings ask for no test at all.
    if task == "springs" and result.get("test"):
        _require_evaluation(folder.evaluation_file, thorough=thorough)
    return ExaminedRun(folder, result["status"], its_hash)


def _unfinished(folder: RunFolder, its_hash: str) -> Status:
    checkpoint = folder.state_folder / f"{its_hash[:16]}.pt"
    if not checkpoint.exists():
        return "begun"
    where = f".resume/{folder.path.name}/{checkpoint.name}"
    _require_weights(checkpoint, f"the checkpoint {where}", thorough=False)
    return "stopped"


def _require_weights(path: Path, name: str, *, thorough: bool) -> None:
    """What torch writes is a zip file, whose list of contents is at its end."""
    if not path.exists():
        raise _Broken(f"{name} is missing")
    if not zipfile.is_zipfile(path):
        raise _Broken(f"{name} is damaged")
    if thorough:
        load(path)


def _require_evaluation(path: Path, *, thorough: bool) -> None:
    if not path.exists():
        raise _Broken("evaluation.h5 is missing", _TEST_AGAIN)
    try:
        if thorough:
            DatasetFile(path, kind="evaluation")
        else:
            h5py.File(path, "r", locking=False).close()  # refuses a file that is cut off
    except (UserError, OSError) as error:
        raise _Broken("evaluation.h5 is damaged", _TEST_AGAIN) from error


def check(runs: Sequence[ExaminedRun], unreadable: Sequence[str]) -> Iterator[Finding]:
    """How many there are of each kind, and which are broken."""
    by_status: dict[str, list[str]] = {}
    for run in runs:
        by_status.setdefault(run.status, []).append(str(run.folder.path))
    done = [name for name in ("finished", "diverged", "running") if name in by_status]
    counts = [f"{len(by_status[name]):,} {name}" for name in done]
    yield Finding("ok", f"{counted(len(runs), 'run')}: {', '.join(counts) or 'none done'}")
    yield from _list(
        by_status.get("stopped", ()),
        "stopped, with a checkpoint to go on from",
        "Snakemake, or the same `lietransformer train`, goes on with them",
    )
    yield from _list(
        by_status.get("begun", ()),
        "begun and stopped before the first checkpoint",
        "Snakemake, or the same `lietransformer train`, starts them over",
    )
    yield from _faults(runs)
    if unreadable:
        yield Finding(
            "problem",
            f"folders that cannot be looked into: {some(unreadable)}",
            "check the permissions",
            tuple(unreadable),
        )


def _list(names: Sequence[str], what: str, remedy: str) -> Iterator[Finding]:
    if names:
        text = f"{counted(len(names), 'run')} {what}: {some(names)}"
        yield Finding("note", text, remedy, tuple(names))


def _faults(runs: Sequence[ExaminedRun]) -> Iterator[Finding]:
    """One finding for all runs with the same fault."""
    by_fault: dict[Any, list[str]] = {}
    for run in runs:
        if run.status == "broken":
            by_fault.setdefault((run.fault, run.remedy), []).append(str(run.folder.path))
    for (fault, remedy), names in by_fault.items():
        what = f"{counted(len(names), 'broken run')}: {fault}: {some(names)}"
        yield Finding("problem", what, remedy, tuple(names))
