"""`lietransformer complexity`: what layers and training steps cost."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from lietransformer.cli import main
from lietransformer.errors import UserError
from lietransformer.experiments.cost.config import ComplexityConfig, StepsConfig, StepSizes
from lietransformer.experiments.cost.cost import cost_of, peak_bytes
from lietransformer.experiments.cost.measure import measure
from lietransformer.settings import validated

SMALL = ComplexityConfig(
    set_sizes=[16, 32, 64],
    at=4,
    neighbourhoods=[2, 4, 8],
    within=32,
    width=8,
    heads=2,
    repetitions=1,
    naive_pairs=64,
    steps=StepsConfig(
        set_size=[16, 32, 64],
        neighbourhood=[2, 4, 12],
        lift_samples=[1, 2],
        layers=[1, 3],
        batch=[1, 2],
        held=StepSizes(set_size=32, neighbourhood=4, lift_samples=1, layers=1, batch=1),
        repetitions=1,
    ),
)
MODELS = ("LieTransformer", "LieConv", "neighbours")


@pytest.fixture(scope="module")
def measured() -> dict[str, Any]:
    return measure(SMALL)


def test_every_layer_at_every_size(measured: dict[str, Any]) -> None:
    points = measured["measurements"]
    sizes = {(16, 4), (32, 4), (64, 4), (32, 2), (32, 8)}
    for layer in ("LieSelfAttention", "LieConv"):
        own = [point for point in points if point["layer"] == layer]
        assert {(point["set_size"], point["neighbourhood"]) for point in own} == sizes
    naive = [point for point in points if "without" in point["layer"]]
    assert {(point["set_size"], point["neighbourhood"]) for point in naive} == {(16, 4), (32, 2)}
    assert all(point["seconds"] > 0 and point["megabytes"] > 0 for point in points)


def test_memory_is_the_same_each_time_and_grows_with_the_set(measured: dict[str, Any]) -> None:
    """It is counted, so that it can be compared; time is not."""
    first, second = (
        [
            (point["set_size"], point["megabytes"])
            for point in content["measurements"]
            if point["layer"] == "LieSelfAttention" and point["neighbourhood"] == SMALL.at
        ]
        for content in (measured, measure(SMALL))
    )
    assert first == second
    memory = [megabytes for _, megabytes in sorted(first)]
    assert memory == sorted(memory)


def test_every_model_along_every_size(measured: dict[str, Any]) -> None:
    points = measured["steps"]
    held = SMALL.steps.held.model_dump()
    assert len(points) == len(MODELS) * 8  # what is held, which all have, and 7 others
    for model in MODELS:
        for name in held:
            assert sorted(_along(points, model, name)) == getattr(SMALL.steps, name)
    assert all(point["seconds"] > 0 and point["megabytes"] > 0 for point in points)


@pytest.mark.parametrize("name", StepSizes.model_fields)
def test_memory_of_a_training_step_grows_with_every_size(
    measured: dict[str, Any], name: str
) -> None:
    for model in ("LieTransformer", "LieConv"):
        costs = _along(measured["steps"], model, name)
        assert costs[max(costs)] > costs[min(costs)]


def test_layers_share_their_neighbours(measured: dict[str, Any]) -> None:
    one, three = _along(measured["steps"], "neighbours", "layers").values()
    assert one == three


def _along(points: list[dict[str, Any]], model: str, name: str) -> dict[int, float]:
    """Megabytes of a model along one size."""
    others = {key: size for key, size in SMALL.steps.held.model_dump().items() if key != name}
    return {
        point[name]: point["megabytes"]
        for point in points
        if point["model"] == model and others.items() <= point.items()
    }


def test_long_steps_are_repeated_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    cost_of(lambda: calls.append(torch.ones(1)), repetitions=3)
    assert len(calls) == 1 + 3  # one for memory
    monkeypatch.setattr("lietransformer.experiments.cost.cost._ENOUGH_SECONDS", 1e-12)
    cost_of(lambda: calls.append(torch.ones(1)), repetitions=3)
    assert len(calls) == 1 + 3 + 1 + 1


def test_the_peak_counts_what_is_alive_together() -> None:
    megabyte = 2**18  # float32 numbers

    def one_after_the_other() -> None:
        for _ in range(3):
            torch.ones(megabyte)

    def together() -> None:
        _kept = [torch.ones(megabyte) for _ in range(3)]

    assert peak_bytes(one_after_the_other) == pytest.approx(2**20, rel=0.01)
    assert peak_bytes(together) == pytest.approx(3 * 2**20, rel=0.01)


def test_the_command(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "complexity.json"
    values = SMALL.model_dump(mode="json").items()
    settings = [f"--set={name}={json.dumps(value)}" for name, value in values]
    assert main(["complexity", "--out", str(out), *settings]) == 0
    written = json.loads(out.read_text())
    assert written["settings"] == SMALL.model_dump(mode="json")
    assert written["threads"] == 1
    assert written["schema_version"] == 2
    printed = capfd.readouterr()
    assert "LieSelfAttention" in printed.out
    assert printed.err == ""  # torch's profiler has been silenced
    assert main(["complexity", "--out", str(out), *settings]) == 1  # it is there


def test_settings_within_settings_are_listed_as_they_are_set(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["complexity", "--settings"])
    assert ended.value.code == 0
    assert f"\nsteps.held.layers: {StepSizes().layers}\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    "settings",
    [
        {"heads": 3},
        {"at": 64},  # half of the smallest set
        {"within": 16},
        {"set_sizes": []},
        {"set_sizes": [0]},
        {"width": 6, "heads": 2},  # LieConv's is divided by four
        {"steps": {"set_size": [64]}},  # its neighbourhood is half of it
        {"steps": {"neighbourhood": [256]}},
        {"steps": {"held": {"layers": 0}}},
        {"steps": {"unknown": 1}},
    ],
)
def test_settings_that_make_no_sense(settings: dict[str, object]) -> None:
    with pytest.raises(UserError, match="in the settings"):
        validated(ComplexityConfig, dict(settings))
