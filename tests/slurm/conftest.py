"""The cluster of these tests, and the runs that theirs are compared with."""

import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.requirements import IS_ALL_REQUIRED
from tests.slurm.cluster import NoCluster, shared_cluster
from tests.slurm.project import SPRINGS, Project


@pytest.fixture(scope="session")
def cluster() -> Iterator[None]:
    """A real Slurm; where there can be none, the reason."""
    running = shared_cluster()
    try:
        running.__enter__()
    except NoCluster as reason:
        if IS_ALL_REQUIRED:
            pytest.fail(str(reason))
        pytest.skip(str(reason))
    yield
    running.__exit__(None, None, None)


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The sweep of these tests, run on this machine without a cluster and without disturbance.

    It is made once for all processes of the test suite.
    """
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    with (folder / "undisturbed.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        project = Project(folder / "undisturbed", SPRINGS)
        ended = project.snakemake("--cores", "2", "--until", "train")
        assert ended.returncode == 0, ended.stdout
    return project


@pytest.fixture
def project(cluster: None, undisturbed: Project, tmp_path: Path) -> Project:  # noqa: ARG001
    """The same sweep, of which only the dataset is there, beside a cluster."""
    return undisturbed.copy_without_runs(tmp_path / "project")
