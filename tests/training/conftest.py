"""A dataset with short trajectories: these tests are about the engine, and call it often."""

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def springs_file(short_springs_file: Path) -> Path:
    return short_springs_file
