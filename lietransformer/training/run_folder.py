"""A run on disk: a folder whose files are all that tables and figures are made from.

config.json       the settings, complete, and the hash that names the run's numbers
metrics.jsonl     the curves, a line for each evaluation; only ever added to
system.jsonl      what the machine was doing meanwhile
model.pt          best and final weights, and nothing else
evaluation.h5     numbers for each test example, where the task has any
result.json       the final numbers; written last, so that it exists when the run is done
"""

import json
import math
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, cast

import torch
from torch import Tensor

from lietransformer.errors import UserError
from lietransformer.files import PatientFile, cannot_write, complete_or_absent, read_lines
from lietransformer.settings import validated
from lietransformer.training.config import RunConfig

SCHEMA_VERSION = 1
_FILES = (
    "result.json",  # first, when a run is removed: without it a run is not done
    "evaluation.json",
    "evaluation.h5",
    "model.pt",
    "metrics.jsonl",
    "system.jsonl",
    "config.json",
)


class RunFolder:
    """Reads and writes the files of a run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.config_file = path / "config.json"
        self.metrics_file = path / "metrics.jsonl"
        self.system_file = path / "system.jsonl"
        self.model_file = path / "model.pt"
        self.evaluation_file = path / "evaluation.h5"
        self.result_file = path / "result.json"

    @property
    def is_done(self) -> bool:
        """Whether the run has ended: finished, or diverged."""
        return self.result_file.exists()

    @property
    def state_folder(self) -> Path:
        """The folder of the checkpoint: beside the run folder, not in it.

        A workflow system removes the outputs of a job before it tries again.
        """
        path = self.path.resolve()  # so that every way to name the folder leads here
        return path.parent / ".resume" / path.name

    def claim(
        self, config: RunConfig, identity_hash: str, constants: dict[str, float] | None = None
    ) -> None:
        """Make it the folder of this run; refuse one that belongs to another.

        Args:
            config: the run's settings.
            identity_hash: of settings and data.
            constants: numbers of the task that its outputs depend on.
        """
        self._require_own(config, identity_hash)
        if self.is_done and self.result().get("hash") != identity_hash:
            raise UserError(
                f"{self.path} holds the result of a run of other settings or data. Choose another "
                "folder, or start over with --force."
            )
        if self.config_file.exists():
            return
        if self.path.exists() and not self.path.is_dir():
            raise UserError(
                f"{self.path} must be a folder for the run, but is a file. Choose another name."
            )
        stored = {
            "schema_version": SCHEMA_VERSION,
            "hash": identity_hash,
            "config": config.model_dump(mode="json"),
            "constants": constants or {},
        }
        write_json(self.config_file, stored)

    def _require_own(self, config: RunConfig, identity_hash: str) -> None:
        """Refuse a folder whose settings are another run's, and say in what they differ."""
        if not self.config_file.exists():
            return
        stored = self.read_config_json()
        if stored["hash"] != identity_hash:
            theirs, ours = stored["config"], config.identity
            raise UserError(
                f"{self.path} holds a run of other settings ({_differences(theirs, ours)}). Choose "
                "another folder, or start over with --force."
            )

    def clear(self) -> None:
        """Remove the run's files, and no others."""
        try:
            for path in (
                *(self.path / name for name in _FILES),
                *self.state_folder.glob("*.pt"),
            ):
                path.unlink(missing_ok=True)
        except OSError as error:
            raise UserError(
                f"cannot remove the run in {self.path}: {(error.strerror or str(error)).lower()}. "
                "Check the permissions, or choose another folder."
            ) from error

    def read_config_json(self) -> dict[str, Any]:
        """The settings and the hash as they are stored."""
        return _read_json(self.config_file, keys=("hash", "config"))

    def config(self) -> RunConfig:
        """The run's settings."""
        return validated(RunConfig, self.read_config_json()["config"], self.config_file)

    def result(self) -> dict[str, Any]:
        """The final numbers."""
        return _read_json(self.result_file, keys=("status",))

    def write_records(self, records: Iterable[dict[str, Any]]) -> None:
        """Rewrite the curves with the records of a checkpoint."""
        _write_text(self.metrics_file, "".join(map(_line, records)))

    def add_record(self, record: dict[str, Any]) -> None:
        """Add a point to the curves."""
        append_line(self.metrics_file, record)

    def records(self) -> list[dict[str, Any]]:
        """The curves so far; a line that is not complete yet is left out."""
        return list(read_lines(self.metrics_file, "step", "epoch"))

    def write_weights(self, weights: dict[str, dict[str, Tensor]]) -> None:
        """Best and final weights."""
        save(self.model_file, weights)

    def weights(self, which: str) -> dict[str, Tensor]:
        """The weights of that name."""
        if not self.model_file.exists():
            raise UserError(
                f"there are no weights of a run in {self.model_file}: no such file. Train it first "
                "with `lietransformer train`."
            )
        stored = load(self.model_file)
        sets = [*stored.values()] if isinstance(stored, dict) else [None]
        tensors = (own.values() if isinstance(own, dict) else [None] for own in sets)
        if not all(isinstance(tensor, Tensor) for own in tensors for tensor in own):
            raise UserError(
                f"{self.model_file} does not hold sets of weights by name. Copy it again, or train "
                "the run again."
            )
        if which not in stored:
            raise UserError(
                f"{self.model_file} has the weights {', '.join(stored)}, not {which}. Choose one "
                "of them."
            )
        return dict(stored[which])


