"""The format: a dataset is one HDF5 file, arrays and attributes that say what they are.

Attributes of the file: `kind`, `schema_version`, `config` (the generator's full settings, as
JSON), `seed`, `package_version` and `content_hash`. Attributes of each array: `sha256` of its
bytes, and what a reader needs to understand it (names, units).

Arrays are stored contiguous and uncompressed, so a reader maps them into memory: random
access touches only the pages it needs, and forked processes share them without sharing an
HDF5 handle.
"""

import hashlib
import json
from typing import Any

import h5py

SCHEMA_VERSION = 1


def content_hash(file: Any) -> str:
    """A hash over the settings and, through their own hashes, all arrays."""
    content: dict[str, Any] = {
        name: str(file.attrs[name]) for name in ("kind", "schema_version", "config", "seed")
    }
    content["arrays"] = {
        dataset.name: [dataset.dtype.str, dataset.shape, dict(dataset.attrs.items())]
        for dataset in datasets(file)
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def datasets(file: Any) -> list[Any]:
    """Every array of the file, in the order of their names."""
    found: list[Any] = []
    file.visititems(lambda _, item: found.append(item) if isinstance(item, h5py.Dataset) else None)
    return found
