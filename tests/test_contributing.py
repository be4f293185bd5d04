"""The recipes of CONTRIBUTING.md: each is applied to a copy of the package, and its example run."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
RECIPES = {
    section.partition("\n")[0]: re.findall(r"```(\w+)\n(.*?)```", section, re.DOTALL)
    for section in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split("\n### ")[1:]
}


def apply(diff: str, folder: Path) -> None:
    """Change files as a block says: lines that start with + or - come beside those around them."""
    for change in re.split(r"^--- ", diff, flags=re.MULTILINE)[1:]:
        name, _, lines = change.partition("\n")
        path = folder / name
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        for hunk in lines.split("@@\n"):
            old, new = (
                "".join(f"{line[1:]}\n" for line in hunk.splitlines() if line[0] != left_out)
                for left_out in "+-"
            )
            assert text.count(old) == 1 or not text, f"{name}: {old}"
            text = text.replace(old, new) if text else new
        path.write_text(text, encoding="utf-8")


def run(code: str, kind: str, folder: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    if kind == "sh":
        command = f"{sys.executable} -m lietransformer"
        line = ["bash", "-euc", re.sub(r"^lietransformer", command, code, flags=re.MULTILINE)]
    else:
        line = [sys.executable, "-c", code]
    done = subprocess.run(
        line, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_works(name: str, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "lietransformer", tmp_path / "lietransformer")
    for kind, code in RECIPES[name]:
        if kind == "diff":
            apply(code, tmp_path)
        else:
            run(code, kind, tmp_path)


def test_there_is_a_recipe_for_all_that_is_made_to_be_extended() -> None:
    things = ("a group", "an attention choice", "a kernel", "a model", "an experiment")
    assert [*RECIPES] == [f"Add {thing}" for thing in things]
