"""A results folder with all that can go wrong, and the command that reports it."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from lietransformer.cli import main
from lietransformer.cli.sync import sync
from lietransformer.data.reader import DatasetFile
from lietransformer.doctor import findings, machine
from lietransformer.doctor.results import Results, examine
from lietransformer.files import complete_or_absent, exclusive
from lietransformer.training.loop import Run
from lietransformer.training.run_folder import RunFolder
from tests.doctor.folders import begin, cut_off, finish, finished, levels, stop, write_manifest
from tests.sweep.archives import publish
from tests.tracking.runs import MLFLOW_WARNINGS
from tests.tracking.server import free_port
from tests.training.runs import tiny

pytestmark = [MLFLOW_WARNINGS, pytest.mark.usefixtures("empty_working_folder")]


@pytest.fixture(scope="session")
def data(short_springs_file: Path) -> Path:
    return short_springs_file


@pytest.fixture
def results(tmp_path: Path) -> Path:
    path = tmp_path / "results"
    path.mkdir()
    return path


def check(
    results: Path, name: str, tracking: str | None = None, *, thorough: bool = False
) -> list[findings.Finding]:
    return findings.run(Results(results, tracking, thorough).checks[name.capitalize()])


def test_datasets(results: Path, data: Path) -> None:
    assert levels(check(results, "datasets")) == ["ok"]
    (results / "data").mkdir()
    altered, cut, _ = (
        Path(shutil.copy(data, results / "data" / f"{name}.h5"))
        for name in ("altered", "cut", "whole")
    )
    cut_off(cut)
    file = DatasetFile(altered, verify=False)
    content = bytearray(altered.read_bytes())
    content[file.array(file.names[0]).offset] ^= 1  # type: ignore[attr-defined]
    altered.write_bytes(content)
    assert levels(check(results, "datasets")) == ["ok", "problem", "ok"]
    found = check(results, "datasets", thorough=True)
    assert levels(found) == ["problem", "problem", "ok"]
    assert "does not match its hash" in found[0].what
    assert f"remove {altered}" in str(found[0].remedy)


def test_archive(results: Path) -> None:
    published = publish(results, ["runs/springs/lieconv-t2/n10-1/seed-0"], ["invariance-1"])
    assert [found.what for found in check(results, "archive")] == ["1 published runs"]
    (published / "measurements" / "invariance-1.json").unlink()
    (published / "stray").write_text("")
    assert levels(check(results, "archive")) == ["ok", "problem", "warning"]
    assert check(results, "runs")[0].what.startswith("0 runs")
    (published / "MANIFEST.json").write_text("[]")
    (found,) = check(results, "archive")
    assert (found.level, "git checkout" in found.what) == ("problem", True)


def test_what_the_engine_leaves_is_in_order(tmp_path: Path, data: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    Run(tiny(data), folder).execute()
    assert examine(folder) == ("finished", "")


def test_runs(results: Path, data: Path) -> None:
    finished(results / "a", data)
    finish(begin(results / "b", data), "diverged")
    stop(begin(results / "c", data))
    begin(results / "d", data)
    stop(begin(results / "e", data))
    finished(results / "f", data).config_file.unlink()
    finished(results / "mlflow-artifacts" / "copy", data)
    with exclusive(results / ".resume" / "e" / "lock", "trains"):
        found = check(results, "runs")
    assert found[0].what == "6 runs: 1 finished, 1 diverged, 1 running"
    assert levels(found) == ["ok", "note", "note", "problem"]
    assert [each.items for each in found[1:3]] == [(f"{results}/c",), (f"{results}/d",)]
    assert found[3].items[0].startswith(f"{results}/f (")
    # Its process was killed, so it can be resumed.
    assert examine(RunFolder(results / "e")) == ("resumable", "")


def damage_checkpoint(run: RunFolder) -> None:
    run.result_file.unlink()
    cut_off(stop(run))


FAULTS: dict[str, Callable[[RunFolder], object]] = {
    "config.json": lambda run: run.config_file.write_text("{"),
    "task": lambda run: run.config_file.write_text('{"hash": 1, "config": {}}'),
    "lines that are JSON objects": lambda run: run.metrics_file.write_bytes(b"\xff\n"),
    "does not belong": lambda run: run.result_file.write_text('{"status": "finished"}'),
    "model.pt is missing": lambda run: run.model_file.unlink(),
    "model.pt is damaged": lambda run: cut_off(run.model_file),
    "evaluation.h5": lambda run: run.evaluation_file.unlink(),
    ".pt is damaged": damage_checkpoint,
}


@pytest.mark.parametrize("fault", FAULTS)
def test_damaged_runs(fault: str, results: Path, data: Path) -> None:
    FAULTS[fault](folder := finished(results / "run", data))
    status, found = examine(folder)
    assert status == "damaged"
    assert fault in found


def test_sweep(results: Path, data: Path) -> None:
    assert levels(check(results, "sweep")) == ["note"]
    mine, missing = finished(results / "mine", data).path, results / "missing"
    write_manifest(results, [mine, missing])
    other = finished(results / "other", data).path
    done, absent, others = check(results, "sweep")
    assert done.what == "1 of 2 runs done"
    assert (absent.level, absent.items) == ("note", ("missing",))
    assert (others.level, others.items) == ("note", (str(other),))
    (results / "sweep.json").write_text("{}")
    assert levels(check(results, "sweep")) == ["problem"]


def test_leftovers(results: Path, data: Path) -> None:
    stop(begin(results / "stopped", data))
    with complete_or_absent(results / "data" / "springs.h5"):
        assert levels(check(results, "leftovers")) == ["ok"]
    (results / "springs.h5.part").write_bytes(bytes(3_000_000))
    checkpoint = stop(finished(results / "done", data))
    parts, old = check(results, "leftovers")
    assert (parts.level, parts.what) == ("warning", "partly written files, 3.0 MB (1)")
    assert (old.level, old.items) == ("warning", (str(checkpoint),))


def test_which_store(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert check(results, "store")[0].what == f"no store at sqlite:///{results}/mlflow.db yet"
    write_manifest(results, [], tracking="sqlite:///planned.db")
    assert "planned.db" in check(results, "store")[0].what
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "sqlite:///environment.db")
    assert "environment.db" in check(results, "store")[0].what
    assert levels(check(results, "store", "none")) == ["note"]
    assert levels(check(results, "store", "./mlruns")) == ["problem"]


def test_store(results: Path, data: Path, empty_database: Path) -> None:
    database = Path(shutil.copy(empty_database, results / "mlflow.db"))
    folder = finished(results / "run", data)
    *_, missing = check(results, "store")
    assert (missing.level, missing.items) == ("warning", (str(folder.path),))
    assert f"lietransformer sync {results}" in str(missing.remedy)
    sync(f"sqlite:///{database}", [folder])
    # Of two folders with the same run one is in the store, as it should be.
    shutil.copytree(folder.path, results / "copy")
    assert levels(check(results, "store")) == ["ok"]
    # Trained again, with other numbers.
    shutil.rmtree(results / "copy")
    folder.write_records([{"step": 1, "epoch": 1.0, "time": 1.0, "train/loss": 0.7}])
    assert levels(check(results, "store")) == ["ok", "warning"]
    with exclusive(results / "mlflow.db.lock", "writes"):
        assert levels(check(results, "store")) == ["note"]
    database.write_text("something else altogether")
    assert levels(check(results, "store")) == ["problem"]
    assert database.read_text() == "something else altogether"
    assert levels(check(results, "store", f"http://127.0.0.1:{free_port()}")) == ["problem"]


def test_the_command(
    results: Path, data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(machine, "packages", lambda: [])
    monkeypatch.setattr(machine, "storage", lambda _: [])
    folder = finished(results / "run", data)
    before = {path: path.stat().st_mtime_ns for path in results.rglob("*")}
    assert main(["doctor", str(results), "--thorough", "--tracking", "none"]) == 0
    said = capsys.readouterr().out
    assert "Runs\n  ok       1 runs: 1 finished, 0 diverged, 0 running\n" in said
    assert said.endswith("Problems: 0, warnings: 0\n")
    assert {path: path.stat().st_mtime_ns for path in results.rglob("*")} == before
    for number in range(5):
        finished(results / f"bad-{number}", data).model_file.unlink()
    assert main(["doctor", str(results)]) == 1
    said = capsys.readouterr().out
    assert f"problem  damaged runs (5)\n             {results}/bad-0 (" in said
    assert "             and 2 more\n           → remove" in said
    assert f"warning  finished runs missing in MLflow (1)\n             {folder.path}\n" in said
    assert said.endswith("Problems: 1, warnings: 1\n")
    assert main(["doctor", str(results), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["counts"]["problem"] == 1
    assert len(found["sections"]["Runs"][1]["items"]) == 5

    def fail() -> None:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr(machine, "packages", fail)
    assert main(["doctor", str(results / "none")]) == 1
    said = capsys.readouterr().out
    assert "problem  ZeroDivisionError: oops\n" in said
    assert "\nStore\n" in said


def test_without_torch_the_machine_is_still_checked(results: Path) -> None:
    program = (
        "import sys; sys.modules['torch'] = None; "
        "from lietransformer.cli import main; sys.exit(main(['doctor', sys.argv[1]]))"
    )
    command = [sys.executable, "-c", program, str(results)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "")
    assert "import of torch halted" in done.stdout
    assert "C compiler" in done.stdout
    assert "\nResults\n  problem  not checked: " in done.stdout
