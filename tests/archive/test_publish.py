"""Publishing: what is taken, what is refused, and that a failure leaves the archive as it was."""

import json
import multiprocessing
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lietransformer
from lietransformer import cli
from lietransformer.archive import publish as module
from lietransformer.archive import readme
from lietransformer.archive.checking import check
from lietransformer.archive.publish import publish
from lietransformer.data.reader import DatasetFile
from lietransformer.errors import UserError
from lietransformer.experiments.springs.figures.pairs import find_pair
from lietransformer.experiments.springs.rollouts import step_error, trajectory_error
from lietransformer.files import exclusive
from lietransformer.layout import MANIFEST, README, Archive
from lietransformer.report.runs import read_sweep
from tests.archive.conftest import COMMIT, FULLY_CONNECTED, Project, edit

RUNS = 7


def test_finished_runs_are_published_with_their_files(project: Project) -> None:
    done = publish(project.results)
    assert len(done.added) == RUNS
    archive = project.archive
    assert check(archive) == []
    for name, run in archive.runs.items():
        for file in ("config.json", "result.json", "metrics.jsonl"):
            published, original = archive.path / name / file, project.results / name / file
            assert published.read_bytes() == original.read_bytes()
        assert run["git_commit"] == COMMIT
        assert run["core_hours"] >= 0
        assert "host" not in run["machine"]
    kinds = {entry["kind"] for entry in archive.manifest["datasets"].values()}
    assert kinds == {"springs", "constellations"}


def test_repeating_it_changes_nothing(published: Project) -> None:
    before = published.contents()
    done = publish(published.results)
    assert (done.added, done.others, len(done.known)) == ([], [], RUNS)
    assert published.contents() == before


def test_later_runs_are_added_to_earlier_ones(project: Project) -> None:
    late = project.run("lieconv")
    shutil.move(late, project.root / "late")
    assert len(publish(project.results).added) == RUNS - 1
    assert not list(project.archive.path.glob("trajectories/*-seed-0.h5"))
    shutil.move(project.root / "late", late)
    done = publish(project.results)
    assert done.added == [late.relative_to(project.results).as_posix()]
    assert check(project.archive) == []


def test_the_compact_evaluation_has_errors_per_step_and_trajectory(published: Project) -> None:
    run = published.run("lieconv")
    full = DatasetFile(run / "evaluation.h5")
    small = published.archive.path / run.relative_to(published.results) / "evaluation.h5"
    compact = DatasetFile(small, kind="evaluation")
    squared = np.asarray(full.array("final/test_long/squared"), dtype=float)
    assert np.array_equal(compact.array("final/test_long/step_error"), step_error(squared))
    errors = trajectory_error(squared)
    assert np.array_equal(compact.array("final/test_long/trajectory_error"), errors)
    assert "final/test_long/positions" not in compact.names


def test_paths_of_the_drawn_trajectories_are_kept(published: Project) -> None:
    file = DatasetFile(published.archive.path / "trajectories" / "n10-seed-0.h5")
    drawn = file.array("drawn")
    full = DatasetFile(published.run("lieconv") / "evaluation.h5")
    positions = np.asarray(full.array("final/test_long/positions"))[drawn]
    assert np.array_equal(file.array("LieConv-T2"), positions)
    truth = file.array("truth")
    assert truth.shape == (len(drawn), positions.shape[1] + 1, *positions.shape[2:])


