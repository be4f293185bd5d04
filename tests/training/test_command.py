"""`lietransformer train` and `evaluate`, as a user calls them."""

import json
import math
import re
from pathlib import Path

import pytest

from lietransformer.cli import main
from lietransformer.experiments.springs import dataset as springs
from lietransformer.experiments.springs.plan import SpringsConfig
from lietransformer.training.checkpoint import Progress
from lietransformer.training.display import Display
from lietransformer.training.run_folder import RunFolder, write_json
from tests.training.runs import command, numbers, tiny


def test_several_seeds_are_each_as_their_own_run(
    tmp_path: Path, springs_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(command(springs_file, tmp_path / "all", seeds=[0, 2])) == 0
    assert capsys.readouterr().out.count(": finished") == 2
    for seed in (0, 2):
        assert main(command(springs_file, tmp_path / f"one-{seed}", seed=seed)) == 0
        assert numbers(tmp_path / "all" / f"seed-{seed}") == numbers(tmp_path / f"one-{seed}")


def test_what_a_person_sees(
    tmp_path: Path, springs_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(command(springs_file, tmp_path / "run")) == 0
    shown = capsys.readouterr()
    lines = [line for line in shown.err.splitlines() if "epoch" in line]
    assert len(lines) == 6  # evaluations
    assert re.match(
        r"\d\d:\d\d:\d\d  epoch 0.66667 of 4, step 2: loss 0\.\d+, validation", lines[0]
    )
    assert "(best so far)" in lines[0]
    result = RunFolder(tmp_path / "run").result()
    table = shown.out.splitlines()
    assert table[0] == "springs · Fully-connected (direct) · n = 12 · seed 0"
    assert table[1].startswith("512 parameters, 12 steps (4 epochs) in ")
    assert table[2].split() == ["best", "weights", "final", "weights"]
    row = next(line for line in table if line.startswith("test_long mse_geometric"))
    expected = [result["test"][which]["test_long"]["mse_geometric"] for which in ("best", "final")]
    assert [float(cell) for cell in row.split()[2:]] == pytest.approx(expected, rel=1e-4)
    assert table[-2] == f"{tmp_path / 'run'}: finished"


def test_the_bar_counts_whole_steps(
    springs_file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with Display(tiny(springs_file), total_steps=60, step=5) as display:
        display._bar.delay = 0
        display.step(Progress(step=6, loss_sum=1.0, loss_count=2))
        shown = str(display._bar)
    assert " 6/60 " in shown
    assert "loss 0.5" in shown
    capsys.readouterr()


def test_a_yaml_file_and_options(tmp_path: Path, springs_file: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(
        f"""
task: springs
model: Fully-connected (Hamiltonian)
architecture: {{width: 8, layers: 1}}
data: {springs_file}
n_train: 5
epochs: 2
test_examples: 2
compile: false
"""
    )
    out = str(tmp_path / "run")
    options = ["--device", "auto", "--precision", "float64", "--threads", "1"]
    arguments = ["train", "--config", str(path), "--out", out, "--tracking", "none", *options]
    assert main(arguments) == 0
    config = RunFolder(tmp_path / "run").config()
    assert (config.device, config.precision, config.threads) == ("cpu", "float64", 1)


def test_starting_over(
    tmp_path: Path, springs_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(command(springs_file, tmp_path / "run")) == 0
    assert main(command(springs_file, tmp_path / "run", seed=1)) == 1
    assert "start over with --force" in capsys.readouterr().err
    assert main(command(springs_file, tmp_path / "run", "--force", seed=1)) == 0
    assert RunFolder(tmp_path / "run").result()["seed"] == 1


def test_settings_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["train", "--settings"])
    assert stopped.value.code == 0
    shown = capsys.readouterr().out
    for name in ("n_train", "learning_rate", "patience", "seeds"):
        assert f"\n{name}\n    " in shown


def test_evaluating_again_gives_the_same_numbers(
    tmp_path: Path, springs_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(command(springs_file, tmp_path / "run")) == 0
    before = numbers(tmp_path / "run")
    capsys.readouterr()
    assert main(["evaluate", str(tmp_path / "run"), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["test"] == before["result"]["test"]
    assert json.loads((tmp_path / "run" / "evaluation.json").read_text()) == shown
    assert numbers(tmp_path / "run") == before
    assert main(["evaluate", str(tmp_path / "run")]) == 0
    assert "test_long mse_geometric" in capsys.readouterr().out


@pytest.mark.parametrize("precision", ["float32", "tf32"])
def test_a_run_of_a_gpu_is_evaluated_without_one(
    tmp_path: Path,
    springs_file: Path,
    precision: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where it is tested does not make it another run."""
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert main(command(springs_file, tmp_path / "run")) == 0
    folder = RunFolder(tmp_path / "run")
    on_gpu = tiny(springs_file, device="cuda", precision=precision, compile=True)
    stored = folder.read_config_json() | {
        "config": on_gpu.model_dump(mode="json"),
        "hash": on_gpu.identity_hash(folder.result()["dataset_hash"]),
    }
    write_json(folder.config_file, stored)
    assert "use --device cpu" in fails(capsys, ["evaluate", str(folder.path)]).lower()
    for device in ("cpu", "auto"):
        options = ["--device", device, "--threads", "1", "--json"]
        assert main(["evaluate", str(folder.path), *options]) == 0
        shown = json.loads(capsys.readouterr().out)
        assert shown["test"] == folder.result()["test"]
        assert shown["run"] == stored["hash"]


def test_numbers_that_are_not_finite_are_null_in_json_and_a_dash_in_the_table(
    tmp_path: Path, springs_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(command(springs_file, tmp_path / "run")) == 0
    folder = RunFolder(tmp_path / "run")
    weights = {name: folder.weights(name) for name in ("best", "final")}
    next(iter(weights["final"].values())).fill_(math.nan)
    folder.write_weights(weights)
    capsys.readouterr()
    assert main(["evaluate", str(folder.path), "--json"]) == 0
    shown = capsys.readouterr().out
    assert "NaN" not in shown
    tests = json.loads(shown)["test"]
    assert tests["final"]["test"]["mse_geometric"] is None
    assert tests["best"]["test"]["mse_geometric"] > 0
    assert main(["evaluate", str(folder.path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    row = next(line for line in lines if line.startswith("test mse_geometric"))
    assert row.endswith("–")


def test_evaluating_on_other_data(
    tmp_path: Path, springs_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other.h5"
    springs.generate(SpringsConfig(systems=60, test=10, validation=5, seed=1), other)
    assert main(command(springs_file, tmp_path / "run")) == 0
    before = numbers(tmp_path / "run")
    arguments = ["evaluate", str(tmp_path / "run"), "--data", str(other)]
    assert main(arguments) == 1
    assert "say with --out where" in capsys.readouterr().err.lower()
    assert main([*arguments, "--out", str(tmp_path / "elsewhere"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["test"] != before["result"]["test"]
    assert (tmp_path / "elsewhere" / "evaluation.h5").exists()
    assert numbers(tmp_path / "run") == before


def fails(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> str:
    assert main(arguments) == 1
    error = capsys.readouterr().err
    assert "Traceback" not in error
    return error


def test_mistakes(tmp_path: Path, springs_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "run"
    missing = command(tmp_path / "none.h5", out)
    assert "no such file" in fails(capsys, missing)
    assert "1 to " in fails(capsys, command(springs_file, out, n_train=5000))
    wrong_kind = command(springs_file, out, task="constellations", model="SetTransformer")
    assert "architecture" in fails(capsys, wrong_kind)
    wrong_kind = command(
        springs_file, out, task="constellations", model="SetTransformer", architecture={}
    )
    assert "of the kind springs, not constellations" in fails(capsys, wrong_kind)
    assert not out.exists()
    out.write_text("not a folder")
    assert "is a file" in fails(capsys, command(springs_file, out))
    assert "config.json" in fails(capsys, ["evaluate", str(tmp_path / "nothing")])


def test_a_gpu_that_is_not_there(
    tmp_path: Path,
    springs_file: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    arguments = command(springs_file, tmp_path / "run", "--device", "cuda")
    assert "a GPU that torch can use" in fails(capsys, arguments)
    assert not (tmp_path / "run").exists()


def test_weights_of_a_run_that_was_never_trained(
    tmp_path: Path, springs_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(command(springs_file, tmp_path / "run")) == 0
    (tmp_path / "run" / "model.pt").unlink()
    assert "Train it first" in fails(capsys, ["evaluate", str(tmp_path / "run")])
