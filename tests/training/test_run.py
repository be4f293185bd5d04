"""One run of the engine: what it computes, what it keeps, and when it stops."""

import json
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import torch

from lietransformer.data.reader import DatasetFile
from lietransformer.errors import UserError
from lietransformer.experiments.constellations import dataset as constellations_data
from lietransformer.experiments.constellations.plan import ConstellationsConfig
from lietransformer.experiments.task import Evaluation
from lietransformer.training.config import RunConfig
from lietransformer.training.experiment import Experiment
from lietransformer.training.loop import Run
from lietransformer.training.run_folder import RunFolder, load
from lietransformer.training.schedule import learning_rate_factor
from tests.training.runs import constellations, numbers, settings, tiny, weights_are_finite


def execute(config: RunConfig, path: Path) -> dict[str, object]:
    return Run(config, RunFolder(path)).execute()


def test_a_run_is_a_plain_training_loop(tmp_path: Path, springs_file: Path) -> None:
    """The same weights as a loop of a few lines with torch's own optimiser and schedule."""
    config = tiny(springs_file, evaluations=1, betas=[0.5, 0.9])
    execute(config, tmp_path / "run")
    experiment = Experiment(config)
    optimiser = torch.optim.Adam(experiment.model.parameters(), lr=1e-3, betas=(0.5, 0.9))
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, T_max=4)
    losses = []
    for epoch in range(4):
        for batch in experiment.train.epoch(epoch):
            optimiser.zero_grad()
            loss = experiment.task.loss(experiment.predictor, batch)
            loss.backward()
            optimiser.step()
            losses += len(batch.states) * [loss.item()]  # of each example, not of each batch
        schedule.step()
    assert len(losses) == 4 * 12
    final = load(tmp_path / "run" / "model.pt")["final"]
    for name, parameter in experiment.model.state_dict().items():
        torch.testing.assert_close(final[name], parameter, rtol=1e-5, atol=1e-7)
    (record,) = RunFolder(tmp_path / "run").records()
    assert record["train/loss"] == pytest.approx(np.mean(losses), rel=1e-5)
    assert record["step"] == 12
    assert record["epoch"] == 4


def test_what_a_run_leaves_behind(tmp_path: Path, springs_file: Path) -> None:
    folder = RunFolder(tmp_path / "runs" / "one")
    result = execute(tiny(springs_file), folder.path)
    names = sorted(path.name for path in folder.path.iterdir())
    assert names == [
        "config.json",
        "evaluation.h5",
        "metrics.jsonl",
        "model.pt",
        "result.json",
        "system.jsonl",
    ]
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["one"]  # nothing to resume
    assert result == json.loads(folder.result_file.read_text())
    assert result["status"] == "finished"
    assert result["steps"] == 12
    assert result["dataset_hash"] == DatasetFile(springs_file).content_hash
    assert [record["step"] for record in folder.records()] == [2, 4, 6, 8, 10, 12]
    assert folder.config() == tiny(springs_file)
    assert result["machine"]["torch"] == torch.__version__  # type: ignore[index]


def test_best_and_final_weights_are_those_of_their_records(
    tmp_path: Path, springs_file: Path
) -> None:
    # Steps so long that the last weights are not the best ones.
    config = tiny(springs_file, learning_rate=0.3, schedule="constant", epochs=8)
    execute(config, tmp_path / "run")
    folder = RunFolder(tmp_path / "run")
    result, records = folder.result(), folder.records()
    values = [record["validation/mse_arithmetic"] for record in records]
    assert result["best"] == records[int(np.argmin(values))]
    assert result["final"] == records[-1]
    assert result["best"]["step"] < result["final"]["step"]
    experiment = Experiment(config)
    for which in ("best", "final"):
        experiment.model.load_state_dict(folder.weights(which))
        value = experiment.validate()["mse_geometric"]
        assert value == pytest.approx(result[which]["validation/mse_geometric"], rel=1e-6)


