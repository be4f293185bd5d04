"""A run that is stopped, in whatever way, ends with the numbers of one that was not."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from lietransformer.errors import UserError
from lietransformer.experiments.springs.task import SpringsTask
from lietransformer.files import exclusive
from lietransformer.interruption import RESUME_EXIT_CODE, Interrupted, Interruption
from lietransformer.training import loop
from lietransformer.training.checkpoint import CheckpointFile
from lietransformer.training.config import RunConfig
from lietransformer.training.experiment import Experiment
from lietransformer.training.loop import Run
from lietransformer.training.run_folder import RunFolder, load
from tests.training.runs import After, command, constellations, numbers, tiny

COMMAND = Path(sys.executable).with_name("lietransformer")


def run(config: RunConfig, path: Path, **options: Any) -> Run:
    return Run(config, RunFolder(path), **options)


@pytest.fixture(scope="module")
def undisturbed(springs_file: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    path = tmp_path_factory.mktemp("undisturbed") / "run"
    run(tiny(springs_file), path).execute()
    return numbers(path)


def _without_asking(roll_out: Callable[..., Any]) -> Callable[..., Any]:
    def roll_out_in_one_go(*given: Any, **options: Any) -> Any:
        options.pop("between_steps", None)
        return roll_out(*given, **options)

    return roll_out_in_one_go


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"learning_rate": 1e18, "schedule": "constant", "epochs": 2},
        {"learning_rate": 1e-30, "patience": 1, "evaluations": 4},
        {
            # A potential: its last bias has no gradient, and so no state in the optimiser.
            "model": "Fully-connected (Hamiltonian)",
            "ema": 0.9,
            "amsgrad": True,
            "schedule": "exponential",
            "final_rate": 0.1,
        },
    ],
    ids=["ordinary", "diverging", "out of patience", "averaged"],
)
def test_stopped_at_every_place(
    tmp_path: Path,
    springs_file: Path,
    changes: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Before each step, and before each batch of each evaluation and test."""
    # Not at the steps in time within a batch: they are many, and all alike.
    monkeypatch.setattr(SpringsTask, "roll_out", _without_asking(SpringsTask.roll_out))
    config = tiny(springs_file, **changes)
    run(config, tmp_path / "undisturbed").execute()
    undisturbed = numbers(tmp_path / "undisturbed")
    looks = 0
    while True:
        path = tmp_path / str(looks)
        try:
            run(config, path, interruption=After(looks)).execute()
        except Interrupted:
            assert not RunFolder(path).is_done
            result = run(config, path).execute()
            assert result["sessions"] == 2
            assert numbers(path) == undisturbed, looks
            looks += 1
        else:
            break
    # Before every step, evaluation and test; weights that are equal are tested once.
    steps, records = undisturbed["result"]["steps"], len(undisturbed["records"])
    assert looks >= steps + records + 2


def test_a_finished_test_is_not_done_again(
    tmp_path: Path,
    springs_file: Path,
    undisturbed: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    test, done = Experiment.test, []
    interruption = Interruption()

    def stop_after_one(self: Experiment, name: str) -> Any:
        evaluation = test(self, name)
        done.append(name)
        if len(done) == 1:
            interruption.signal = signal.SIGTERM
        return evaluation

    monkeypatch.setattr(Experiment, "test", stop_after_one)
    with pytest.raises(Interrupted):
        run(tiny(springs_file), tmp_path / "run", interruption=interruption).execute()
    result = run(tiny(springs_file), tmp_path / "run").execute()
    assert done == ["test", "test_long"]  # of the final weights, which are the best ones
    assert numbers(tmp_path / "run") == undisturbed
    assert result["seconds"]["test"] > 0


def test_stopped_again_and_again(
    tmp_path: Path, springs_file: Path, undisturbed: dict[str, Any]
) -> None:
    sessions = 0
    while not RunFolder(tmp_path / "run").is_done:
        sessions += 1
        try:
            # Enough to come to the end of the longest test: less would lead nowhere.
            run(tiny(springs_file), tmp_path / "run", interruption=After(12)).execute()
        except Interrupted:
            continue
    assert sessions > 4
    assert numbers(tmp_path / "run") == undisturbed


def test_random_models_and_augmentation_go_on_where_they_were(
    tmp_path: Path, constellations_file: Path
) -> None:
    config = constellations(
        constellations_file,
        augmentation="SE2",
        n_train=48,
        epochs=3,
    )
    run(config, tmp_path / "whole").execute()
    with pytest.raises(Interrupted):
        run(config, tmp_path / "parts", interruption=After(4)).execute()
    run(config, tmp_path / "parts").execute()
    for name in ("metrics.jsonl", "model.pt"):
        assert (tmp_path / "whole" / name).exists()
    whole, parts = (load(tmp_path / name / "model.pt") for name in ("whole", "parts"))
    for which in ("best", "final"):
        for name, tensor in whole[which].items():
            assert torch.equal(tensor, parts[which][name])


def test_what_an_explosion_is_compared_with_is_in_the_checkpoint(
    tmp_path: Path, springs_file: Path
) -> None:
    changes = {"learning_rate": 10, "n_train": 5, "epochs": 9, "evaluations": 1}
    config = tiny(springs_file, schedule="constant", **changes)
    with pytest.raises(Interrupted):
        run(config, tmp_path / "run", interruption=After(1)).execute()
    diverged = run(config, tmp_path / "run").execute()["diverged"]
    assert diverged["step"] == 1
    assert "1e+06 times the first one" in diverged["what"]


def test_outputs_that_a_workflow_system_removed(
    tmp_path: Path, springs_file: Path, undisturbed: dict[str, Any]
) -> None:
    """The curves are in the checkpoint, too."""
    with pytest.raises(Interrupted):
        run(tiny(springs_file), tmp_path / "run", interruption=After(9)).execute()
    for path in (tmp_path / "run").iterdir():
        path.unlink()
    (tmp_path / "run").rmdir()
    run(tiny(springs_file), tmp_path / "run").execute()
    assert numbers(tmp_path / "run") == undisturbed


def _wait_for_lines(path: Path, count: int, process: "subprocess.Popen[str]") -> None:
    while not path.exists() or len(path.read_text().splitlines()) < count:
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)