def test_paths_of_runs_published_apart_come_from_runs_trained_again(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    """The results are lost between two publishes; a run folder that no plan knows is there."""
    runs, again = project.results / "runs" / "springs", project.results / "verification" / "runs"
    again.mkdir(parents=True)
    stray = project.run("lieconv").with_name("seed-9")
    shutil.copytree(project.run("lieconv", seed=1), stray)
    edit(stray / "result.json", status="odd")
    shutil.move(runs / "lieconv-t2", project.root)
    publish(project.results)
    shutil.move(runs / "lietransformer-t2", again / "springs" / "lietransformer-t2")
    (project.root / "lieconv-t2").rename(runs / "lieconv-t2")
    shutil.rmtree(stray)
    retrained = next(again.rglob("seed-1/metrics.jsonl"))
    whole = retrained.read_text()
    retrained.write_text(whole.replace("train/loss", "train/other"))
    assert cli.main(["publish"]) == 0
    shown = capsys.readouterr().out
    assert "added trajectories/n10-seed-0.h5" in shown
    assert 'verify "springs/LieTransformer-T2/n10/seed-1" "springs/LieConv-T2/n10/seed-1"' in shown
    pair = find_pair(read_sweep(project.results), 10)
    assert pair is not None
    assert pair.seed == 0
    retrained.write_text(whole)
    assert publish(project.results).others == ["trajectories/n10-seed-1.h5"]
    assert check(project.archive) == []


def test_the_readme_says_what_is_there_and_what_is_not(project: Project) -> None:
    shutil.rmtree(project.run("fully-connected", seed=1))
    publish(project.results)
    text = (project.archive.path / README).read_text()
    assert f"| {FULLY_CONNECTED} | 0 | 2 |" in text
    assert f"{COMMIT}: {RUNS - 1} runs" in text
    assert "Of the 7 runs of the workstation tier 6 are here" in text


def test_unfinished_and_foreign_runs_are_left_out(project: Project) -> None:
    (project.run("lieconv") / "result.json").unlink()
    other = project.run("lietransformer").parent
    shutil.move(other, other.with_name("n10-00000000"))
    done = publish(project.results)
    assert (len(done.unfinished), len(done.foreign)) == (1, 2)
    assert len(done.added) == RUNS - 3


# ---- refusals


def _edit_result(run: Path, **changes: object) -> None:
    edit(run / "result.json", **changes)


def _edit_setting(run: Path, name: str, value: object) -> None:
    stored = json.loads((run / "config.json").read_text())
    edit(run / "config.json", config={**stored["config"], name: value})


def _without(run: Path, *keys: str) -> None:
    content = json.loads((run / "result.json").read_text())
    kept = {key: value for key, value in content.items() if key not in keys}
    (run / "result.json").write_text(json.dumps(kept))


def _edit_test(run: Path) -> None:
    test = json.loads((run / "result.json").read_text())["test"]
    test["best"]["test"]["mse_geometric"] *= 1.01
    _edit_result(run, test=test)


def _take_evaluation(run: Path) -> None:
    """Of the other seed. Files may be shared, so this one is not written to."""
    (run / "evaluation.h5").unlink()
    shutil.copyfile(run.with_name("seed-1") / "evaluation.h5", run / "evaluation.h5")


def _make_folder(run: Path) -> None:
    (run / "metrics.jsonl").unlink()
    (run / "metrics.jsonl").mkdir()


REFUSED: dict[str, tuple[Callable[[Path], object], str]] = {
    "other data": (lambda run: _edit_result(run, dataset_hash="0" * 64), "hash"),
    "edited result": (lambda run: _edit_result(run, hash="0" * 64), "do not agree"),
    "edited settings": (lambda run: edit(run / "config.json", hash="0" * 64), "do not agree"),
    "other protocol": (lambda run: _edit_setting(run, "epochs", 3), "differs in epochs"),
    "other architecture": (
        lambda run: _edit_setting(run, "architecture", {"width": 17}),
        "differs in architecture",
    ),
    "another seed": (lambda run: _edit_setting(run, "seed", 7), "differs in data_seed"),
    "changed code": (lambda run: _edit_result(run, git_commit=f"{COMMIT}-dirty"), "clean commit"),
    "no commit": (lambda run: _edit_result(run, git_commit=None), "clean commit"),
    "absolute path": (lambda run: _edit_setting(run, "data", "/home/me/a.h5"), "absolute path"),
    "cut curve at its end": (
        lambda run: (run / "metrics.jsonl").write_text(
            "".join((run / "metrics.jsonl").read_text().splitlines(keepends=True)[:3])
        ),
        "complete curve",
    ),
    "no test": (lambda run: _edit_result(run, test={}), "not all of its tests"),
    "no evaluation": (lambda run: (run / "evaluation.h5").unlink(), "not all of its tests"),
    "edited test": (_edit_test, "mse_geometric of best/test .* does not follow from"),
    "evaluation of another run": (_take_evaluation, "a run with other settings"),
    "no machine": (
        lambda run: _without(run, "machine", "cpu_seconds"),
        "machine: Field required",
    ),
    "cut curve": (lambda run: (run / "metrics.jsonl").write_text(""), "complete curve"),
    "a missing evaluation": (
        lambda run: (run / "metrics.jsonl").write_text(
            "".join((run / "metrics.jsonl").read_text().splitlines(keepends=True)[3:])
        ),
        "complete curve",
    ),
    "not text": (lambda run: (run / "metrics.jsonl").write_bytes(b"\xff\n"), "JSON objects"),
    "a list": (lambda run: (run / "metrics.jsonl").write_text("[1]\n"), "JSON objects"),
    "no step": (lambda run: (run / "metrics.jsonl").write_text('{"a": 1}\n'), "step and epoch"),
    "a folder": (_make_folder, "is a directory"),
    "another status": (lambda run: _edit_result(run, status="odd"), "status: Input should be"),
    "another model": (lambda run: _edit_result(run, model="LieConv-T2"), "differ in model"),
    "another size": (lambda run: _edit_result(run, n_train=99), "differ in n_train"),
    "no time": (lambda run: _edit_result(run, cpu_seconds=None), "cpu_seconds: Input should"),
    "machine as text": (lambda run: _edit_result(run, machine="x"), "machine: Input should"),
    "tests as a list": (lambda run: _edit_result(run, test=[1]), "test: Input should"),
    "not JSON": (lambda run: (run / "result.json").write_text("{"), "not JSON"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_run_that_does_not_fit_is_refused_and_nothing_is_published(
    project: Project, case: str
) -> None:
    damage, message = REFUSED[case]
    damage(project.run("fully-connected"))
    before = project.contents()
    with pytest.raises(UserError, match=message):
        publish(project.results)
    assert project.contents() == before


def test_a_folder_that_is_not_an_archive_is_refused(project: Project) -> None:
    before = project.contents()
    with pytest.raises(UserError, match="not an archive of published runs"):
        publish(Path("results"), Path("results"))
    assert project.contents() == before


def test_a_run_on_other_data_of_the_same_name_is_refused(project: Project) -> None:
    """Its hashes agree with each other, but not with the dataset of the sweep."""
    run = project.run("fully-connected")
    from lietransformer.training.run_folder import RunFolder  # noqa: PLC0415

    own = RunFolder(run).config().identity_hash("0" * 64)
    edit(run / "config.json", hash=own)
    _edit_result(run, hash=own, dataset_hash="0" * 64)
    with pytest.raises(UserError, match="trained on other data"):
        publish(project.results)
    assert not project.archive.exists


def test_the_dataset_is_read_before_its_hash_is_published(project: Project) -> None:
    file = next(project.results.glob("data/springs*"))
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.unlink()  # it is shared
    file.write_bytes(content)
    with pytest.raises(UserError, match="is not as it was written"):
        publish(project.results)


def test_a_published_run_is_never_replaced(published: Project) -> None:
    _edit_test(published.run("fully-connected"))
    before = published.contents()
    with pytest.raises(UserError, match=r"differs from the published run.*never replaced"):
        publish(published.results)
    assert published.contents() == before


def test_a_damaged_archive_is_not_added_to(published: Project) -> None:
    (
        published.archive.path / published.run("lieconv").relative_to("results") / "result.json"
    ).unlink()
    with pytest.raises(UserError, match=r"damaged.*is missing.*git checkout"):
        publish(published.results)


def test_two_at_a_time_are_refused(project: Project) -> None:
    lock = project.results / ".published.lock"
    with exclusive(lock, "publishes"), pytest.raises(UserError, match="another process publishes"):
        publish(project.results)
    assert len(publish(project.results).added) == RUNS


@pytest.mark.parametrize("step", ["copyfile", "manifest", "readme", "rename", "last rename"])
def test_a_full_disk_leaves_the_archive_as_it_was(
    published: Project, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    archive = published.archive.path
    late = published.run("lieconv").relative_to(published.results).as_posix()
    _unpublish(published, late)
    (archive / README).write_text("of an earlier state")
    before = published.contents()

    def full(*_: Any, **__: Any) -> Any:
        raise OSError(28, "No space left on device")

    if step == "copyfile":
        monkeypatch.setattr(shutil, "copyfile", full)
    elif step == "manifest":
        monkeypatch.setattr(module, "write_json", full)
    elif step == "readme":
        monkeypatch.setattr(readme, "write", full)
    else:
        calls: list[Path] = []
        rename = Path.replace

        def one_fails(self: Path, target: Path) -> Path:
            calls.append(self)
            is_it = len(calls) == 3 if step == "rename" else self.name == README
            return full() if is_it else rename(self, target)

        monkeypatch.setattr(Path, "replace", one_fails)
    with pytest.raises(UserError, match="no space left"):
        publish(published.results)
    monkeypatch.undo()
    os.chdir(published.root)
    assert published.contents() == before
    assert not (archive / late).exists()
    assert not [path for path in archive.parent.iterdir() if path.name.startswith(".published")]
    assert publish(published.results).added == [late]


def _unpublish(project: Project, folder: str) -> None:
    """Make the archive one that never had this run, nor paths of any."""
    archive = project.archive
    manifest, gone = archive.manifest, (folder, "trajectories")
    for name in gone:
        shutil.rmtree(archive.path / name)
    del manifest["runs"][folder]
    manifest["files"] = {k: v for k, v in manifest["files"].items() if not k.startswith(gone)}
    (archive.path / MANIFEST).write_text(json.dumps(manifest))


def test_a_killed_publish_is_repeated(project: Project) -> None:
    """Killed after all files have moved, before the manifest knows them."""
    context = multiprocessing.get_context("fork")
    child = context.Process(target=_publish_and_die, args=(project.results,))
    child.start()
    child.join()
    assert child.exitcode == 9
    assert project.archive.runs == {}
    assert "not in its manifest" in " ".join(read_sweep(project.archive.path).warnings)
    assert any("publish` again" in problem for problem in check(project.archive))
    # Also where the run that was being published is gone.
    shutil.rmtree(project.run("lieconv"))
    assert len(publish(project.results).added) == RUNS - 1
    assert check(project.archive) == []


def _publish_and_die(results: Path) -> None:
    rename = Path.replace

    def or_die(own: Path, target: Path) -> Path:
        is_last = own.name == MANIFEST and own.parent.name != module._FIRST
        return os._exit(9) if is_last else rename(own, target)

    Path.replace = or_die  # type: ignore[method-assign, assignment]
    publish(results)


def test_without_its_manifest_an_archive_is_neither_replaced_nor_forgotten(
    published: Project,
) -> None:
    (published.archive.path / MANIFEST).unlink()
    before = published.contents()
    archive = Archive(published.archive.path)
    refused: tuple[Callable[[], object], ...] = (
        lambda: publish(published.results),
        archive.require_intact,
        lambda: module._plan("workstation").require_intact_archive(),
        lambda: read_sweep(published.results),
        lambda: lietransformer.load_model("constellations/SetTransformer"),
    )
    for act in refused:
        with pytest.raises(UserError, match=r"MANIFEST.json is missing. Restore it with `git ch"):
            act()
    assert any("MANIFEST.json is missing" in problem for problem in check(archive))
    assert published.contents() == before


def test_a_failed_first_publish_leaves_no_folder(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = project.contents()

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    place = project.root / "a" / "b" / "published"
    rename = Path.replace
    monkeypatch.setattr(
        Path, "replace", lambda own, to: full() if own.name == MANIFEST else rename(own, to)
    )
    with pytest.raises(UserError, match="no space left"):
        publish(project.results, place)
    assert project.contents() == before
    assert not (project.root / "a").exists()


def test_new_prices_take_the_place_of_old_ones(
    published: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    prices = published.results / "prices.json"
    content = {"schema_version": 1, "git_commit": COMMIT, "gpu": "a GPU", "hours": {"a": 1}}
    prices.write_text(json.dumps(content))
    publish(published.results)
    old = published.archive.prices
    assert old is not None
    edit(prices, hours={"a": 2})
    before = published.contents()

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(module, "write_json", full)
        with pytest.raises(UserError, match="no space left"):
            publish(published.results)
    assert published.contents() == before
    publish(published.results)
    new = published.archive.prices
    assert new is not None
    assert json.loads(new.read_text())["hours"] == {"a": 2}
    assert not old.exists()
    assert check(published.archive) == []


@pytest.mark.parametrize("text", ["[]", "{", '{"git_commit": null}', '{"settings": {}}'])
def test_a_measurement_that_is_none_is_refused(project: Project, text: str) -> None:
    plan = module._plan("workstation")
    (project.results / plan.measurements["invariance"].name).write_text(text)
    with pytest.raises(UserError, match=r"is not a (measurement|list)"):
        publish(project.results)
    assert not project.archive.exists


# ---- checking


def test_check_finds_a_flipped_bit_in_every_file(published: Project) -> None:
    archive = published.archive
    for name in [*archive.files, README]:
        file = archive.path / name
        content = bytearray(file.read_bytes())
        content[len(content) // 2] ^= 1
        file.write_bytes(bytes(content))
        assert any(name in problem for problem in check(published.archive)), name
        content[len(content) // 2] ^= 1
        file.write_bytes(bytes(content))
    assert check(published.archive) == []


def test_check_finds_missing_truncated_and_unknown_files(published: Project) -> None:
    archive = published.archive
    name = next(name for name in archive.files if name.endswith("metrics.jsonl"))
    file = archive.path / name
    content = file.read_bytes()
    file.write_bytes(content[:-5])
    assert any("bytes instead of" in problem for problem in check(published.archive))
    file.unlink()
    assert any("is missing" in problem for problem in check(published.archive))
    file.write_bytes(content)
    (archive.path / "stray.txt").write_text("x")
    assert any("stray.txt is not in the manifest" in own for own in check(published.archive))


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("runs", 3),
        ("runs", {"a": {"task": "springs"}}),
        ("files", {"a": None}),
        ("files", {"../../a": {"bytes": 1, "sha256": "0"}}),
        ("files", {"/etc/passwd": {"bytes": 1, "sha256": "0"}}),
        ("weights", {"a": {}}),
        ("datasets", {"a": 1}),
        ("sweep", {"runs": 5}),
    ],
)
def test_a_manifest_of_another_form_is_an_error(
    published: Project, place: str, value: object
) -> None:
    edit(published.archive.path / MANIFEST, **{place: value})
    with pytest.raises(UserError, match=rf"not a manifest.*{place}.*git checkout"):
        check(published.archive)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema_version": 99}', "null"])
def test_a_damaged_manifest_is_an_error(published: Project, text: str) -> None:
    (published.archive.path / MANIFEST).write_text(text)
    with pytest.raises(UserError, match=r"MANIFEST.*Restore it with `git checkout"):
        check(published.archive)


@pytest.mark.parametrize("key", ["hash", "git_commit", "dataset"])
def test_a_manifest_that_does_not_fit_the_runs_is_found(published: Project, key: str) -> None:
    file = published.archive.path / MANIFEST
    manifest = json.loads(file.read_text())
    next(iter(manifest["runs"].values()))[key] = "other"
    file.write_text(json.dumps(manifest))
    assert any("is not that of the manifest" in problem for problem in check(published.archive))


def test_the_command(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["publish"]) == 0
    assert f"{RUNS} runs added" in capsys.readouterr().out
    assert cli.main(["publish", "--check"]) == 0
    assert f"{RUNS} runs, all intact" in capsys.readouterr().out
    next(project.archive.path.rglob("metrics.jsonl")).unlink()
    assert cli.main(["publish", "--check"]) == 1
    assert cli.main(["publish", "nowhere"]) == 1
    assert "There is no folder nowhere" in capsys.readouterr().err
