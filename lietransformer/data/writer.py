"""Writing a dataset: streamed, hashed, and complete or absent."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from lietransformer import __version__
from lietransformer.data.hdf5 import SCHEMA_VERSION, content_hash
from lietransformer.files import PatientFile, cannot_write, complete_or_absent
from lietransformer.interruption import undisturbed


class ArrayWriter:
    """One array of a dataset, written from the first row to the last."""

    def __init__(self, name: str, dataset: Any, device: PatientFile) -> None:
        self.name = name
        self._dataset = dataset
        self._device = device
        self._hash = hashlib.sha256()
        self._rows = 0

    def append(self, rows: np.ndarray) -> None:
        """Write the next rows."""
        block = np.ascontiguousarray(rows, dtype=self._dataset.dtype)
        if len(block):
            with undisturbed():
                self._dataset[self._rows : self._rows + len(block)] = block
            self._device.raise_failure()
            self._hash.update(block.data.cast("B"))
            self._rows += len(block)

    def finish(self) -> None:
        """Store the hash of what was written."""
        if self._rows != len(self._dataset):
            raise RuntimeError(f"{self.name}: {self._rows} rows of {len(self._dataset)} written")
        self._dataset.attrs["sha256"] = self._hash.hexdigest()


class DatasetWriter:
    """A dataset that is being written; see `create_dataset`."""

    def __init__(self, file: Any, device: PatientFile) -> None:
        self._file = file
        self._device = device
        self._arrays: list[ArrayWriter] = []

    def array(
        self, name: str, shape: tuple[int, ...], dtype: str, **attributes: str
    ) -> ArrayWriter:
        """A new array, to be filled row by row."""
        # Little-endian on every machine, so that the same settings give the same file.
        with undisturbed():
            dataset = self._file.create_dataset(name, shape, np.dtype(dtype).newbyteorder("<"))
            dataset.attrs.update(attributes)
        writer = ArrayWriter(name, dataset, self._device)
        self._arrays.append(writer)
        return writer

    def write(self, name: str, values: np.ndarray, **attributes: str) -> None:
        """A new array with these values."""
        self.array(name, values.shape, values.dtype.str, **attributes).append(values)

    def finish(self) -> None:
        """Hash everything."""
        with undisturbed():
            for array in self._arrays:
                array.finish()
            self._file.attrs["content_hash"] = content_hash(self._file)


@contextmanager
def create_dataset(
    path: Path, *, kind: str, config: Mapping[str, Any], seed: int
) -> Iterator[DatasetWriter]:
    """Write a dataset; the file appears when the block has ended well, and is then complete."""
    with complete_or_absent(path) as part, open(part, "r+b", buffering=0) as raw:
        device = PatientFile(raw)
        try:
            file = None
            try:
                with undisturbed():
                    file = h5py.File(device, "w")
                    file.attrs["kind"] = kind
                    file.attrs["schema_version"] = SCHEMA_VERSION
                    file.attrs["config"] = json.dumps(config)
                    file.attrs["seed"] = seed
                    file.attrs["package_version"] = __version__
                writer = DatasetWriter(file, device)
                yield writer
                writer.finish()
            finally:
                with undisturbed():
                    if file is not None:
                        file.close()
            device.raise_failure()
        except OSError as error:
            if error is device.failure:
                raise cannot_write(path, error) from error
            raise
