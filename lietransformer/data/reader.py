"""Reading a dataset: checked when it is opened, mapped instead of loaded."""

import hashlib
import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, get_args

import h5py
import numpy as np

from lietransformer.data.hdf5 import SCHEMA_VERSION, content_hash, datasets
from lietransformer.errors import UserError
from lietransformer.experiments.registry import TaskName
from lietransformer.progress import progress

_HASHED_AT_ONCE = 1 << 24  # bytes


class DatasetError(UserError):
    """A dataset file that cannot be used."""


class DatasetFile:
    """A complete dataset on disk, checked when it is opened.

    Arrays are mapped read-only. The object can be pickled and used in forked processes.

    Attributes:
        path: where it is.
        kind: "constellations", "springs" or "qm9".
        config: the settings it was generated with.
        seed: the generator's seed.
        package_version: the version of this package that wrote it.
        content_hash: SHA-256 of its settings and arrays.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, kind: str | None = None, verify: bool = True
    ) -> None:
        """Open a dataset.

        Args:
            path: the file.
            kind: the required kind; None accepts any.
            verify: recompute the hash of every array, which reads the whole file once.
                Without it the file is still checked for completeness and schema.
        """
        self.path = Path(path)
        self._absolute = self.path.absolute()
        with _open(self.path) as file:
            _check_header(self.path, file, kind)
            self.kind = str(file.attrs["kind"])
            self.config: dict[str, Any] = dict(json.loads(file.attrs["config"]))
            self.seed = int(file.attrs["seed"])
            self.package_version = str(file.attrs["package_version"])
            self.content_hash = str(file.attrs["content_hash"])
            # Mapped now: they stay this file's even if another file replaces it.
            self._arrays = {
                dataset.name[1:]: _Stored(dataset, self.path) for dataset in datasets(file)
            }
        if verify:
            self.verify()

    def __reduce__(self) -> Any:
        return _reopen, (self._absolute, self.kind, self.content_hash)

    @property
    def names(self) -> list[str]:
        """The names of its arrays."""
        return list(self._arrays)

    def array(self, name: str) -> np.ndarray:
        """One array, mapped from the file: only what is looked at is read."""
        return self._stored(name).values

    def attribute(self, name: str, attribute: str) -> str:
        """The attributes of an array, for example the names of its columns."""
        return self._stored(name).attributes[attribute]

    def verify(self) -> None:
        """Compare every array with its hash."""
        total = sum(stored.values.nbytes for stored in self._arrays.values())
        with progress(total=total, description=f"checking {self.path.name}", unit="B") as bar:
            for name, stored in self._arrays.items():
                digest = hashlib.sha256()
                values = stored.values
                block = max(1, _HASHED_AT_ONCE * len(values) // max(1, values.nbytes))
                for start in range(0, len(values), block):
                    rows = np.ascontiguousarray(values[start : start + block])
                    digest.update(rows.data.cast("B"))
                    bar.update(rows.nbytes)
                if digest.hexdigest() != stored.attributes.get("sha256"):
                    raise DatasetError(
                        _altered(self.path, f"the array {name} does not match its hash")
                    )

    def _stored(self, name: str) -> "_Stored":
        if name not in self._arrays:
            raise DatasetError(
                f"{self.path} has no array {name}; its arrays are "
                f"{', '.join(self._arrays) or 'none'}. {_generate_again(self.kind)}."
            )
        return self._arrays[name]


class _Stored:
    """One mapped array of the file and its attributes."""

    def __init__(self, dataset: Any, path: Path) -> None:
        self.attributes = {name: str(value) for name, value in dataset.attrs.items()}
        if not dataset.shape:
            raise ValueError(f"{dataset.name} has no rows")
        offset = dataset.id.get_offset()
        self.values: np.ndarray
        if dataset.size == 0:  # HDF5 allocates no space for an empty array
            self.values = np.empty(dataset.shape, dataset.dtype)
        elif offset is None:
            raise ValueError(f"{dataset.name} is compressed or in pieces, and cannot be mapped")
        else:
            self.values = np.memmap(path, dataset.dtype, "r", offset, dataset.shape)


def _reopen(path: Path, kind: str, content_hash: str) -> DatasetFile:
    file = DatasetFile(path, kind=kind, verify=False)
    if file.content_hash != content_hash:
        raise DatasetError(_altered(path, "it has changed since it was opened first"))
    return file


@contextmanager
def _open(path: Path) -> Iterator[Any]:
    try:
        found = "it is a folder" if stat.S_ISDIR(path.stat().st_mode) else None
    except OSError as error:
        found = (error.strerror or str(error)).lower()
    if found is not None:
        raise DatasetError(
            f"cannot read the dataset {path}: {found}. Check the name, or generate it with "
            "`lietransformer data`."
        )
    try:
        # Without HDF5's lock, which some network file systems refuse: nobody writes to the file.
        file = h5py.File(path, "r", locking=False)
    except OSError as error:
        found = error.strerror or str(error)
        if "truncated" in str(error):
            found = "it is cut off"
        elif "signature not found" in str(error):
            found = "it has another format"
        raise DatasetError(
            f"cannot read the HDF5 dataset {path}: {found}. Copy it again, or generate it with "
            "`lietransformer data`."
        ) from error
    with file:
        try:
            yield file
        except (OSError, RuntimeError, KeyError, ValueError, TypeError, AttributeError) as error:
            # HDF5 reports damaged structures, and Python unexpected types, in any of these ways.
            raise DatasetError(_altered(path, f"something is damaged ({error})")) from error


def _check_header(path: Path, file: Any, kind: str | None) -> None:
    found_kind = file.attrs.get("kind")
    version = file.attrs.get("schema_version")
    if found_kind is None or version is None:
        raise DatasetError(
            f"{path} is not a dataset of this package: it lacks the attribute kind or "
            "schema_version. Generate one with `lietransformer data`."
        )
    if kind is not None and found_kind != kind:
        raise DatasetError(
            f"{path} is a dataset of the kind {found_kind}, not {kind}. Give a {kind} dataset."
        )
    if version != SCHEMA_VERSION:
        is_older = int(version) < SCHEMA_VERSION
        age = "an older" if is_older else "a newer"
        remedy = _generate_again(found_kind) if is_older else "Update the package"
        raise DatasetError(
            f"{path} must have schema version {SCHEMA_VERSION}, got {version}, of {age} release. "
            f"{remedy}."
        )
    if file.attrs.get("content_hash") != content_hash(file):
        raise DatasetError(
            _altered(path, "the settings or the list of arrays do not match the hash")
        )


def _altered(path: Path, what: str) -> str:
    return f"{path} is not as it was written: {what}. Copy it again or generate it again."


def _generate_again(kind: str) -> str:
    if kind in get_args(TaskName):
        return f"Generate it again with `lietransformer data {kind}`"
    return "Restore it with `git checkout` if it is published, or train its run again"
