"""Settings of runs: the paper's where nothing is said, and clear words for mistakes."""

from pathlib import Path
from typing import Any

import pytest

from lietransformer.errors import UserError
from lietransformer.kernels import build as library
from lietransformer.models.lie_transformer import LieTransformerConfig
from lietransformer.settings import validated
from lietransformer.training.config import RunConfig, read_runs
from tests.training.runs import settings, tiny

DATA = Path("data.h5")


def run(**given: Any) -> RunConfig:
    return settings(data=DATA, **given)


def test_the_papers_settings_for_springs() -> None:
    config = run(task="springs", model="LieTransformer-T2", n_train=10)
    assert (config.epochs, config.batch_size, config.evaluations) == (6928, 10, 100)
    assert (config.learning_rate, config.betas) == (1e-3, (0.9, 0.999))
    assert (config.schedule, config.schedule_per) == ("cosine", "epoch")
    large = run(task="springs", model="LieTransformer-T2", n_train=96000)
    assert (large.epochs, large.batch_size) == (71, 100)


def test_the_papers_settings_for_constellations() -> None:
    config = run(task="constellations", model="LieTransformer-T2")
    assert (config.learning_rate, config.betas, config.batch_size) == (1e-4, (0.5, 0.9), 32)
    assert config.schedule == "constant"
    assert config.patience is not None
    assert config.evaluations == config.epochs


@pytest.mark.parametrize(
    ("model", "rate", "betas"),
    [
        ("LieTransformer-T3", 3e-4, (0.5, 0.9)),
        ("LieTransformer-SE3", 3e-4, (0.5, 0.9)),
        ("LieConv-T3", 3e-3, (0.9, 0.999)),
        ("LieConv-SE3", 3e-3, (0.9, 0.999)),
    ],
)
def test_the_papers_settings_for_qm9(model: str, rate: float, betas: tuple[float, float]) -> None:
    config = run(task="qm9", model=model, target="homo")
    assert (config.learning_rate, config.batch_size, config.epochs) == (rate, 75, 500)
    assert (config.schedule, config.warmup) == ("cosine_warmup", 0.01)
    assert (config.betas, config.size_pool, config.ema) == (betas, 1, None)


def test_specialists_have_the_settings_of_their_own_papers() -> None:
    """3 million steps of 32 molecules each; 0.01 in 4 million steps, 0.96 in 100,000."""
    schnet, dimenet = (run(task="qm9", model=m, target="homo") for m in ("SchNet", "DimeNet++"))
    for config in (schnet, dimenet):
        assert config.epochs * 100_000 / config.batch_size == 3_000_000
        assert (config.batch_size, config.learning_rate) == (32, 1e-3)
        assert (config.schedule, config.schedule_per) == ("exponential", "step")
    assert (dimenet.amsgrad, dimenet.ema, dimenet.warmup) == (True, 0.999, 0.001)
    assert (schnet.amsgrad, schnet.ema, schnet.warmup) == (False, 0.99, 0.0)
    assert dimenet.final_rate == pytest.approx(0.01 ** (3 / 4))
    assert schnet.final_rate == pytest.approx(0.96**30)


def test_seeds_follow_the_seed_unless_they_are_given() -> None:
    config = run(task="springs", model="LieConv-T2", n_train=10, seed=3, data_seed=7)
    assert (config.seed, config.data_seed, config.sampling_seed) == (3, 7, 3)


def test_the_device_is_chosen_once(monkeypatch: pytest.MonkeyPatch) -> None:
    for is_there, expected in ((True, "cuda"), (False, "cpu")):
        monkeypatch.setattr("torch.cuda.is_available", lambda answer=is_there: answer)
        config = run(task="springs", model="LieConv-T2", n_train=10, device="auto")
        assert config.device == expected


def test_compiled_where_it_pays() -> None:
    long = run(task="springs", model="Graph network (Hamiltonian)", n_train=10)
    short = run(task="springs", model="Graph network (Hamiltonian)", n_train=10, epochs=50)
    other = run(task="constellations", model="LieTransformer-T2")
    assert [config.compile for config in (long, short, other)] == [True, False, False]


