"""The command line, as a user calls it."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from lietransformer.cli import main
from lietransformer.experiments.registry import presets
from lietransformer.reference import parameter_counts


def test_models_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["task"], row["model"]) for row in rows] == [(p.task, p.model) for p in presets()]
    published = parameter_counts()
    for row in rows:
        assert set(row) == {"task", "model", "group", "size", "parameters", "paper", "exact"}
        count = published.get((row["task"], row["model"]))
        if count is not None:
            assert row["parameters"] == row["exact"] == count.exact
            assert row["paper"] == count.paper
        else:
            assert row["paper"] is None


def test_models_as_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["task", "model", "group", "size", "parameters", "paper", "exact"]
    assert re.search(r"springs +LieTransformer-T2 +T\(2\) +5x160 +841,641 +842k", "\n".join(lines))
    assert len(lines) == 1 + len(presets())


def test_the_installed_command_answers() -> None:
    command = Path(sys.executable).with_name("lietransformer")
    result = subprocess.run([command, "--help"], capture_output=True, text=True, check=True)
    assert "models" in result.stdout
    version = subprocess.run([command, "--version"], capture_output=True, text=True, check=True)
    assert re.fullmatch(r"\d+\.\d+\.\d+", version.stdout.strip())


def test_an_unknown_command_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as error:
        main(["modles"])
    assert error.value.code == 2
    assert "models" in capsys.readouterr().err


def test_quickstart_shows_size_invariance_and_accuracy(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Without training it must not claim to have learnt, and say so with its exit code."""
    assert main(["quickstart", "--seconds", "0"]) == 1
    output = capsys.readouterr().out
    assert "16,239 parameters" in output
    moving = re.search(r"move with the input +(\S+)", output)
    fresh = re.findall(r"for each point +(\S+)", output)
    assert moving is not None
    assert float(moving[1]) < 1e-5
    assert [float(error) for error in fresh] == sorted(map(float, fresh), reverse=True)
    assert "it did not learn" in output
