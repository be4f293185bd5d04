"""Datasets, runs, the sweep and leftovers, in folders with all that can go wrong."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from lietransformer.data.reader import DatasetFile
from lietransformer.doctor import archive, datasets, leftovers, sweep
from lietransformer.doctor.findings import Finding
from lietransformer.doctor.listing import list_results
from lietransformer.doctor.runs import check, examine
from lietransformer.files import complete_or_absent
from lietransformer.sweep.jobs import Pack, seeds_of
from lietransformer.training.loop import Run
from lietransformer.training.run_folder import RunFolder
from tests.doctor.folders import (
    begin,
    finish,
    finished,
    held_by_another_process,
    levels,
    stop,
    the,
    write_manifest,
)
from tests.sweep.archives import publish
from tests.sweep.sweeps import plan
from tests.training.runs import tiny


def cut_off(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def alter(path: Path) -> None:
    """One bit of its numbers."""
    file = DatasetFile(path, verify=False)
    place = file.array(file.names[0]).offset  # type: ignore[attr-defined]
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)


# ---- datasets


def test_datasets(results: Path, springs_file: Path) -> None:
    assert levels(datasets.check(results, thorough=False)) == ["note"]
    (results / "data").mkdir()
    for name in ("whole", "cut", "altered"):
        shutil.copy(springs_file, results / "data" / f"{name}.h5")
    cut_off(results / "data" / "cut.h5")
    alter(results / "data" / "altered.h5")
    (results / "data" / "other.h5").write_text("no HDF5")
    os.mkfifo(results / "data" / "pipe.h5")
    found = list(datasets.check(results, thorough=False))
    assert levels(found) == ["ok", "problem", "problem", "problem", "ok"]
    assert "it is cut off" in found[1].what
    assert f"remove {results}/data/cut.h5" in str(found[1].remedy)
    found = list(datasets.check(results, thorough=True))
    assert levels(found) == ["problem", "problem", "problem", "problem", "ok"]
    assert "does not match its hash" in found[0].what


# ---- runs


def test_what_the_engine_leaves_is_in_order(tmp_path: Path, springs_file: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    Run(tiny(springs_file), folder).execute()
    examined = examine(folder, thorough=True)
    assert (examined.status, examined.fault) == ("finished", None)


def test_the_status_of_each_run(results: Path, springs_file: Path) -> None:
    runs = results / "runs"
    finished(runs / "a", springs_file)
    finish(begin(runs / "b", springs_file), "diverged")
    stop(begin(runs / "c", springs_file))
    begin(runs / "d", springs_file)
    stop(begin(runs / "e", springs_file))
    (runs / "f").mkdir()
    (runs / "f" / "model.pt").write_bytes(b"")
    with held_by_another_process(runs / ".resume" / "e" / "lock"):
        listing = list_results(results)
        examined = [examine(folder) for folder in listing.runs]
    expected = ["finished", "diverged", "stopped", "begun", "running", "broken"]
    assert [run.status for run in examined] == expected
    found = list(check(examined, listing.unreadable))
    assert found[0].what == "6 runs: 1 finished, 1 diverged, 1 running"
    assert levels(found) == ["ok", "note", "note", "problem"]
    assert found[1].items == (f"{runs}/c",)
    assert "config.json is missing" in found[3].what
    # The process was killed: its run can go on.
    assert examine(RunFolder(runs / "e")).status == "stopped"


def with_status(folder: RunFolder, **changes: object) -> None:
    folder.result_file.write_text(json.dumps(folder.result() | changes))


def replace(path: Path, make: Callable[[Path], None]) -> None:
    path.unlink()
    make(path)


FAULTS: dict[str, tuple[Callable[[RunFolder], object], str]] = {
    "config": (lambda run: run.config_file.write_text("{"), "it is not JSON"),
    "settings": (
        lambda run: run.config_file.write_text('{"hash": 1, "config": {"task": "chess"}}'),
        "task",
    ),
    "nested": (lambda run: run.config_file.write_text("[" * 100_000), "Recursion"),
    "binary": (lambda run: run.metrics_file.write_bytes(b"\xff\n"), "UnicodeDecodeError"),
    "curves": (lambda run: run.metrics_file.write_text("nonsense\n"), "lines of JSON"),
    "no curves": (lambda run: run.metrics_file.unlink(), "metrics.jsonl is missing"),
    "result": (lambda run: run.result_file.write_text(""), "it is not JSON"),
    "status": (lambda run: with_status(run, status="fine"), "unknown status"),
    "hash": (lambda run: with_status(run, hash="other"), "that of another run"),
    "no weights": (lambda run: run.model_file.unlink(), "model.pt is missing"),
    "weights": (lambda run: cut_off(run.model_file), "model.pt is damaged"),
    "no test": (lambda run: run.evaluation_file.unlink(), "evaluation.h5 is missing"),
    "test": (lambda run: cut_off(run.evaluation_file), "evaluation.h5 is damaged"),
    "folder": (lambda run: replace(run.model_file, Path.mkdir), "model.pt is no file"),
    "pipe": (lambda run: replace(run.result_file, os.mkfifo), "result.json is no file"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_broken_runs(name: str, results: Path, springs_file: Path) -> None:
    folder = finished(results / "run", springs_file)
    assert examine(folder).status == "finished"
    damage, fault = FAULTS[name]
    damage(folder)
    examined = examine(folder)
    assert examined.status == "broken"
    assert fault in str(examined.fault)
    found = the("problem", check([examined], []))
    assert found.items == (str(folder.path),)
    advice = "lietransformer evaluate" if "test" in name else "remove the folder"
    assert advice in str(found.remedy)


def test_a_damaged_checkpoint(results: Path, springs_file: Path) -> None:
    folder = begin(results / "run", springs_file)
    cut_off(stop(folder))
    assert "the checkpoint .resume/run/" in str(examine(folder).fault)


def test_what_only_a_thorough_look_finds(results: Path, springs_file: Path) -> None:
    folder = finished(results / "run", springs_file)
    content = folder.evaluation_file.read_bytes()
    alter(folder.evaluation_file)
    assert examine(folder).status == "finished"
    assert examine(folder, thorough=True).fault == "evaluation.h5 is damaged"
    folder.evaluation_file.write_bytes(content)
    assert examine(folder, thorough=True).status == "finished"


def test_a_run_that_is_begun_again_while_we_look(
    results: Path, springs_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With --force its files go and come. What is seen in between is no damage."""
    folder = finished(results / "run", springs_file)
    lock = folder.state_folder / "lock"
    holder = held_by_another_process(lock)

    def begin_again(_: RunFolder) -> None:
        holder.__enter__()
        folder.model_file.unlink()

    monkeypatch.setattr(RunFolder, "records", begin_again)
    try:
        assert examine(folder).status == "running"
    finally:
        holder.__exit__(None, None, None)


