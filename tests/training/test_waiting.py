"""`lietransformer train --wait` and `--summary`: what a workflow needs."""

import json
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from lietransformer.cli import main
from lietransformer.errors import UserError
from lietransformer.files import exclusive
from lietransformer.interruption import Interrupted, Interruption
from lietransformer.training.loop import Run
from lietransformer.training.run_folder import RunFolder
from tests.training.runs import command, numbers, tiny

COMMAND = Path(sys.executable).with_name("lietransformer")


class _Signalled(Interruption):
    """Sets off an event when it is first looked at, and a signal after some more looks."""

    def __init__(self, looks: int = 10**9) -> None:
        super().__init__()
        self.has_been_looked_at = threading.Event()
        self._left = looks

    def check(self) -> None:
        self.has_been_looked_at.set()
        self._left -= 1
        if self._left < 0:
            self.signal = signal.SIGTERM
        super().check()


def test_a_second_process_waits_and_finds_the_run_done(tmp_path: Path, springs_file: Path) -> None:
    config, folder = tiny(springs_file), RunFolder(tmp_path / "run")
    interruption = _Signalled()
    second = threading.Thread(
        target=Run(config, folder, wait=True, interruption=interruption).execute
    )
    with exclusive(folder.state_folder / "lock", "trains"):
        second.start()
        assert interruption.has_been_looked_at.wait(timeout=60)  # it waits
        assert not folder.path.exists()
    second.join()
    result = folder.result()
    assert result["sessions"] == 1
    # It is done: one more process that waits has nothing to do.
    assert Run(config, folder, wait=True).execute() == result


def test_a_process_that_waits_can_be_stopped(tmp_path: Path, springs_file: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    run = Run(tiny(springs_file), folder, wait=True, interruption=_Signalled(looks=1))
    with exclusive(folder.state_folder / "lock", "trains"), pytest.raises(Interrupted):
        run.execute()
    assert not folder.path.exists()


@pytest.mark.slow
def test_two_commands_at_once_train_once(tmp_path: Path, springs_file: Path) -> None:
    arguments = command(springs_file, tmp_path / "run", "--wait", epochs=200)
    both = [
        subprocess.Popen([COMMAND, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        for _ in range(2)
    ]
    for process in both:
        process.communicate()
    assert [process.returncode for process in both] == [0, 0]
    assert RunFolder(tmp_path / "run").result()["sessions"] == 1


def test_the_summary_has_the_results_of_all_seeds(tmp_path: Path, springs_file: Path) -> None:
    summary = tmp_path / "runs" / "seeds-0-1.json"
    arguments = command(springs_file, tmp_path / "runs", "--summary", str(summary), seeds=[0, 1])
    assert main(arguments) == 0
    results = json.loads(summary.read_text())
    assert results == [RunFolder(tmp_path / "runs" / f"seed-{n}").result() for n in (0, 1)]
    before = numbers(tmp_path / "runs" / "seed-0")
    # Made again from the finished runs, and without training them again.
    summary.unlink()
    assert main(arguments) == 0
    assert json.loads(summary.read_text()) == results
    assert numbers(tmp_path / "runs" / "seed-0") == before


def test_no_summary_of_seeds_that_are_not_done(tmp_path: Path, springs_file: Path) -> None:
    summary = tmp_path / "summary.json"
    run = Run(tiny(springs_file), RunFolder(tmp_path / "runs" / "seed-1"))
    arguments = command(springs_file, tmp_path / "runs", "--summary", str(summary), seeds=[0, 1])
    with exclusive(run.folder.state_folder / "lock", "trains"):
        assert main(arguments) == 1
    assert RunFolder(tmp_path / "runs" / "seed-0").is_done
    assert not summary.exists()


def test_a_summary_that_cannot_be_written_is_refused_before_training(
    tmp_path: Path, springs_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(command(springs_file, tmp_path / "run", "--summary", str(tmp_path))) == 1
    assert "Add the name of a file" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_locks_that_are_waited_for(tmp_path: Path) -> None:
    tries: list[int] = []

    def wait() -> None:
        tries.append(1)
        if len(tries) == 3:
            raise UserError("enough")

    with (
        exclusive(tmp_path / "lock", "works"),
        pytest.raises(UserError, match="enough"),
        exclusive(tmp_path / "lock", "works", wait=wait),
    ):
        pass
    with exclusive(tmp_path / "lock", "works", wait=wait):
        assert len(tries) == 3
