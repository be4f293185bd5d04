"""A dataset with short trajectories: these tests are about the engine, and call it often."""

from pathlib import Path

import pytest

from lietransformer.data import springs


@pytest.fixture(scope="session")
def springs_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("springs") / "springs.h5"
    config = springs.SpringsConfig(
        systems=60, test=10, validation=8, states=50, duration=0.5, long_chunk=10
    )
    springs.generate(config, path)
    return path
