"""Settings of the whole suite."""

import os
from collections.abc import Iterator
from pathlib import Path

import jaxtyping
import pytest
import torch
from hypothesis import settings

from lietransformer.data import constellations, qm9, springs
from lietransformer.data.reader import DatasetFile
from tests.browser import Browser, open_browser

# Small tensors: the suite gains from more processes, not from more threads in each.
torch.set_num_threads(1)

# Nothing may depend on the clock, and continuous integration must be repeatable.
settings.register_profile("local", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")


@pytest.fixture(autouse=True)
def _denormal_numbers() -> Iterator[None]:
    """Training in this process flushes them to zero, which other tests would notice."""
    yield
    torch.set_flush_denormal(False)


@pytest.fixture
def without_shape_checks() -> Iterator[None]:
    """Run as users do: without the shape checks of the test suite, which would speak first."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A real browser that has not been anywhere yet."""
    with open_browser(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


# Datasets that many tests read.

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
