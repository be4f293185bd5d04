"""The README: its Python runs, and its table is what the command prints."""

import re
from pathlib import Path
from typing import Any

import pytest

from lietransformer.cli import main

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def python_blocks() -> list[str]:
    return re.findall(r"```python\n(.*?)```", README, re.DOTALL)


@pytest.mark.parametrize("code", python_blocks(), ids=range(len(python_blocks())))
def test_python_blocks_run(
    code: str, springs_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "springs.h5").symlink_to(springs_file)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    # The dataset of the tests has 70 systems to train with, not 96,000.
    exec(compile(code.replace("n_train=1000", "n_train=70"), "README.md", "exec"), names)
    shapes = {"logits": (32, 4), "states": (5, 8, 2, 6, 2), "batch": (70, 5, 2, 6, 2)}
    results = {name: names[name] for name in shapes if name in names}
    assert results
    for name, value in results.items():
        assert getattr(value, "states", value).shape == shapes[name]


def test_the_table_of_models_is_what_the_command_prints(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["models"]) == 0
    assert capsys.readouterr().out.strip() in README
