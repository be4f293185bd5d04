"""A file is complete or absent, whatever happens to its writer."""

import errno
import fcntl
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lietransformer import files
from lietransformer.errors import UserError
from lietransformer.files import complete_or_absent, require_writable_name


def test_the_file_appears_at_the_end_of_the_block(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "file"
    with complete_or_absent(path) as part:
        part.write_text("content")
        assert not path.exists()
    assert path.read_text() == "content"
    assert list(path.parent.iterdir()) == [path]


def test_an_exception_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with pytest.raises(KeyboardInterrupt):
        _write_half(path, KeyboardInterrupt())
    assert list(tmp_path.iterdir()) == []


def test_an_exception_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(ValueError, match="oops"):
        _write_half(path, ValueError("oops"))
    assert path.read_text() == "old"


def test_a_second_writer_is_refused_and_harms_nothing(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with complete_or_absent(path) as part:
        part.write_text("first")
        with pytest.raises(UserError, match="another process writes"), complete_or_absent(path):
            pass
    assert path.read_text() == "first"


def test_what_a_killed_writer_left_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "file.part").write_text("a long rest of a killed process")
    with complete_or_absent(tmp_path / "file") as part:
        assert part.read_text() == ""
        part.write_text("new")
    assert (tmp_path / "file").read_text() == "new"


# Killed with -9 right before or right after the file gets its name.
PROGRAM = """
import os, signal, sys
from pathlib import Path
from lietransformer import files

def die(*arguments):
    os.kill(os.getpid(), signal.SIGKILL)

if sys.argv[2] == "before":
    os.replace = die
else:
    files._sync_directory = die
with files.complete_or_absent(Path(sys.argv[1])) as part:
    part.write_text("content")
"""


@pytest.mark.parametrize(("moment", "expected"), [("before", None), ("after", "content")])
def test_a_kill_around_the_rename(tmp_path: Path, moment: str, expected: str | None) -> None:
    path = tmp_path / "file"
    result = subprocess.run([sys.executable, "-c", PROGRAM, path, moment], check=False)
    assert result.returncode == -9
    assert (path.read_text() if path.exists() else None) == expected
    with complete_or_absent(path) as part:
        part.write_text("again")
    assert path.read_text() == "again"


def test_a_place_that_cannot_be_written_to(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    below = tmp_path / "file" / "below"
    with pytest.raises(UserError, match="cannot write"), complete_or_absent(below):
        pass


def test_existing_files_are_not_overwritten(tmp_path: Path) -> None:
    require_writable_name(tmp_path / "new", replace=False)
    (tmp_path / "old").write_text("old")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    for path in (tmp_path / "old", tmp_path / "dangling"):
        with pytest.raises(UserError, match="exists already"):
            require_writable_name(path, replace=False)
        require_writable_name(path, replace=True)


def test_a_folder_is_never_replaced(tmp_path: Path) -> None:
    for path in (tmp_path, Path("."), Path("/")):
        for replace in (False, True):
            with pytest.raises(UserError, match="it is a folder"):
                require_writable_name(path, replace=replace)


def test_a_link_in_place_of_the_temporary_file_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("precious")
    (tmp_path / "file.part").symlink_to(tmp_path / "other")
    path = tmp_path / "file"
    with pytest.raises(UserError, match="cannot write"), complete_or_absent(path):
        pass
    assert (tmp_path / "other").read_text() == "precious"


def test_a_temporary_file_that_was_renamed_before_it_was_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its former owner finished in between: what it wrote is complete, and not ours."""
    lock = fcntl.flock

    def finish_first(descriptor: int, operation: int) -> None:
        monkeypatch.setattr(fcntl, "flock", lock)
        (tmp_path / "file.part").write_text("complete")
        (tmp_path / "file.part").rename(tmp_path / "complete")
        lock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", finish_first)
    with complete_or_absent(tmp_path / "file") as part:
        part.write_text("ours")
    assert (tmp_path / "complete").read_text() == "complete"
    assert (tmp_path / "file").read_text() == "ours"


def test_file_systems_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with complete_or_absent(tmp_path / "file") as part:
        part.write_text("content")
    assert (tmp_path / "file").read_text() == "content"


def test_content_reaches_the_disk_before_the_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    for name in ("fsync", "replace"):
        original = getattr(os, name)

        def noted(*arguments: Any, name: str = name, original: Any = original) -> Any:
            calls.append(name)
            return original(*arguments)

        monkeypatch.setattr(os, name, noted)
    with complete_or_absent(tmp_path / "file") as part:
        part.write_text("content")
    assert calls == ["fsync", "replace", "fsync"]


def test_an_interruption_after_the_rename_touches_nobody_elses_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(_: Path) -> None:
        (tmp_path / "file.part").write_text("of another process")
        raise KeyboardInterrupt

    monkeypatch.setattr(files, "_sync_directory", interrupt)
    with pytest.raises(KeyboardInterrupt), complete_or_absent(tmp_path / "file") as part:
        part.write_text("complete")
    assert (tmp_path / "file").read_text() == "complete"
    assert (tmp_path / "file.part").read_text() == "of another process"


def test_no_file_descriptor_is_left_open(tmp_path: Path) -> None:
    def opened() -> int:
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        return sum(_is_open(descriptor) for descriptor in range(min(limit, 4096)))

    before = opened()
    path = tmp_path / "file"
    with complete_or_absent(path), pytest.raises(UserError), complete_or_absent(path):
        pass
    assert opened() == before


def _write_half(path: Path, error: BaseException) -> None:
    with complete_or_absent(path) as part:
        part.write_text("half")
        raise error


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True
