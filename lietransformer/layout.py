"""What lies where in the archive, and whether it is intact. Imports no torch.

MANIFEST.json     SHA-256 and size of every file; commit, machine and core-hours of every run;
                  the planned runs of the workstation tier, for tables and figures
README.md         generated: what is there and what is not
runs/             config.json, result.json, metrics.jsonl and a compact evaluation.h5 of each run
trajectories/     the predicted and true paths that Figures 6 and 11 draw
measurements/     invariance, complexity and lifting; prices: GPU-hours of runs
weights/          NAME.safetensors with its model card NAME.md
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, FiniteFloat, ValidationError

from lietransformer.errors import UserError
from lietransformer.experiments.registry import TaskName

FOLDER = "published"  # within the results
# Folders within the results in which MLflow keeps artifacts: ours, and those of its server.
ARTIFACTS = "mlflow-artifacts"
COPIES = {ARTIFACTS, "mlartifacts", "mlruns"}
MANIFEST = "MANIFEST.json"
README = "README.md"  # made from the manifest, and therefore not in it
FOLDERS = ("runs", "measurements", "trajectories", "weights")  # with all other files
COPIED = ("config.json", "result.json", "metrics.jsonl")  # files of a run as they are
SCHEMA_VERSION = 1
RESTORE = "Restore it with `git checkout -- results/published`."


def _is_within(name: str) -> str:
    if name.startswith("/") or ".." in name.split("/"):
        raise ValueError("must be a path within the archive")
    return name


_Name = Annotated[str, AfterValidator(_is_within)]


class _File(BaseModel):
    bytes: int
    sha256: str


class _Dataset(BaseModel):
    kind: TaskName
    settings: dict[str, Any]
    content_hash: str


class _Planned(BaseModel):
    folder: _Name
    task: TaskName
    model: str
    seed: int
    parts: list[str] = []


class Machine(BaseModel):
    """What computed a run: hardware and versions."""

    model_config = ConfigDict(extra="allow")
    processor: str
    torch: str


class _Run(BaseModel):
    task: TaskName
    model: str
    seed: int
    status: Literal["finished", "diverged"]
    hash: str
    dataset: str
    git_commit: str
    machine: Machine
    core_hours: FiniteFloat


class _Weights(BaseModel):
    file: _Name
    card: _Name
    run: _Name
    weights: Literal["best", "final"]


class _Sweep(BaseModel):
    runs: list[_Planned] = []
    measurements: dict[str, _Name] = {}


class _Manifest(BaseModel):
    schema_version: Literal[1]
    datasets: dict[str, _Dataset]
    runs: dict[_Name, _Run]
    weights: dict[str, _Weights]
    sweep: _Sweep
    files: dict[_Name, _File]


@dataclass(frozen=True)
class Archive:
    """A folder of published runs. Reading its manifest fails with a clear error if it is damaged.

    Attributes:
        path: the folder, for example results/published.
    """

    path: Path

    @property
    def exists(self) -> bool:
        return (self.path / MANIFEST).exists()

    @property
    def has_lost_manifest(self) -> bool:
        """Whether there are published files, and no manifest that knows them."""
        files = (path for name in FOLDERS for path in (self.path / name).rglob("*"))
        return not self.exists and any(path.is_file() for path in files)

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """The content of MANIFEST.json; empty lists if there is no archive yet."""
        file = self.path / MANIFEST
        if not file.exists():
            if self.has_lost_manifest:
                raise UserError(
                    f"{file} is missing. {RESTORE} If the archive is not in git yet, remove "
                    f"{self.path} and publish again."
                )
            return empty_manifest()
        try:
            content = json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise UserError(f"{file} cannot be read ({error}). {RESTORE}") from error
        try:
            _Manifest.model_validate(content)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"]))
            raise UserError(
                f"{file} is not a manifest of schema version {SCHEMA_VERSION}: {where}: "
                f"{first['msg']}. {RESTORE}"
            ) from error
        return dict(content)

    @property
    def runs(self) -> dict[str, dict[str, Any]]:
        """The published runs by their folder, for example runs/springs/lieconv-t2/n10-…/seed-0."""
        runs: dict[str, dict[str, Any]] = self.manifest["runs"]
        return runs

    @property
    def files(self) -> dict[str, dict[str, Any]]:
        """SHA-256 and size of every file of the archive, by its path."""
        files: dict[str, dict[str, Any]] = self.manifest["files"]
        return files

    def measurement(self, stem: str) -> Path | None:
        """The file of a measurement, for example invariance-1a2b3c4d; None if not published."""
        name = f"measurements/{stem}.json"
        return self.path / name if name in self.files else None

    @property
    def prices(self) -> Path | None:
        """GPU-hours of runs at the paper's scale; None if not published."""
        names = (name for name in self.files if name.startswith("measurements/prices-"))
        return next((self.path / name for name in names), None)

    @property
    def state(self) -> str | None:
        """SHA-256 of the manifest, which names the archive's content; None without one."""
        return sha256(self.path / MANIFEST) if self.exists else None

    def problems(self, below: str | None = None) -> list[str]:
        """Files of the manifest that are missing or damaged, a sentence each.

        Args:
            below: check only the files of this folder of the archive, such as a run's.
        """
        found = []
        if below is None and (self.path / README).is_dir():
            found.append(f"{self.path / README} is a folder")
        for name, entry in self.files.items():
            if below is None or name.startswith(f"{below}/"):
                reason = _damage(self.path / name, entry)
                if reason is not None:
                    found.append(f"{self.path / name} {reason}")
        return found

    def stray_names(self) -> list[str]:
        """Files that the manifest does not know; a publish that was killed can leave some."""
        present = (path for path in self.path.rglob("*") if not path.is_dir())
        names = sorted(path.relative_to(self.path).as_posix() for path in present)
        known = {*self.files, MANIFEST, README}
        return [name for name in names if name not in known]

    def strays(self) -> list[str]:
        """The same, a sentence each."""
        return [f"{self.path / name} is not in the manifest" for name in self.stray_names()]

    def name_of(self, path: Path) -> str | None:
        """The name of a published run by its folder; None if it is not in the manifest."""
        if not path.is_relative_to(self.path):
            return None
        name = path.relative_to(self.path).as_posix()
        return name if name in self.runs else None

    def require_intact(self, below: str | None = None) -> None:
        """Raise an error that names the damaged files."""
        found = self.problems(below)
        if found:
            raise damaged(found)