@pytest.mark.parametrize(("improves", "tests"), [(True, 2), (False, 4)])
def test_weights_that_are_equal_are_tested_once(
    tmp_path: Path,
    springs_file: Path,
    monkeypatch: pytest.MonkeyPatch,
    improves: bool,
    tests: int,
) -> None:
    """Two test sets, for one or two different sets of weights."""
    scores = iter(range(100) if improves else range(100, 0, -1))
    validate = Experiment.validate
    monkeypatch.setattr(
        Experiment,
        "validate",
        lambda self: {**validate(self), self.task.selection: 1.0 / (1 + next(scores))},
    )
    tested: list[str] = []
    test = Experiment.test

    def counted(self: Experiment, name: str) -> Evaluation:
        tested.append(name)
        return test(self, name)

    monkeypatch.setattr(Experiment, "test", counted)
    result = execute(tiny(springs_file), tmp_path / "run")
    assert len(tested) == tests
    assert (result["test"]["best"] == result["test"]["final"]) is improves  # type: ignore[index]
    with h5py.File(tmp_path / "run" / "evaluation.h5") as file:
        assert set(file) == {"best", "final"}


def test_errors_of_each_trajectory_are_stored(tmp_path: Path, springs_file: Path) -> None:
    """Every springs figure can be drawn without the model."""
    result = execute(tiny(springs_file), tmp_path / "run")
    file = DatasetFile(tmp_path / "run" / "evaluation.h5", kind="evaluation")
    tests = result["test"]
    assert isinstance(tests, dict)
    for which in ("best", "final"):
        for test, steps in (("test", 4), ("test_long", 9)):
            squared = file.array(f"{which}/{test}/squared").astype(float)
            assert squared.shape == (3, steps)
            geometric = np.exp(np.log(squared.mean(axis=0)).mean())
            metrics = tests[which][test]
            assert geometric == pytest.approx(metrics["mse_geometric"], rel=1e-5)
            assert squared.mean() == pytest.approx(metrics["mse_arithmetic"], rel=1e-5)
            assert file.array(f"{which}/{test}/energy").shape == (3, steps)
            assert file.array(f"{which}/{test}/momentum").shape == (3, steps)
            assert file.array(f"{which}/{test}/positions").shape == (3, steps, 6, 2)


def test_the_same_settings_give_the_same_numbers(tmp_path: Path, springs_file: Path) -> None:
    for name in ("one", "two"):
        execute(tiny(springs_file), tmp_path / name)
    assert numbers(tmp_path / "one") == numbers(tmp_path / "two")
    execute(tiny(springs_file, seed=1), tmp_path / "other")
    assert numbers(tmp_path / "other")["weights"] != numbers(tmp_path / "one")["weights"]


def test_patience_ends_a_run(tmp_path: Path, springs_file: Path) -> None:
    # A learning rate of next to nothing: the validation error stands still.
    config = tiny(springs_file, learning_rate=1e-30, epochs=50, evaluations=50, patience=3)
    result = execute(config, tmp_path / "run")
    assert result["stopped_early"]
    assert result["status"] == "finished"
    assert result["epochs"] == 4  # the first evaluation, and three that were no better


def test_the_learning_rate_follows_its_schedule(tmp_path: Path, springs_file: Path) -> None:
    changes = {"schedule": "cosine_warmup", "warmup": 0.5, "evaluations": 12}
    shares = {"step": [step / 12 for step in range(12)], "epoch": [0.0] * 3 + [0.25] * 3}
    shares["epoch"] += [0.5] * 3 + [0.75] * 3
    for per, done in shares.items():
        execute(tiny(springs_file, schedule_per=per, **changes), tmp_path / per)
        rates = [record["learning_rate"] for record in RunFolder(tmp_path / per).records()]
        factors = [learning_rate_factor("cosine_warmup", share, 0.5) for share in done]
        assert rates == pytest.approx([1e-3 * factor for factor in factors])


def test_each_seed_has_its_effect(tmp_path: Path, springs_file: Path) -> None:
    weights: list[dict[str, Any]] = []
    choices: list[dict[str, int]] = [{}, {"data_seed": 1}, {"seed": 1, "data_seed": 0}]
    for seeds in choices:
        execute(tiny(springs_file, **seeds), tmp_path / str(len(weights)))
        weights.append(numbers(tmp_path / str(len(weights)))["weights"])
    assert weights[0] != weights[1]
    assert weights[0] != weights[2]


