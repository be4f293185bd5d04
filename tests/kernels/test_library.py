"""C code is compiled on first use, kept, and not needed."""

import ctypes
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lietransformer.kernels import SWITCH
from lietransformer.kernels import build as library
from tests.requirements import needs_compiler

SOURCE = "head_mlp.c"
WIDTHS = (("IN", 2), ("HIDDEN", 3), ("OUT", 1))


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(library, "_problems", [])
    monkeypatch.delenv(SWITCH, raising=False)
    library.load.cache_clear()
    yield tmp_path / "lietransformer"
    library.load.cache_clear()


@needs_compiler
def test_code_is_compiled_once(empty_cache: Path) -> None:
    assert library.load(SOURCE, WIDTHS) is not None
    (compiled,) = empty_cache.iterdir()
    written = compiled.stat().st_mtime_ns
    library.load.cache_clear()
    assert library.load(SOURCE, WIDTHS) is not None
    assert [path.stat().st_mtime_ns for path in empty_cache.iterdir()] == [written]


@needs_compiler
def test_each_set_of_definitions_is_code_of_its_own(empty_cache: Path) -> None:
    library.load(SOURCE, WIDTHS)
    library.load(SOURCE, (("IN", 3), *WIDTHS[1:]))
    assert len(list(empty_cache.iterdir())) == 2


@needs_compiler
def test_a_damaged_file_is_replaced(empty_cache: Path) -> None:
    library.load(SOURCE, WIDTHS)
    (compiled,) = empty_cache.iterdir()
    # A new file: the one that is loaded into this process must not change under it.
    compiled.unlink()
    compiled.write_bytes(b"half a library")
    library.load.cache_clear()
    assert isinstance(library.load(SOURCE, WIDTHS), ctypes.CDLL)


@needs_compiler
def test_many_processes_compile_at_once(empty_cache: Path) -> None:
    program = (
        "from lietransformer.kernels import build as library\n"
        f"assert library.load({SOURCE!r}, {WIDTHS!r}) is not None"
    )
    processes = [subprocess.Popen([sys.executable, "-c", program]) for _ in range(4)]
    assert [process.wait() for process in processes] == [0, 0, 0, 0]
    assert [path.suffix for path in empty_cache.iterdir()] == [".so"]


@needs_compiler
def test_code_that_does_not_compile_is_done_without_and_that_is_said_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    for width in (-1, -2):
        assert library.load(SOURCE, (("IN", width), *WIDTHS[1:])) is None
    (record,) = caplog.records
    assert "without C code" in record.getMessage()
    assert Path(SOURCE).stem in record.getMessage()  # where, as the compiler said


def test_without_a_compiler_there_is_no_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    assert not library.find_compiler()
    assert not library.is_possible()
    assert library.load(SOURCE, WIDTHS) is None


@pytest.fixture
def no_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache that cannot be written; returns the folder that stands in for it."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    return tmp_path / f"lietransformer-{os.getuid()}"


@needs_compiler
def test_without_a_cache_code_is_kept_in_a_temporary_folder_of_the_user(
    no_cache: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(2):
        library.load.cache_clear()
        assert library.load(SOURCE, WIDTHS) is not None
    assert [path.suffix for path in no_cache.iterdir()] == [".so"]
    assert stat.S_IMODE(no_cache.stat().st_mode) == 0o700
    assert not caplog.records


def _open_to_others(folder: Path) -> None:
    folder.mkdir()
    folder.chmod(0o777)


def _a_link(folder: Path) -> None:
    target = folder.with_name("target")
    target.mkdir(mode=0o700)
    folder.symlink_to(target)


@needs_compiler
@pytest.mark.parametrize("make", [_open_to_others, _a_link])
def test_a_temporary_folder_that_others_could_write_to_is_not_used(
    make: Callable[[Path], None], no_cache: Path, caplog: pytest.LogCaptureFixture
) -> None:
    make(no_cache)
    assert library.load(SOURCE, WIDTHS) is None
    assert list(no_cache.iterdir()) == []
    assert "is not a folder of this user alone" in caplog.text


@needs_compiler
def test_a_temporary_folder_of_somebody_else_is_not_used(
    no_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_cache.mkdir(mode=0o700)
    other = os.getuid() + 1
    monkeypatch.setattr(os, "getuid", lambda: other)
    no_cache.rename(no_cache.with_name(f"lietransformer-{other}"))
    assert library.load(SOURCE, WIDTHS) is None


def test_it_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SWITCH, "0")
    assert library.load(SOURCE, WIDTHS) is None


@needs_compiler
def test_the_compiler_of_the_environment_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = tmp_path / "my-compiler"
    shutil.copy(Path("/bin/sh").resolve(), mine)  # something that runs, but compiles nothing
    monkeypatch.setenv("CC", str(mine))
    assert library.find_compiler() == [str(mine)]
    assert library.load(SOURCE, WIDTHS) is None


@needs_compiler
def test_a_compiler_with_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    (compiler,) = library.find_compiler()
    monkeypatch.setenv("CC", f"{compiler} -DUNUSED=1")
    assert library.find_compiler() == [compiler, "-DUNUSED=1"]
    assert library.load(SOURCE, WIDTHS) is not None


@needs_compiler
def test_without_a_home_folder_the_temporary_one_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", no_home)
    assert library.load(SOURCE, WIDTHS) is not None
    assert (tmp_path / f"lietransformer-{os.getuid()}").is_dir()