# Long enough for a signal to find it at work.
LONG = {"epochs": 60, "evaluations": 30}


@pytest.fixture(scope="module")
def undisturbed_long(
    springs_file: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Any]:
    path = tmp_path_factory.mktemp("undisturbed") / "run"
    run(tiny(springs_file, **LONG), path).execute()
    return numbers(path)


@pytest.mark.slow
@pytest.mark.parametrize(("lines", "every"), [(1, "0"), (7, "0"), (3, "60")])
def test_killed(
    tmp_path: Path, springs_file: Path, undisturbed_long: dict[str, Any], lines: int, every: str
) -> None:
    """kill -9, with checkpoints after every step and with none at all."""
    arguments = command(springs_file, tmp_path / "run", "--checkpoint-every", every, **LONG)
    process = subprocess.Popen([COMMAND, *arguments], stderr=subprocess.PIPE, text=True)
    _wait_for_lines(tmp_path / "run" / "metrics.jsonl", lines, process)
    process.kill()
    process.communicate()
    assert not RunFolder(tmp_path / "run").is_done
    subprocess.run([COMMAND, *arguments], check=True, capture_output=True)
    assert numbers(tmp_path / "run") == undisturbed_long
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_asked_to_stop(
    tmp_path: Path, springs_file: Path, undisturbed_long: dict[str, Any], number: signal.Signals
) -> None:
    arguments = command(springs_file, tmp_path / "run", **LONG)
    process = subprocess.Popen([COMMAND, *arguments], stdout=subprocess.PIPE, text=True)
    _wait_for_lines(tmp_path / "run" / "metrics.jsonl", 3, process)
    process.send_signal(number)
    out, _ = process.communicate()
    assert process.returncode == RESUME_EXIT_CODE == 75
    assert f"stopped by {number.name}; the same command resumes from here" in out
    again = subprocess.run([COMMAND, *arguments], check=True, capture_output=True, text=True)
    assert "resuming after step" in again.stderr
    assert numbers(tmp_path / "run") == undisturbed_long


# A limit on the size of files fails in the same place as a full disk, for every user.
LIMITED = """
import resource, sys
from lietransformer.cli import main
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2)
sys.exit(main(sys.argv[2:]))
"""


