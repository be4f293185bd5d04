"""A dataset that invented roll-outs are compared with."""

from pathlib import Path

import numpy as np
import pytest

from lietransformer.data.reader import DatasetFile
from lietransformer.experiments.springs import dataset as springs
from lietransformer.experiments.springs.plan import SpringsConfig
from tests.report.synthetic import STEPS, TRAJECTORIES


@pytest.fixture(scope="session")
def springs_truth(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, np.ndarray]:
    """A dataset, and the true positions of its test trajectories after the first state."""
    path = tmp_path_factory.mktemp("springs") / "springs.h5"
    config = SpringsConfig(systems=40, test=TRAJECTORIES, validation=2, states=200)
    springs.generate(config, path)
    return path, DatasetFile(path).array("test/long_states")[:, 1 : STEPS + 1, 0]


@pytest.fixture(scope="session")
def springs_file(short_springs_file: Path) -> Path:
    """Short trajectories, for real runs."""
    return short_springs_file
