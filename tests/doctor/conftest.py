"""A dataset and MLflow stores for the tests of the doctor."""

import shutil
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def elsewhere(empty_working_folder: Path) -> Path:
    """The working folder of all these tests."""
    return empty_working_folder


@pytest.fixture(scope="session")
def springs_file(short_springs_file: Path) -> Path:
    """Short trajectories: nothing is trained here."""
    return short_springs_file


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """An empty folder of results."""
    path = tmp_path / "project" / "results"
    path.mkdir(parents=True)
    return path


@pytest.fixture
def database(results: Path, empty_database: Path) -> Path:
    """The store of the results."""
    return Path(shutil.copy(empty_database, results / "mlflow.db"))