def test_what_has_passes_of_its_own_is_compiled_only_without_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(library, "is_possible", lambda: True)
    springs = {"task": "springs", "model": "LieTransformer-T2", "n_train": 10}
    assert not run(**springs).compile
    assert not run(**springs | {"model": "LieConv-T2"}).compile
    assert run(**springs, precision="float64").compile
    assert run(**springs, device="cuda").compile
    assert run(**springs, architecture={"attention": {"normalisation": "softmax"}}).compile
    monkeypatch.setattr(library, "is_possible", lambda: False)
    assert run(**springs).compile


def test_steps_are_recorded_where_a_gpu_can_repeat_them() -> None:
    springs = {"task": "springs", "model": "LieTransformer-SE2", "n_train": 10}
    molecules = {"task": "qm9", "target": "homo", "device": "cuda"}
    random = {"lift": {"scheme": "random", "samples": 2}}
    assert not run(**springs).graphs
    assert run(**springs, device="cuda").graphs
    assert not run(**springs, device="cuda", architecture=random).graphs
    assert run(**molecules, model="LieTransformer-SE3").graphs
    assert not run(**molecules, model="SchNet").graphs


def test_a_model_of_another_architecture() -> None:
    config = run(
        task="springs",
        model="LieTransformer-T2",
        n_train=10,
        architecture={"width": 80, "attention": {"normalisation": "softmax"}},
    )
    architecture = config.preset().config
    assert isinstance(architecture, LieTransformerConfig)
    assert (architecture.width, architecture.layers) == (80, 5)
    assert architecture.attention.normalisation == "softmax"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"task": "weather"}, "task"),
        ({"task": None}, "task"),
        ({"model": "LieTransformer-T9"}, "model must be one of LieTransformer-T2"),
        ({"n_train": None}, "n_train is needed for springs"),
        ({"n_train": 0}, "n_train"),
        ({"n_train": True}, "a whole number was expected"),
        ({"n_train": 10.0}, "a whole number was expected"),
        ({"n_train": "10"}, "a whole number was expected"),
        ({"epochs": "1e3"}, "epochs: a whole number was expected"),
        ({"learning_rate": "fast"}, "learning_rate: a number was expected"),
        ({"warmup": True}, "warmup: a number was expected"),
        ({"task": "qm9", "model": "LieTransformer-T3", "target": "x"}, "target must be one of"),
        ({"target": "homo"}, "target does not apply to"),
        ({"task": "qm9", "model": "LieTransformer-T3"}, "target is needed for qm9"),
        ({"augmentation": "SO3"}, "augmentation for springs must be one of none, T2, SE2"),
        ({"epochs": 0}, "epochs"),
        ({"learning_rate": -1}, "learning_rate"),
        ({"betas": [0.9, 1.0]}, "betas"),
        ({"precision": "tf32"}, "tf32 exists on cuda only"),
        ({"precision": "float8"}, "precision"),
        ({"device": "tpu"}, "device"),
        ({"colour": "red"}, "colour: expected one of task, model"),
        ({"architecture": {"depth": 3}}, "architecture.depth: expected one of points"),
        (
            {"architecture": {"width": "wide"}},
            "architecture.width: Input should be a valid integer",
        ),
        ({"architecture": {"width": 0}}, "width must be at least 1"),
        ({"architecture": {"points": 5}}, "architecture.points: follows from the task"),
        ({"test_weights": []}, "test_weights must name best, final or both"),
        ({"compile": True, "task": "constellations", "model": "SetTransformer"}, "compile"),
        ({"graphs": True}, "graphs exist on cuda only"),
        (
            {"graphs": True, "task": "qm9", "model": "SchNet", "target": "homo", "device": "cuda"},
            "depends on numbers",
        ),
    ],
)
def test_mistakes_are_named(changes: dict[str, Any], message: str) -> None:
    given = {"task": "springs", "model": "Fully-connected (Hamiltonian)", "data": "x.h5"}
    given |= changes if "task" in changes else {"n_train": 10} | changes
    with pytest.raises(UserError, match=r"in run\.yaml") as error:
        validated(RunConfig, given, Path("run.yaml"))
    assert message in str(error.value)


LIE_TRANSFORMER: dict[str, Any] = {
    "task": "springs",
    "model": "LieTransformer-T2",
    "data": "x.h5",
    "n_train": 10,
}