@pytest.mark.slow
def test_full_disk_while_checkpointing(
    tmp_path: Path, springs_file: Path, undisturbed_long: dict[str, Any]
) -> None:
    """Training goes on without; what cannot do without space says so, and nothing is lost."""
    arguments = command(springs_file, tmp_path / "run", "--checkpoint-every", "0", **LONG)
    limited = [sys.executable, "-c", LIMITED, "6000", *arguments]
    result = subprocess.run(limited, capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert "no checkpoint was written: cannot write" in result.stderr
    assert "file too large" in result.stderr
    assert "Traceback" not in result.stderr
    assert not RunFolder(tmp_path / "run").is_done
    subprocess.run([COMMAND, *arguments], check=True, capture_output=True)
    assert numbers(tmp_path / "run") == undisturbed_long


def test_a_checkpoint_that_cannot_be_written_leaves_the_old_one(
    tmp_path: Path,
    springs_file: Path,
    undisturbed: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write, calls = CheckpointFile.write, []

    def fails_sometimes(self: CheckpointFile, checkpoint: Any) -> None:
        calls.append(checkpoint.progress.step)
        if len(calls) > 3:
            raise UserError("no space")
        write(self, checkpoint)

    monkeypatch.setattr(CheckpointFile, "write", fails_sometimes)
    with pytest.raises(Interrupted):
        run(
            tiny(springs_file),
            tmp_path / "run",
            interruption=After(24),
            seconds_between_checkpoints=0.0,
        ).execute()
    monkeypatch.undo()
    assert len(calls) > 4
    run(tiny(springs_file), tmp_path / "run").execute()
    assert numbers(tmp_path / "run") == undisturbed


def test_a_second_process_is_refused(tmp_path: Path, springs_file: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    with (
        exclusive(folder.state_folder / "lock", "trains"),
        pytest.raises(UserError, match=r"another process runs in .*run now"),
    ):
        run(tiny(springs_file), folder.path).execute()
    assert not folder.path.exists()
    run(tiny(springs_file), folder.path).execute()


@pytest.mark.slow
def test_two_processes_on_one_folder(tmp_path: Path, springs_file: Path) -> None:
    arguments = command(springs_file, tmp_path / "run", **LONG)
    first = subprocess.Popen([COMMAND, *arguments], stderr=subprocess.PIPE, text=True)
    _wait_for_lines(tmp_path / "run" / "metrics.jsonl", 1, first)
    os.kill(first.pid, signal.SIGSTOP)
    second = subprocess.run([COMMAND, *arguments], capture_output=True, text=True, check=False)
    os.kill(first.pid, signal.SIGCONT)
    first.communicate()
    assert second.returncode == 1
    assert "another process runs in" in second.stderr
    assert first.returncode == 0


def test_settings_that_changed_are_refused(tmp_path: Path, springs_file: Path) -> None:
    with pytest.raises(Interrupted):
        run(tiny(springs_file), tmp_path / "run", interruption=After(4)).execute()
    with pytest.raises(UserError, match=r"seed: 0 there, 3 here.*--force"):
        run(tiny(springs_file, seed=3), tmp_path / "run").execute()
    run(tiny(springs_file), tmp_path / "run").execute()
    with pytest.raises(UserError, match="epochs: 4 there, 5 here"):
        run(tiny(springs_file, epochs=5), tmp_path / "run").execute()


def test_a_checkpoint_of_another_run_is_refused(tmp_path: Path, springs_file: Path) -> None:
    with pytest.raises(Interrupted):
        run(tiny(springs_file), tmp_path / "run", interruption=After(4)).execute()
    (path,) = (tmp_path / ".resume" / "run").glob("*.pt")
    content = load(path)
    torch.save({**content, "hash": "f" * 64}, path)
    with pytest.raises(UserError, match="is of other settings or data"):
        run(tiny(springs_file), tmp_path / "run").execute()
    for name in ("progress", "tests"):
        torch.save({key: value for key, value in content.items() if key != name}, path)
        with pytest.raises(UserError, match="is of another version"):
            run(tiny(springs_file), tmp_path / "run").execute()
    torch.save({**content, "progress": {**content["progress"], "mood": "good"}}, path)
    with pytest.raises(UserError, match="is of another version"):
        run(tiny(springs_file), tmp_path / "run").execute()
    path.write_bytes(b"rubbish")
    with pytest.raises(UserError, match=r"cannot read .*Error\)"):
        run(tiny(springs_file), tmp_path / "run").execute()


def test_a_result_of_other_settings_is_not_taken_for_ones_own(
    tmp_path: Path, springs_file: Path
) -> None:
    run(tiny(springs_file), tmp_path / "run").execute()
    (tmp_path / "run" / "config.json").unlink()
    with pytest.raises(UserError, match="holds the result of a run of other settings"):
        run(tiny(springs_file, seed=9), tmp_path / "run").execute()


def test_starting_over_does_not_disturb_a_run_that_goes_on(
    tmp_path: Path, springs_file: Path
) -> None:
    folder = RunFolder(tmp_path / "run")
    run(tiny(springs_file), folder.path).execute()
    before = numbers(folder.path)
    with (
        exclusive(folder.state_folder / "lock", "trains"),
        pytest.raises(UserError, match="another process runs in"),
    ):
        run(tiny(springs_file, seed=1), folder.path, start_over=True).execute()
    with pytest.raises(UserError, match="no such file"):
        run(tiny(tmp_path / "none.h5"), folder.path, start_over=True).execute()
    assert numbers(folder.path) == before


def test_starting_over_removes_nothing_but_the_run(tmp_path: Path, springs_file: Path) -> None:
    inside, sibling = tmp_path / "run" / "notes.txt", tmp_path / ".resume" / "other" / "x.pt"
    for path in (inside, sibling):
        path.parent.mkdir(parents=True)
        path.write_text("precious")
    for _ in range(2):
        unusual = tmp_path / "run" / ".." / "run"
        run(tiny(springs_file), unusual, start_over=True).execute()
    assert inside.exists()
    assert sibling.exists()
    assert not (tmp_path / "run" / ".resume").exists()


def test_a_run_that_is_done_is_left_alone(
    tmp_path: Path, springs_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = run(tiny(springs_file), tmp_path / "run").execute()
    monkeypatch.setattr(loop.Run, "_train", lambda _: pytest.fail("trained again"))
    assert run(tiny(springs_file), tmp_path / "run").execute() == result
