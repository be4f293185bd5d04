"""Small datasets to measure with, and what the real ones will take."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py

from lietransformer.data.config import GeneratorConfig
from lietransformer.experiments.constellations import dataset as constellations
from lietransformer.experiments.constellations.dataset import (
    SPLITS,
    TEST_SETS,
    ConstellationsConfig,
)
from lietransformer.experiments.qm9 import dataset as qm9
from lietransformer.experiments.qm9.dataset import QM9Config
from lietransformer.experiments.qm9.sources.molecules import CHARACTERIZED
from lietransformer.experiments.registry import TaskName
from lietransformer.experiments.springs import dataset as springs
from lietransformer.experiments.springs.dataset import SpringsConfig
from lietransformer.sweep.jobs import Dataset

_SETTINGS: dict[TaskName, type[GeneratorConfig]] = {
    "constellations": ConstellationsConfig,
    "springs": SpringsConfig,
    "qm9": QM9Config,
}
_SMALLEST = 100  # examples: fewer would say little about the time that each takes


@dataclass(frozen=True)
class DatasetSpeed:
    """What making a dataset took.

    Attributes:
        seconds: for each example.
        size: bytes for each row of each kind of array.
    """

    seconds: float
    size: dict[str, float]


def generator_settings(dataset: Dataset) -> Any:
    """All settings of a dataset, also those that the sweep leaves to the paper."""
    return _SETTINGS[dataset.kind].model_validate(dataset.settings)


def measure_dataset(
    task: TaskName, settings: Any, folder: Path, largest_batch: int
) -> tuple[Path, DatasetSpeed]:
    """Make a dataset with these settings, but no larger than measuring needs.

    Molecules differ in size, so of those all are needed.
    """
    path = folder / f"{task}.h5"
    count = max(_SMALLEST, largest_batch)
    started = time.process_time()  # made with one thread, and not to wait for other processes
    small = settings
    if isinstance(settings, ConstellationsConfig):
        small = settings.model_copy(update=dict.fromkeys(SPLITS, count))
        constellations.generate(small, path)
    elif isinstance(settings, SpringsConfig):
        changes = {"systems": 3 * count, "validation": count, "test": count}
        small = settings.model_copy(update=changes)
        springs.generate(small, path)
    else:
        qm9.generate(small, path)
    seconds = time.process_time() - started
    rows = _rows(small)
    with h5py.File(path) as file:
        size = {
            kind: sum(array.id.get_storage_size() for array in file[kind].values()) / number
            for kind, number in rows.items()
        }
    return path, DatasetSpeed(seconds / examples(small), size)


def examples(settings: Any) -> int:
    """How many examples a dataset has."""
    if isinstance(settings, ConstellationsConfig):
        return settings.train + settings.validation + settings.test
    if isinstance(settings, SpringsConfig):
        return settings.systems
    return int(min(settings.limit or CHARACTERIZED, CHARACTERIZED))


def expected_bytes(settings: Any, speed: DatasetSpeed) -> float:
    """How large its file will be."""
    return sum(speed.size[kind] * number for kind, number in _rows(settings).items())


def _rows(settings: Any) -> dict[str, int]:
    """The kinds of arrays by the first part of their names, and how many rows they have."""
    if isinstance(settings, ConstellationsConfig):
        tests = {name: copies * settings.test for name, copies in TEST_SETS.items()}
        return {**{split: getattr(settings, split) for split in SPLITS}, **tests}
    if isinstance(settings, SpringsConfig):
        systems = dict.fromkeys(("systems", "chunks"), settings.systems)
        return {**systems, "test": settings.test}
    return dict.fromkeys(("molecules", "atoms", "split"), examples(settings))
