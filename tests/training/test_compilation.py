"""Compiled runs have the numbers of plain ones, but for rounding, and resume exactly."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from lietransformer.interruption import RESUME_EXIT_CODE
from lietransformer.training.run_folder import load
from tests.training.runs import command, numbers

# Commands of their own: what checks shapes in these tests cannot be compiled.
TRAIN = [str(Path(sys.executable).with_name("lietransformer"))]
SMALL = {
    "model": "LieTransformer-T2",
    "architecture": {"width": 8, "layers": 1, "heads": 2},
    "n_train": 5,
    "epochs": 6,
    "evaluation_batch_size": 5,
    "test_examples": 5,
}
# Stops itself after its third step, as if a scheduler had asked.
STOPPED = """
import os, signal, sys
from lietransformer.cli import main
from lietransformer.training.display import Display

def step(self, state, original=Display.step):
    original(self, state)
    if state.step == 3:
        os.kill(os.getpid(), signal.SIGTERM)

Display.step = step
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.slow
def test_compiled_equals_plain(tmp_path: Path, springs_file: Path) -> None:
    for name in ("plain", "compiled", "resumed"):
        arguments = command(springs_file, tmp_path / name, **{**SMALL, "compile": name != "plain"})
        if name == "resumed":
            stopped = subprocess.run([sys.executable, "-c", STOPPED, *arguments], check=False)
            assert stopped.returncode == RESUME_EXIT_CODE
        subprocess.run([*TRAIN, *arguments], check=True)
    assert numbers(tmp_path / "resumed") == numbers(tmp_path / "compiled")

    plain, compiled = (numbers(tmp_path / name) for name in ("plain", "compiled"))
    for before, after in zip(plain["records"], compiled["records"], strict=True):
        assert after == pytest.approx(before, rel=1e-4)
    weights = (load(tmp_path / name / "model.pt")["final"] for name in ("plain", "compiled"))
    torch.testing.assert_close(*weights, rtol=1e-3, atol=1e-5)
    # Not the same to the last bit, or nothing was compiled.
    assert plain["weights"] != compiled["weights"]