def test_a_run_that_is_removed_while_we_look(
    results: Path, springs_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = finished(results / "run", springs_file)
    monkeypatch.setattr(RunFolder, "records", lambda _: shutil.rmtree(folder.path))
    assert examine(folder).status == "gone"


def test_files_that_may_not_be_read(
    results: Path, springs_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = finished(results / "run", springs_file)
    # The tests may be run by somebody who may read everything.
    monkeypatch.setattr(os, "access", lambda path, _: path != folder.config_file)
    examined = examine(folder)
    assert examined.fault == "config.json may not be read"
    assert examined.remedy == "check the permissions"


def test_folders_that_cannot_be_looked_into(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (results / "closed").mkdir()
    scandir = os.scandir

    def refuse(path: str) -> object:
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    listing = list_results(results)
    assert listing.unreadable == [f"{results}/closed (Permission denied)"]
    assert levels(check([], listing.unreadable)) == ["ok", "problem"]


def test_the_copies_of_mlflow_are_no_runs(results: Path, springs_file: Path) -> None:
    finished(results / "mlflow-artifacts" / "run", springs_file)
    assert list_results(results).runs == []


# ---- the published runs


def test_the_archive(results: Path, springs_file: Path) -> None:
    assert levels(archive.check(results)) == ["note"]
    name = "runs/springs/lieconv-t2/n10-1a2b3c4d/seed-0"
    published = publish(results, [name], ["invariance-12345678"])
    (found,) = archive.check(results)
    assert (found.level, found.what) == ("ok", "1 published run, unaltered")
    # It is not among the runs of this machine, and counts as done.
    finished(results / "runs" / "mine", springs_file)
    assert [run.path.name for run in list_results(results).runs] == ["mine"]
    write_manifest(results, [results / "runs" / "mine", published / name])
    (found,) = check_sweep(results)
    assert found.what == "2 of the 2 runs of the sweep are done, 1 of them published"
    (published / "measurements" / "invariance-12345678.json").unlink()
    (published / "stray").write_text("")
    assert levels(archive.check(results)) == ["problem", "warning"]
    assert all(len(found.items) == 1 for found in archive.check(results))
    (published / "MANIFEST.json").write_text("[]")
    assert levels(archive.check(results)) == ["problem"]


# ---- the sweep


def check_sweep(results: Path) -> list[Finding]:
    listing = list_results(results)
    return list(sweep.check(results, listing, [examine(folder) for folder in listing.runs]))


def test_runs_beside_the_manifest(results: Path, springs_file: Path) -> None:
    assert levels(check_sweep(results)) == ["note"]
    mine, other, missing = (results / "runs" / name for name in ("mine", "other", "missing"))
    finished(mine, springs_file)
    write_manifest(results, [mine])
    found = check_sweep(results)
    assert levels(found) == ["ok"]
    assert found[0].what == "1 of the 1 run of the sweep are done"
    finished(other, springs_file)
    write_manifest(results, [mine, missing])
    found = check_sweep(results)
    assert levels(found) == ["ok", "note", "note"]
    assert found[1].items == (str(missing),)
    assert found[2].items == (str(other),)
    assert "1 run, 0.0 MB, of other settings" in found[2].what


@pytest.mark.parametrize("content", ["", "[]", "{}", "[" * 100_000])
def test_a_manifest_that_cannot_be_read(content: str, results: Path) -> None:
    (results / "sweep.json").write_text(content)
    assert levels(check_sweep(results)) == ["problem"]


@pytest.mark.parametrize("change", [{"seed": "many"}, {"folder": None}, {"parts": 5}])
def test_a_manifest_of_other_types(change: dict[str, object], results: Path) -> None:
    write_manifest(results, [results / "runs" / "run"])
    content = json.loads((results / "sweep.json").read_text())
    content["runs"][0] |= change
    (results / "sweep.json").write_text(json.dumps(content))
    assert levels(check_sweep(results)) == ["problem"]


def test_summaries_of_runs_that_are_gone(results: Path, springs_file: Path) -> None:
    folder = results / "runs" / "springs"
    for seed in (0, 1):
        finished(folder / f"seed-{seed}", springs_file, seed=seed)
    (folder / "seeds-0-1.json").write_text("[]")
    (folder / "seeds-of-something-else.json").write_text("[]")
    assert levels(check_sweep(results)) == ["note"]
    shutil.rmtree(folder / "seed-1")
    assert the("warning", check_sweep(results)).items == (f"{folder}/seeds-0-1.json",)


def test_the_name_of_a_summary_says_its_seeds() -> None:
    (configuration, *_) = plan().configurations
    for seeds in [(0,), (7,), (0, 1), (3, 4, 5), (0, 2), (1, 5, 6)]:
        assert seeds_of(Pack(configuration, seeds).summary) == list(seeds)
    for name in ("seeds-.json", "seeds-a.json", "seeds-1-2-3.json", "seeds-1.json.part"):
        assert seeds_of(Path(name)) is None


# ---- leftovers


def check_leftovers(results: Path) -> list[Finding]:
    return list(leftovers.check(results, list_results(results)))


def test_half_written_files(results: Path) -> None:
    assert levels(check_leftovers(results)) == ["ok"]
    with complete_or_absent(results / "data" / "springs.h5"):
        (found,) = check_leftovers(results)
        assert found.level == "note"
        assert "springs.h5.part is being written by" in found.what
    (results / "data" / "springs.h5.part").write_bytes(bytes(3_000_000))
    (found,) = check_leftovers(results)
    assert found.level == "warning"
    assert "1 half written file, 3.0 MB, of processes that were killed" in found.what
    assert found.items == (f"{results}/data/springs.h5.part",)


def test_checkpoints_that_nobody_needs(results: Path, springs_file: Path) -> None:
    runs = results / "runs"
    stop(begin(runs / "stopped", springs_file))
    assert levels(check_leftovers(results)) == ["ok"]
    stop(finished(runs / "done", springs_file))
    stop(begin(runs / "removed", springs_file))
    shutil.rmtree(runs / "removed")
    stop(finished(runs / "ending", springs_file))
    with held_by_another_process(runs / ".resume" / "ending" / "lock"):
        found = check_leftovers(results)
    assert levels(found) == ["warning", "warning"]
    assert found[0].items == (f"{runs}/.resume/done",)
    assert found[1].items == (f"{runs}/.resume/removed",)
    assert "would go on from them" in str(found[1].remedy)


def test_the_lock_of_snakemake(results: Path) -> None:
    locks = results.parent / ".snakemake" / "locks"
    locks.mkdir(parents=True)
    assert levels(check_leftovers(results)) == ["ok"]
    (locks / "0.output.lock").write_text("results/report.html\n")
    (found,) = check_leftovers(results)
    assert found.level == "warning"
    assert "snakemake --unlock --cores 1" in str(found.remedy)
    # A process of that name, which works in that folder.
    waiting = [sys.executable, "-c", "import sys; sys.stdin.read()", "snakemake"]
    with subprocess.Popen(waiting, cwd=results.parent, stdin=subprocess.PIPE) as process:
        (found,) = check_leftovers(results)
        process.communicate()
    assert found.what == f"Snakemake works in {results.parent} now (process {process.pid})"
    assert found.level == "note"