def damaged(problems: Sequence[str]) -> UserError:
    """The error for an archive with problems."""
    shown = "; ".join(own.removesuffix(".") for own in problems[:5])
    more = f"; and {len(problems) - 5} more" if problems[5:] else ""
    return UserError(f"The archive of published runs is damaged: {shown}{more}. {RESTORE}")


def empty_manifest() -> dict[str, Any]:
    """The manifest of an archive without runs."""
    return {
        "schema_version": SCHEMA_VERSION,
        "datasets": {},  # content hash of each dataset by its name, for example springs-1a2b3c4d
        "runs": {},
        "weights": {},  # by the name that `load_model` takes
        "sweep": {},  # the planned runs of the workstation tier, as in results/sweep.json
        "files": {},
    }


def run_name(labels: Mapping[str, Any]) -> str:
    """A configuration as people write it: springs/LieTransformer-T2/n100, qm9/LieConv-T3/homo.

    Args:
        labels: task, model, target, augmentation, n_train, draw and ablation; all but the first
            two may be None or left out.
    """
    augmentation, size = labels.get("augmentation"), labels.get("n_train")
    draw = labels.get("draw")
    parts: Iterable[Any] = (
        labels["task"],
        labels["model"],
        labels.get("target"),
        None if augmentation == "none" else augmentation,
        None if size is None else f"n{size}",
        f"draw{draw}" if draw else None,
        labels.get("ablation"),
    )
    return "/".join(str(part) for part in parts if part)


def sha256(path: Path) -> str:
    """Of a file's content."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _damage(path: Path, entry: Mapping[str, Any]) -> str | None:
    """What is wrong with a file; None if nothing is."""
    if not path.is_file():
        return "is missing"
    size = path.stat().st_size
    if size != entry["bytes"]:
        return f"has {size} bytes instead of {entry['bytes']}"
    return None if sha256(path) == entry["sha256"] else "does not have the SHA-256 of the manifest"