def save(path: Path, content: Any) -> None:
    """torch.save into a file that is complete or absent."""
    with complete_or_absent(path) as part, open(part, "r+b", buffering=0) as raw:
        file = PatientFile(raw)
        torch.save(content, cast(IO[bytes], file))
        try:
            file.raise_failure()
        except OSError as error:
            raise cannot_write(path, error) from error


def load(path: Path) -> Any:
    """What `save` wrote: tensors, numbers and texts, never code."""
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch reports damage in many ways
        raise UserError(
            f"cannot read {path} ({type(error).__name__}): it is not as it was written. Copy it "
            "again, or remove it and run again."
        ) from error


def write_json(path: Path, content: Any) -> None:
    """`to_json` in a file that is complete or absent."""
    _write_text(path, to_json(content) + "\n")


def to_json(content: Any) -> str:
    """Indented JSON, in which numbers that are not finite become null."""
    return json.dumps(_finite(content), indent=2, allow_nan=False)


def drop_incomplete_line(path: Path) -> None:
    """Remove an incomplete last line that a killed process has left."""
    with suppress(FileNotFoundError), open(path, "r+b") as file:
        file.truncate(file.read().rfind(b"\n") + 1)


def append_line(path: Path, record: dict[str, Any]) -> None:
    """Add a line of JSON to a file, in one write."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        try:
            line = _line(record).encode()
            if os.write(descriptor, line) != len(line):
                raise OSError(28, "No space left on device")
        finally:
            os.close(descriptor)
    except OSError as error:
        raise cannot_write(path, error) from error


def _write_text(path: Path, text: str) -> None:
    with complete_or_absent(path) as part:
        try:
            part.write_text(text, encoding="utf-8")
        except OSError as error:
            raise cannot_write(path, error) from error


def _line(record: dict[str, Any]) -> str:
    return json.dumps(_finite(record), allow_nan=False) + "\n"


def _finite(content: Any) -> Any:
    if isinstance(content, dict):
        return {key: _finite(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_finite(value) for value in content]
    if isinstance(content, float) and not math.isfinite(content):
        return None
    return content


def _read_json(path: Path, keys: tuple[str, ...]) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(
            f"cannot read {path}: {getattr(error, 'strerror', None) or 'it is not JSON'}. Give the "
            "folder of a run of this package."
        ) from error
    if not isinstance(content, dict) or any(key not in content for key in keys):
        raise UserError(
            f"{path} has no {' and '.join(keys)}. Give the folder of a run of this package."
        )
    return content


def _differences(theirs: dict[str, Any], ours: dict[str, Any]) -> str:
    names = [name for name in ours if theirs.get(name) != ours[name]]
    shown = [f"{name}: {theirs.get(name)!r} there, {ours[name]!r} here" for name in names]
    return "; ".join(shown) or "another dataset"
