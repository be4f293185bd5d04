"""Settings of the whole suite."""

import os
from collections.abc import Iterator
from pathlib import Path

import jaxtyping
import pytest
import torch
from hypothesis import settings
from mlflow import MlflowClient

from lietransformer.data.reader import DatasetFile
from lietransformer.experiments.constellations import dataset as constellations
from lietransformer.experiments.constellations.plan import ConstellationsConfig
from lietransformer.experiments.qm9 import dataset as qm9
from lietransformer.experiments.qm9.plan import QM9Config
from lietransformer.experiments.springs import dataset as springs
from lietransformer.experiments.springs.plan import SpringsConfig
from lietransformer.kernels import SWITCH
from tests.browser import Browser, open_browser

# Small tensors: the suite gains from more processes, not from more threads in each.
torch.set_num_threads(1)

# Nothing may depend on the clock, and continuous integration must be repeatable.
settings.register_profile("local", deadline=None, max_examples=25)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")


SLURM = Path(__file__).parent / "slurm"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes a Slurm cluster or a browser is slow; other tests say it themselves.

    Groups that one process has to run, which are long, come first.
    """
    for item in items:
        if item.path.is_relative_to(SLURM) or "browser" in getattr(item, "fixturenames", ()):
            item.add_marker("slow")
    items.sort(key=lambda item: item.get_closest_marker("xdist_group") is None)


@pytest.fixture(autouse=True)
def _denormal_numbers() -> Iterator[None]:
    """Training in this process flushes them to zero, which other tests would notice."""
    yield
    torch.set_flush_denormal(False)


@pytest.fixture(params=["1", "0"], ids=["replaced", "plain"])
def both_ways(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """With and without what replaces the plain bodies of functions of the method."""
    monkeypatch.setenv(SWITCH, request.param)


@pytest.fixture
def without_shape_checks() -> Iterator[None]:
    """Run as users do: without the shape checks of the test suite, which would speak first."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture
def empty_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in an empty folder, without any MLflow store but those that a test names."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    return folder


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """MLflow's tables, which take it some seconds to make, with nothing in them."""
    path = tmp_path_factory.mktemp("empty") / "mlflow.db"
    MlflowClient(f"sqlite:///{path}").search_experiments()
    return path


@pytest.fixture
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A real browser that has not been anywhere yet."""
    with open_browser(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


# Datasets that many tests read.

SMALL_CONSTELLATIONS = ConstellationsConfig(train=400, validation=50, test=60)
SMALL_SPRINGS = SpringsConfig(systems=120, test=30, validation=20)


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
def short_springs_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Short trajectories, for those who train often, or not at all."""
    path = tmp_path_factory.mktemp("springs") / "springs.h5"
    config = SpringsConfig(
        systems=60, test=10, validation=8, states=50, duration=0.5, long_chunk=10
    )
    springs.generate(config, path)
    return path


@pytest.fixture(scope="session")
def qm9_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The real QM9, all of it."""
    path = tmp_path_factory.mktemp("qm9") / "qm9.h5"
    qm9.generate(QM9Config(), path)
    return path


@pytest.fixture(scope="session")
def real_qm9(qm9_file: Path) -> DatasetFile:
    return DatasetFile(qm9_file)
