"""Stores and finished runs for the tests of tracking."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from mlflow import MlflowClient

from lietransformer.training.run_folder import RunFolder
from tests.tracking.runs import make_run, sqlite_uri
from tests.tracking.server import Server


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, an empty one; and no store but those that a test names."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    return folder


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory, springs_file: Path) -> RunFolder:
    """A run that has ended; not to be changed."""
    run = make_run(tmp_path_factory.mktemp("runs") / "finished", springs_file)
    run.execute()
    return run.folder


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """MLflow's tables, which take it some seconds to make, with nothing in them."""
    path = tmp_path_factory.mktemp("empty") / "mlflow.db"
    MlflowClient(sqlite_uri(path)).search_experiments()
    return path


@pytest.fixture
def database(tmp_path: Path, empty_database: Path) -> Path:
    """A store of the test's own."""
    path = tmp_path / "store" / "mlflow.db"
    path.parent.mkdir()
    return Path(shutil.copy(empty_database, path))


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that the tests share; each has runs of its own on it."""
    server = Server(tmp_path_factory.mktemp("server"))
    server.start()
    server.wait()
    yield server
    server.kill()
