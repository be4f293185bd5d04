"""`lietransformer invariance`."""

import argparse
import json
from pathlib import Path

import pytest

from lietransformer.cli import invariance as command
from lietransformer.errors import UserError
from lietransformer.experiments.symmetry import measure
from lietransformer.experiments.symmetry.config import InvarianceConfig


def invariance(*arguments: str) -> int:
    parser = argparse.ArgumentParser()
    command.add_parser(parser.add_subparsers())
    options = parser.parse_args(["invariance", *arguments])
    return int(options.run(options))


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "results" / "invariance.json"


def small(out: Path, *more: str) -> int:
    sets = [f"--set={setting}" for setting in ("runs=3", "largest=4", "numbers=3", *more)]
    return invariance("--out", str(out), "--threads", "1", *sets)


def test_writes_the_measurement(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert small(out, "seed=7") == 0
    written = json.loads(out.read_text())
    expected = InvarianceConfig(seed=7, runs=3, largest=4, numbers=3)
    assert written["schema_version"] == 1
    assert written["settings"] == expected.model_dump(mode="json")
    assert written["lift_samples"] == [1, 2, 4]
    assert written["errors"] == measure.measure(expected)["errors"]
    assert written["example"] == measure.training_example()
    assert written["seconds"] > 0
    assert written["machine"]["processor"]
    assert "git_commit" in written
    assert str(out) in capsys.readouterr().out


def test_settings_from_a_file(out: Path, tmp_path: Path) -> None:
    (tmp_path / "settings.yaml").write_text("runs: 1\nlargest: 2\nheads: 4\n")
    invariance("--out", str(out), "--config", str(tmp_path / "settings.yaml"), "--set", "heads=1")
    settings = json.loads(out.read_text())["settings"]
    assert (settings["runs"], settings["heads"]) == (1, 1)


def test_a_file_is_replaced_only_when_asked(out: Path) -> None:
    small(out)
    before = out.read_bytes()
    with pytest.raises(UserError, match="--force"):
        small(out)
    assert out.read_bytes() == before
    assert invariance("--out", str(out), "--force", "--set=runs=1", "--set=largest=1") == 0
    assert out.read_bytes() != before


def test_nothing_is_left_of_a_measurement_that_fails(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(measure, "logits", stop)
    with pytest.raises(KeyboardInterrupt):
        small(out)
    assert not out.parent.exists()


def test_a_mistake_is_reported_before_anything_is_computed(out: Path) -> None:
    with pytest.raises(UserError, match="heads"):
        small(out, "heads=3")


def test_lists_the_settings(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        invariance("--settings")
    assert stopped.value.code == 0
    shown = capsys.readouterr().out
    for name, field in InvarianceConfig.model_fields.items():
        assert f"{name}: {field.default}" in shown


def test_no_threads(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        invariance("--out", str(out), "--threads", "0")
    assert "at least 1" in capsys.readouterr().err