@pytest.mark.parametrize(
    ("architecture", "message"),
    [
        ({"group": "T(3)"}, "architecture.group: T(3) acts on a space of 3 dimensions"),
        ({"neighbourhood": 3}, "architecture.neighbourhood: expected a mapping"),
        ({"neighbourhood": {"samples": "two"}}, "architecture.neighbourhood.samples"),
        ({"attention": {"score_width": [1]}}, "architecture.attention.score_width"),
        ({"attention": {"content": "dot"}}, "architecture.attention.content"),
    ],
)
def test_mistakes_in_the_architecture(architecture: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError) as error:
        validated(RunConfig, {**LIE_TRANSFORMER, "architecture": architecture})
    assert message in str(error.value)


def test_a_random_architecture_is_not_compiled() -> None:
    config = settings(**LIE_TRANSFORMER, architecture={"neighbourhood": {"samples": 2}})
    assert not config.compile
    with pytest.raises(UserError, match="draws random numbers"):
        validated(RunConfig, {**config.model_dump(), "compile": True})


def test_patience_can_be_switched_off() -> None:
    assert run(task="constellations", model="SetTransformer", patience=None).patience is None


def test_heads_that_do_not_divide_the_width() -> None:
    given = {"task": "springs", "model": "LieTransformer-T2", "data": "x.h5", "n_train": 10}
    with pytest.raises(UserError, match=r"Use a width of 96 or 104 for 8 heads"):
        validated(RunConfig, {**given, "architecture": {"width": 100}})


def test_the_same_numbers_have_the_same_name(springs_file: Path) -> None:
    config = tiny(springs_file)
    elsewhere = tiny(springs_file.parent / "moved.h5")
    assert config.identity_hash("data") == elsewhere.identity_hash("data")
    for rounding in ({"threads": 2}, {"compile": True}):
        assert tiny(springs_file, **rounding).identity_hash("data") == config.identity_hash("data")
    assert config.identity_hash("data") != config.identity_hash("other data")
    for change in ({"seed": 1}, {"epochs": 5}, {"precision": "float64"}):
        assert tiny(springs_file, **change).identity_hash("data") != config.identity_hash("data")


def test_a_compiler_does_not_make_it_another_run(monkeypatch: pytest.MonkeyPatch) -> None:
    names = set()
    for is_there in (True, False):
        monkeypatch.setattr(library, "is_possible", lambda answer=is_there: answer)
        config = run(task="springs", model="LieTransformer-T2", n_train=10)
        assert config.compile != is_there
        names.add(config.identity_hash("data"))
    assert len(names) == 1


def test_what_is_stored_can_be_read_again(springs_file: Path) -> None:
    config = tiny(springs_file, seed=5, data_seed=6)
    assert RunConfig.model_validate(config.model_dump(mode="json")) == config


def test_one_run_for_each_seed(tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_text("task: springs\nmodel: LieConv-T2\ndata: x.h5\nn_train: 10\nseeds: [4, 2]\n")
    runs, are_several = read_runs(path, ["architecture.width=64"])
    assert are_several
    assert [config.seed for config in runs] == [4, 2]
    assert [config.sampling_seed for config in runs] == [4, 2]
    assert all(config.architecture == {"width": 64} for config in runs)
    _, are_several = read_runs(path, ["seeds=[1]"])
    assert are_several


@pytest.mark.parametrize("seeds", ["[]", "3", "[1, 1]", "[a]", "[true]"])
def test_seeds_that_are_none(seeds: str) -> None:
    given = ["task=springs", "model=LieConv-T2", "data=x", "n_train=5", f"seeds={seeds}"]
    with pytest.raises(UserError, match="list of different whole numbers"):
        read_runs(None, given)


def test_seed_and_seeds_exclude_each_other() -> None:
    with pytest.raises(UserError, match="beside a seed"):
        read_runs(None, ["seeds=[1]", "seed=1"])


def test_an_override_within_something_that_is_no_mapping() -> None:
    with pytest.raises(UserError, match="architecture must be a mapping"):
        read_runs(None, ["architecture=3", "architecture.width=8"])


def test_cores_are_those_of_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 5, 7}, raising=False)
    assert run(task="springs", model="LieConv-T2", n_train=10).threads == 3
