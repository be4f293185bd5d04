"""`lietransformer doctor`, as a user calls it."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lietransformer.cli import main
from lietransformer.cli.sync import sync
from lietransformer.doctor import leftovers, storage, tools, versions
from lietransformer.doctor.findings import Finding, counted, size, some
from tests.doctor.folders import begin, finished, held_by_another_process, stop, write_manifest
from tests.tracking.runs import MLFLOW_WARNINGS

pytestmark = MLFLOW_WARNINGS


@pytest.fixture(autouse=True)
def _a_good_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """These tests are about the results: whatever runs them need not have a good place for more."""
    fine = [Finding("ok", "fine")]
    monkeypatch.setattr(storage, "judge_room", lambda *_: fine[0])
    monkeypatch.setattr(tools, "check", lambda: fine)
    monkeypatch.setattr(versions, "check", lambda: fine)


def snapshot(folder: Path) -> dict[str, Any]:
    """All that a look must not change."""
    return {
        str(path): (
            path.lstat().st_mtime_ns,
            hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None,
        )
        for path in sorted(folder.rglob("*"))
    }


def test_a_sweep_in_order(
    results: Path, database: Path, springs_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (results / "data").mkdir()
    shutil.copy(springs_file, results / "data")
    folder = finished(results / "runs" / "run", springs_file)
    write_manifest(results, [folder.path])
    sync(f"sqlite:///{database}", [folder])
    before = snapshot(results.parent)
    for more in ([], ["--thorough"]):
        assert main(["doctor", str(results), *more]) == 0
        said = capsys.readouterr().out
        for title in ("Storage", "Datasets", "Runs", "Archive", "Sweep", "Leftovers", "MLflow"):
            assert f"\n{title}\n" in said
        assert "  ok       1 run: 1 finished\n" in said
        assert "problem" not in said.lower()
    assert snapshot(results.parent) == before


@pytest.mark.usefixtures("database")
def test_everything_at_once_and_nothing_is_changed(
    results: Path, springs_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = results / "runs"
    finished(runs / "good", springs_file)
    finished(runs / "bad", springs_file).model_file.unlink()
    stop(begin(runs / "now", springs_file))
    (results / "data").mkdir()
    (results / "data" / "x.h5").write_text("no HDF5")
    (results / "data" / "y.h5.part").write_text("half")
    (results / "sweep.json").write_text("{")
    os.mkfifo(results / "pipe.part")
    (results / "loop").symlink_to(results)
    (Path(os.fsdecode(bytes(results) + b"/\xff\n.part"))).write_text("a name that is no text")
    with held_by_another_process(runs / ".resume" / "now" / "lock"):
        before = snapshot(results)
        assert main(["doctor", str(results), "--json"]) == 1
        found = json.loads(capsys.readouterr().out)
        assert main(["doctor", str(results)]) == 1
        said = capsys.readouterr().out
        assert snapshot(results) == before
    assert found["schema_version"] == 1
    assert found["counts"]["problem"] == 3
    levels = {s["title"]: {f["level"] for f in s["findings"]} for s in found["sections"]}
    for title, level in {
        "Datasets": "problem",
        "Runs": "problem",
        "Sweep": "problem",
        "Leftovers": "warning",
        "MLflow": "warning",
    }.items():
        assert level in levels[title], title
    assert "model.pt is missing" in said
    assert "→ remove" in said
    assert "\\xff\\n.part" in said or "\\udcff\\n.part" in said
    assert "3 problems and " in said.splitlines()[-1]


def test_no_results_yet(
    tmp_path: Path, elsewhere: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["doctor"]) == 0
    said = capsys.readouterr().out
    assert "warning  there is no folder results" in said
    assert "No problem and 1 warning; what to do stands beside each." in said
    assert list(elsewhere.iterdir()) == []
    assert main(["doctor", str(tmp_path / "none"), "--tracking", "none"]) == 0


def test_a_check_that_fails_itself_does_not_silence_the_others(
    results: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr(leftovers, "check", fail)
    assert main(["doctor", str(results)]) == 1
    said = capsys.readouterr().out
    assert "problem  could not be checked: ZeroDivisionError: oops" in said
    assert "\nMLflow\n" in said


def test_without_torch_the_rest_is_still_checked(results: Path) -> None:
    program = (
        "import sys; sys.modules['torch'] = None; "
        "from lietransformer.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", program, "doctor", str(results)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "could not be checked: import of torch halted" in done.stdout
    assert "the C compiler" in done.stdout or "C code" in done.stdout
    assert done.stderr == ""


def test_the_words_for_numbers() -> None:
    assert some(["a", "b"]) == "a, b"
    assert some(list("abcde")) == "a, b, c and 2 more"
    assert [counted(1, "run"), counted(1200, "run")] == ["1 run", "1,200 runs"]
    assert [size(2_500_000), size(3 * 10**9)] == ["2.5 MB", "3.0 GB"]
