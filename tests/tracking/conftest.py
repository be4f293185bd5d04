"""Stores and finished runs for the tests of tracking."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from lietransformer.training.run_folder import RunFolder
from tests.tracking.runs import make_run
from tests.tracking.server import Server


@pytest.fixture(autouse=True)
def elsewhere(empty_working_folder: Path) -> Path:
    """The working folder of all these tests."""
    return empty_working_folder


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory, springs_file: Path) -> RunFolder:
    """A run that has ended; not to be changed."""
    run = make_run(tmp_path_factory.mktemp("runs") / "finished", springs_file)
    run.execute()
    return run.folder


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
