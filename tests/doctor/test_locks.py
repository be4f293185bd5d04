"""A lock is held while a process lives, whatever else there is."""

import errno
import fcntl
import os
from pathlib import Path

import pytest

from lietransformer.doctor import locks
from lietransformer.doctor.locks import Lock, look_at
from lietransformer.files import complete_or_absent
from tests.doctor.folders import held_by_another_process


def test_a_lock_that_another_process_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "lock"
    with held_by_another_process(path) as process:
        assert look_at(path) in (Lock("held", process), Lock("held"))
        # As from another machine, whose table of locks is not this one.
        monkeypatch.setattr(locks, "_TABLE", tmp_path / "none")
        assert look_at(path) == Lock("held")
    assert path.exists()
    assert look_at(path) == Lock("free")


def test_a_file_that_is_being_written(tmp_path: Path) -> None:
    with complete_or_absent(tmp_path / "file") as part:
        assert look_at(part).state == "held"
        part.write_text("content")
    assert look_at(part) == Lock("free")
    assert (tmp_path / "file").read_text() == "content"


def test_what_is_no_lock_of_ours(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for name in ("pipe", "folder", "link", "none"):
        assert look_at(tmp_path / name) == Lock("free")


def test_file_systems_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    (tmp_path / "lock").touch()
    assert look_at(tmp_path / "lock") == Lock("unknown")


def test_the_holder_is_named_where_it_is_known() -> None:
    assert Lock("held", 4711).by_whom == "process 4711"
    assert Lock("held").by_whom == "another process"
