"""Datasets that many tests read."""

from pathlib import Path

import pytest

from lietransformer.data import constellations, qm9, springs
from lietransformer.data.reader import DatasetFile

SMALL_CONSTELLATIONS = constellations.ConstellationsConfig(train=400, validation=50, test=60)
SMALL_SPRINGS = springs.SpringsConfig(systems=120, test=30, validation=20)


@pytest.fixture(scope="session")
def constellations_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("constellations") / "constellations.h5"
    constellations.generate(SMALL_CONSTELLATIONS, path)
    return path


@pytest.fixture(scope="session")
def springs_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("springs") / "springs.h5"
    springs.generate(SMALL_SPRINGS, path)
    return path


@pytest.fixture(scope="session")
def qm9_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The real QM9, all of it."""
    path = tmp_path_factory.mktemp("qm9") / "qm9.h5"
    qm9.generate(qm9.QM9Config(), path)
    return path


@pytest.fixture(scope="session")
def real_qm9(qm9_file: Path) -> DatasetFile:
    return DatasetFile(qm9_file)