def test_samples_are_new_in_each_step_and_the_same_in_each_evaluation(
    constellations_file: Path,
) -> None:
    config = constellations(
        constellations_file,
    )
    experiment = Experiment(config)
    batch = next(experiment.batches(0))
    losses = [experiment.loss(batch, step).item() for step in (0, 1, 0)]
    assert losses[0] == losses[2]
    assert losses[0] != losses[1]
    assert experiment.validate() == experiment.validate()
    other = Experiment(settings(**{**config.model_dump(), "sampling_seed": 1}))
    assert other.loss(batch, 0).item() != losses[0]


@pytest.mark.parametrize("count", [7, 10])
def test_a_limit_of_test_examples_keeps_the_mixture_even(
    constellations_file: Path, count: int
) -> None:
    """Sets that hold every example twice have twice as many rows."""
    experiment = Experiment(constellations(constellations_file, test_examples=count))
    sizes = {name: len(examples) for name, examples in experiment.tests.items()}
    assert sizes == {
        **{"test": count, "test_T2": 2 * count, "test_SE2": 2 * count},
        **{"test_T2_all": count, "test_SE2_all": count},
    }


def test_moved_test_sets_have_the_same_lift_samples(constellations_file: Path) -> None:
    """Translations do not change a LieTransformer-SE2 whose samples stay the same."""
    experiment = Experiment(constellations(constellations_file, precision="float64"))
    metrics = {name: experiment.test(name).metrics for name in experiment.tests}
    assert metrics["test_T2_all"] == pytest.approx(metrics["test"], rel=1e-9)
    assert metrics["test_SE2_all"]["loss"] != pytest.approx(metrics["test"]["loss"], rel=1e-6)


def test_a_long_test_can_be_stopped_at_each_state(springs_file: Path) -> None:
    experiment = Experiment(tiny(springs_file))
    asked: list[int] = []
    experiment.between_steps = lambda: asked.append(1)
    experiment.test("test_long")
    assert len(asked) == 1 + 10  # a batch, and its states


def test_evaluating_changes_nothing(qm9_file: Path) -> None:
    """Batch norm and the radius of LieConv learn from what they see, but only in training."""
    config = settings(
        task="qm9",
        model="LieConv-SE3",
        architecture={"width": 16, "layers": 1},
        data=qm9_file,
        n_train=20,
        target="homo",
        threads=1,
        validation_examples=10,
    )
    experiment = Experiment(config)
    before = {name: t.clone() for name, t in experiment.model.state_dict().items()}
    first = experiment.validate()
    assert experiment.validate() == first
    torch.testing.assert_close(experiment.model.state_dict(), before, rtol=0, atol=0)
    assert experiment.model.training
    experiment.loss(next(experiment.batches(0)), 0)
    assert not torch.equal(experiment.model.state_dict()["radius"], before["radius"])


