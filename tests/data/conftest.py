"""Examples that several files of tests load."""

from pathlib import Path

import pytest

from lietransformer.data.reader import DatasetFile
from lietransformer.experiments.constellations.examples import ConstellationExamples
from lietransformer.experiments.qm9.examples import MoleculeExamples
from lietransformer.experiments.springs.examples import SpringExamples


@pytest.fixture
def constellations(constellations_file: Path) -> ConstellationExamples:
    return ConstellationExamples(DatasetFile(constellations_file), "train")


@pytest.fixture
def springs(springs_file: Path) -> SpringExamples:
    return SpringExamples(DatasetFile(springs_file), "train", n_train=50)


@pytest.fixture
def molecules(real_qm9: DatasetFile) -> MoleculeExamples:
    return MoleculeExamples(real_qm9, "train", n_train=10_000)
