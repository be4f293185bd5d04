"""Reading a dataset: checked when it is opened, mapped instead of loaded."""

import hashlib
import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from lietransformer.data.hdf5 import SCHEMA_VERSION, content_hash, datasets
from lietransformer.errors import UserError, explain
from lietransformer.progress import progress

_HASHED_AT_ONCE = 1 << 24  # bytes


class DatasetError(UserError):
    """A dataset file that cannot be used, and what to do about it."""


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
            kind: what it has to be; left out, any kind will do.
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
            # Mapped now, so that they stay those of this file even if another takes its name.
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
        """What is noted beside an array, for example the names of its columns."""
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
                explain(
                    expected=f"the array {name} in {self.path}",
                    found=f"only {', '.join(self._arrays) or 'an empty file'}",
                    remedy=_generate_again(self.kind),
                )
            )
        return self._arrays[name]


class _Stored:
    """One array of the file, mapped, and what is noted beside it."""

    def __init__(self, dataset: Any, path: Path) -> None:
        self.attributes = {name: str(value) for name, value in dataset.attrs.items()}
        if not dataset.shape:
            raise ValueError(f"{dataset.name} has no rows")
        offset = dataset.id.get_offset()
        self.values: np.ndarray
        if dataset.size == 0:  # HDF5 gives no place to an empty array
            self.values = np.empty(dataset.shape, dataset.dtype)
        elif offset is None:
            raise ValueError(f"{dataset.name} is compressed or in pieces, and cannot be mapped")
        else:
            self.values = np.memmap(path, dataset.dtype, "r", offset, dataset.shape)


def _reopen(path: Path, kind: str, content_hash: str) -> DatasetFile:
    file = DatasetFile(path, kind=kind, verify=False)
    if file.content_hash != content_hash:
        raise DatasetError(_altered(path, "everything changed since it was opened first"))
    return file


@contextmanager
def _open(path: Path) -> Iterator[Any]:
    try:
        found = "a folder" if stat.S_ISDIR(path.stat().st_mode) else None
    except OSError as error:
        found = (error.strerror or str(error)).lower()
    if found is not None:
        raise DatasetError(
            explain(
                expected=f"a dataset at {path}",
                found=found,
                remedy="check the name, or generate it with `lietransformer data`",
            )
        )
    try:
        # Without HDF5's lock, which some network file systems refuse: nobody writes to the file.
        file = h5py.File(path, "r", locking=False)
    except OSError as error:
        found = error.strerror or str(error)
        if "truncated" in str(error):
            found = "a file that is cut off"
        elif "signature not found" in str(error):
            found = "a file of another format"
        raise DatasetError(
            explain(
                expected=f"an HDF5 dataset in {path}",
                found=found,
                remedy="copy it again, or generate it with `lietransformer data`",
            )
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
            explain(
                expected=f"a dataset of this package in {path}",
                found="an HDF5 file without the attributes kind and schema_version",
                remedy="generate one with `lietransformer data`",
            )
        )
    if kind is not None and found_kind != kind:
        raise DatasetError(
            explain(
                expected=f"a dataset of the kind {kind} in {path}",
                found=f"one of the kind {found_kind}",
                remedy="give the other file",
            )
        )
    if version != SCHEMA_VERSION:
        is_older = int(version) < SCHEMA_VERSION
        raise DatasetError(
            explain(
                expected=f"schema version {SCHEMA_VERSION} in {path}",
                found=f"version {version}, of {'an older' if is_older else 'a newer'} release",
                remedy=_generate_again(found_kind) if is_older else "update the package",
            )
        )
    if file.attrs.get("content_hash") != content_hash(file):
        raise DatasetError(
            _altered(path, "the settings or the list of arrays do not match the hash")
        )


def _altered(path: Path, what: str) -> str:
    return explain(
        expected=f"{path} as it was written",
        found=f"a file in which {what}",
        remedy="copy it again or generate it again",
    )


def _generate_again(kind: str) -> str:
    return f"generate it again with `lietransformer data {kind}`"
