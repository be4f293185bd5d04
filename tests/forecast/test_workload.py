"""What a run does, counted beforehand, is what it does."""

from pathlib import Path
from typing import Any

import pytest

from lietransformer.experiments.constellations import dataset as constellations
from lietransformer.experiments.constellations.plan import TEST_SETS, ConstellationsConfig
from lietransformer.experiments.qm9 import dataset as qm9
from lietransformer.experiments.qm9.plan import QM9Config
from lietransformer.experiments.springs import dataset as springs
from lietransformer.experiments.springs.plan import SpringsConfig
from lietransformer.forecast.workload import Workload, workload
from lietransformer.training.config import RunConfig
from lietransformer.training.experiment import Experiment
from lietransformer.training.loop import Run
from lietransformer.training.run_folder import RunFolder

SMALL_SPRINGS = SpringsConfig(systems=40, validation=6, test=5)
SMALL_CONSTELLATIONS = ConstellationsConfig(train=20, validation=6, test=5)
SMALL_QM9 = QM9Config(limit=40, train=20)


def settings(**given: Any) -> RunConfig:
    return RunConfig.model_validate({"data": Path("none.h5"), "threads": 1, **given})


CASES: list[tuple[Any, Any, dict[str, Any]]] = [
    (springs, SMALL_SPRINGS, {"task": "springs", "n_train": 4, "test_examples": 2}),
    (constellations, SMALL_CONSTELLATIONS, {"task": "constellations", "batch_size": 8}),
    (
        *(constellations, SMALL_CONSTELLATIONS),
        {"task": "constellations", "n_train": 9, "batch_size": 4, "validation_examples": 5},
    ),
    (qm9, SMALL_QM9, {"task": "qm9", "target": "homo", "batch_size": 6}),
]
MODELS = {
    "springs": ("Fully-connected (direct)", {"width": 4, "layers": 1}),
    "constellations": ("SetTransformer", {"width": 4, "encoder_layers": 1, "decoder_layers": 1}),
    "qm9": ("LieConv-T3", {"width": 4, "layers": 1}),
}


@pytest.mark.slow
@pytest.mark.parametrize(("module", "data", "given"), CASES)
def test_counts_are_those_of_the_experiment(
    module: Any, data: Any, given: dict[str, Any], tmp_path: Path
) -> None:
    module.generate(data, tmp_path / "data.h5")
    model, architecture = MODELS[given["task"]]
    config = settings(
        **given, model=model, architecture=architecture, data=tmp_path / "data.h5", epochs=3
    )
    experiment = Experiment(config)
    work = workload(config, data)
    assert work.steps == 3 * experiment.steps_per_epoch
    assert work.validated == len(experiment.validation)
    rows = {name: len(examples) for name, examples in experiment.tests.items()}
    assert rows == {name: TEST_SETS.get(name, 1) * work.tested for name in rows}


def test_evaluations_are_those_of_a_run(tmp_path: Path) -> None:
    springs.generate(SMALL_SPRINGS, tmp_path / "data.h5")
    model, architecture = MODELS["springs"]
    given = {"task": "springs", "model": model, "architecture": architecture, "compile": False}
    given |= {"n_train": 7, "batch_size": 3, "epochs": 2, "evaluations": 4}
    config = settings(**given, data=tmp_path / "data.h5")
    result = Run(config, RunFolder(tmp_path / "run")).execute()
    work = workload(config, SMALL_SPRINGS)
    assert work.steps == result["steps"]
    assert work.validations == len(RunFolder(tmp_path / "run").records())
    assert work.weights == len(result["test"])


def test_the_papers_springs() -> None:
    config = settings(task="springs", model="LieTransformer-T2", n_train=3000)
    expected = Workload(400 * 30, False, 100, 2000, 2000, test_cost=1 + 99 / 4, weights=2)
    assert workload(config, SpringsConfig()) == expected


def test_the_papers_molecules() -> None:
    config = settings(task="qm9", model="LieConv-T3", target="mu")
    work = workload(config, QM9Config())
    assert work.steps == 500 * 1334
    assert (work.validated, work.tested) == (17_748, 13_083)


def test_runs_that_may_stop_early_say_so() -> None:
    config = settings(task="constellations", model="SetTransformer")
    assert workload(config, ConstellationsConfig()).may_stop_early
    short = settings(task="constellations", model="SetTransformer", epochs=12)
    assert not workload(short, ConstellationsConfig()).may_stop_early
