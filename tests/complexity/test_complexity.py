"""`lietransformer complexity`: what layers cost."""

import json
from pathlib import Path

import pytest
import torch

from lietransformer.cli import main
from lietransformer.complexity.config import ComplexityConfig
from lietransformer.complexity.measure import measure, peak_bytes
from lietransformer.errors import UserError
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
)


def test_every_layer_at_every_size() -> None:
    points = measure(SMALL)["measurements"]
    sizes = {(16, 4), (32, 4), (64, 4), (32, 2), (32, 8)}
    for layer in ("LieSelfAttention", "LieConv"):
        own = [point for point in points if point["layer"] == layer]
        assert {(point["set_size"], point["neighbourhood"]) for point in own} == sizes
    naive = [point for point in points if "without" in point["layer"]]
    assert {(point["set_size"], point["neighbourhood"]) for point in naive} == {(16, 4), (32, 2)}
    assert all(point["seconds"] > 0 and point["megabytes"] > 0 for point in points)


def test_memory_is_the_same_each_time_and_grows_with_the_set() -> None:
    """It is counted, so that it can be compared; time is not."""
    first, second = (
        [
            (point["set_size"], point["megabytes"])
            for point in measure(SMALL)["measurements"]
            if point["layer"] == "LieSelfAttention" and point["neighbourhood"] == SMALL.at
        ]
        for _ in range(2)
    )
    assert first == second
    memory = [megabytes for _, megabytes in sorted(first)]
    assert memory == sorted(memory)


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
    settings = [f"--set={name}={value}" for name, value in SMALL.model_dump(mode="json").items()]
    assert main(["complexity", "--out", str(out), *settings]) == 0
    written = json.loads(out.read_text())
    assert written["settings"] == SMALL.model_dump(mode="json")
    assert written["threads"] == 1
    printed = capfd.readouterr()
    assert "LieSelfAttention" in printed.out
    assert printed.err == ""  # torch's profiler has been silenced
    assert main(["complexity", "--out", str(out), *settings]) == 1  # it is there


@pytest.mark.parametrize(
    "settings",
    [
        {"heads": 3},
        {"at": 64},  # half of the smallest set
        {"within": 16},
        {"set_sizes": []},
        {"set_sizes": [0]},
    ],
)
def test_settings_that_make_no_sense(settings: dict[str, object]) -> None:
    with pytest.raises(UserError, match="in the settings"):
        validated(ComplexityConfig, dict(settings))
