"""A dataset and MLflow stores for the tests of the doctor."""

import shutil
from pathlib import Path

import pytest
from mlflow import MlflowClient

from lietransformer.data import springs


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, an empty one; and no store but those that a test names."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    return folder


@pytest.fixture(scope="session")
def springs_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Short trajectories: nothing is trained here."""
    path = tmp_path_factory.mktemp("springs") / "springs.h5"
    config = springs.SpringsConfig(
        systems=60, test=10, validation=8, states=50, duration=0.5, long_chunk=10
    )
    springs.generate(config, path)
    return path


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """An empty folder of results."""
    path = tmp_path / "project" / "results"
    path.mkdir(parents=True)
    return path


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """MLflow's tables, which take it some seconds to make, with nothing in them."""
    path = tmp_path_factory.mktemp("empty") / "mlflow.db"
    MlflowClient(f"sqlite:///{path}").search_experiments()
    return path


@pytest.fixture
def database(results: Path, empty_database: Path) -> Path:
    """The store of the results."""
    return Path(shutil.copy(empty_database, results / "mlflow.db"))