def test_divergence_is_noticed_and_the_last_good_weights_are_kept(
    tmp_path: Path, springs_file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config = tiny(springs_file, learning_rate=1e18, schedule="constant", n_train=5, epochs=9)
    result = execute(config, tmp_path / "run")
    assert result["status"] == "diverged"
    diverged = result["diverged"]
    assert isinstance(diverged, dict)
    assert 0 < diverged["step"] < 9
    assert f"at step {diverged['step']}" in diverged["what"]
    assert "diverged" in caplog.text
    assert weights_are_finite(tmp_path / "run")
    # A diverged run is done: it is not tried again.
    assert execute(config, tmp_path / "run") == result


@pytest.mark.parametrize("epochs", [1, 9], ids=["in the last step", "while it trains"])
def test_an_explosion_that_stays_finite_is_divergence(
    tmp_path: Path, springs_file: Path, epochs: int
) -> None:
    config = tiny(springs_file, learning_rate=10, schedule="constant", n_train=5, epochs=epochs)
    result = execute(config, tmp_path / "run")
    assert result["status"] == "diverged"
    diverged = result["diverged"]
    assert isinstance(diverged, dict)
    assert diverged["step"] == 1
    assert "more than 1e+06 times the first one" in diverged["what"]
    initial = Experiment(config).model.state_dict()
    torch.testing.assert_close(load(tmp_path / "run" / "model.pt")["final"], initial)


def test_divergence_in_the_last_step_is_noticed_by_the_evaluation(
    tmp_path: Path, springs_file: Path
) -> None:
    config = tiny(springs_file, learning_rate=1e30, schedule="constant", n_train=5, epochs=1)
    result = execute(config, tmp_path / "run")
    assert result["status"] == "diverged"
    assert "validation" in str(result["diverged"])
    assert weights_are_finite(tmp_path / "run")


def test_float64_and_bf16_are_what_they_say(tmp_path: Path, springs_file: Path) -> None:
    results = {}
    for precision in ("float32", "float64", "bf16"):
        execute(tiny(springs_file, precision=precision), tmp_path / precision)
        results[precision] = numbers(tmp_path / precision)["records"][-1]["train/loss"]
    double = load(tmp_path / "float64" / "model.pt")["final"]
    assert {tensor.dtype for tensor in double.values()} == {torch.float64}
    assert results["float32"] == pytest.approx(results["float64"], rel=1e-5)
    assert results["float32"] != results["float64"]
    assert results["bf16"] != results["float32"]
    assert results["bf16"] == pytest.approx(results["float32"], rel=0.1)


def test_outputs_that_are_not_finite_are_divergence_whatever_the_accuracy(
    tmp_path: Path, constellations_file: Path
) -> None:
    config = settings(
        task="constellations",
        model="SetTransformer",
        architecture={"width": 8, "heads": 2, "encoder_layers": 1, "decoder_layers": 1},
        data=constellations_file,
        n_train=32,
        epochs=1,
        learning_rate=1e30,
        threads=1,
        test_examples=10,
    )
    result = execute(config, tmp_path / "run")
    assert result["status"] == "diverged"


def test_constellations_that_the_models_have_no_outputs_for(tmp_path: Path) -> None:
    path = tmp_path / "constellations.h5"
    generator = ConstellationsConfig(train=20, validation=5, test=5, repetitions=1)
    constellations_data.generate(generator, path)
    with pytest.raises(UserError, match="Generate the dataset with repetitions=2"):
        execute(constellations(path), tmp_path / "run")


@pytest.mark.parametrize("model", ["LieTransformer-SE2", "SetTransformer"])
def test_constellations(tmp_path: Path, constellations_file: Path, model: str) -> None:
    changes = {"width": 16} | ({"layers": 1} if "Lie" in model else {"encoder_layers": 1})
    config = settings(
        task="constellations",
        model=model,
        architecture=changes,
        data=constellations_file,
        n_train=64,
        epochs=2,
        augmentation="SE2",
        threads=1,
        test_examples=20,
    )
    result = execute(config, tmp_path / "run")
    assert result["n_train"] == 64
    tests = result["test"]
    assert isinstance(tests, dict)
    assert list(tests["best"]) == ["test", "test_T2", "test_SE2", "test_T2_all", "test_SE2_all"]
    records = RunFolder(tmp_path / "run").records()
    assert len(records) == 2
    assert result["best"] == max(records, key=lambda record: record["validation/accuracy"])
    assert not (tmp_path / "run" / "evaluation.h5").exists()


def test_molecules(tmp_path: Path, qm9_file: Path) -> None:
    config = settings(
        task="qm9",
        model="LieTransformer-T3",
        architecture={"width": 16, "layers": 1},
        data=qm9_file,
        n_train=150,
        epochs=1,
        augmentation="SO3",
        target="homo",
        threads=1,
        validation_examples=50,
        test_examples=40,
    )
    result = execute(config, tmp_path / "run")
    assert result["target"] == "homo"
    assert result["test"]["final"]["test"]["mae"] > 0  # type: ignore[index]
