"""Versions, hardware, tools and the place of the results: each can be well, and each can fail."""

import dataclasses
import errno
import fcntl
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

import pytest

from lietransformer.dispatch import SWITCH
from lietransformer.doctor import hardware, storage, tools, versions
from lietransformer.doctor.hardware import Gpus, judge_gpus, judge_memory
from tests.doctor.folders import levels, the
from tests.requirements import needs_compiler

# ---- versions


def test_versions_beside_the_pins(tmp_path: Path) -> None:
    pins = tmp_path / "constraints.txt"
    pins.write_text(f"# a comment with ==\nnumpy=={version('numpy')}\nnot-installed==1.0\n")
    assert levels(versions.check(pins)) == ["ok", "ok"]
    pins.write_text(f"numpy==0.1\nh5py=={version('h5py')}\n")
    found = the("warning", versions.check(pins))
    assert f"1 package of other versions than in constraints.txt: numpy {version('numpy')}" in (
        found.what
    )
    assert "make setup" in str(found.remedy)


def test_a_build_is_not_another_version(tmp_path: Path) -> None:
    pins = tmp_path / "constraints.txt"
    pins.write_text(f"torch=={version('torch').partition('+')[0]}\n")
    assert levels(versions.check(pins)) == ["ok", "ok"]


def test_without_a_checkout_versions_are_listed(tmp_path: Path) -> None:
    *_, listed = versions.check(tmp_path / "constraints.txt")
    assert f"numpy {version('numpy')}" in listed.what


def test_packages_that_are_missing_or_too_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        versions, "requires", lambda _: ["unheard-of>=2", "numpy>=999", "x>1; extra == 'dev'"]
    )
    found = the("problem", versions.check(tmp_path / "none"))
    assert found.items == (
        "unheard-of>=2 is not installed",
        f"numpy>=999 is needed, {version('numpy')} installed",
    )


# ---- hardware


def test_this_machine() -> None:
    assert len(list(hardware.check())) == 3
    assert judge_memory(8 * 10**9, 16 * 10**9).level == "ok"
    assert judge_memory(10**9, 16 * 10**9).level == "warning"


NO_GPU = Gpus(
    torch="2.13.0",
    platform=None,
    names=(),
    has_driver=False,
    are_hidden=False,
    complaint=None,
)


@pytest.mark.parametrize(
    ("changes", "level", "text"),
    [
        ({}, "ok", "no driver"),
        ({"platform": "CUDA 13.0", "names": ("A100 (40.0 GB)",)}, "ok", "CUDA 13.0: A100 (40.0"),
        (
            {"platform": "CUDA 13.0", "names": ("K80",), "complaint": "too old"},
            "warning",
            "it says: too old",
        ),
        ({"has_driver": True}, "warning", "CPUs only, but this machine has the driver of a GPU"),
        ({"has_driver": True, "are_hidden": True}, "note", "CUDA_VISIBLE_DEVICES hides"),
        (
            {"has_driver": True, "platform": "CUDA 13.0", "complaint": "driver too old"},
            "warning",
            "has the driver of one: driver too old",
        ),
    ],
)
def test_gpus(changes: dict[str, object], level: str, text: str) -> None:
    found = judge_gpus(dataclasses.replace(NO_GPU, **changes))  # type: ignore[arg-type]
    assert found.level == level
    assert text in found.what
    assert (found.remedy is None) == (level == "ok")


def test_hidden_gpus_are_seen_to_be_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert hardware.find_gpus().are_hidden
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    assert not hardware.find_gpus().are_hidden


# ---- tools


@needs_compiler
def test_the_compiler_that_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SWITCH, raising=False)
    assert next(tools.check()).level == "ok"


def test_compilers_of_no_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SWITCH, raising=False)
    monkeypatch.setenv("CC", str(tmp_path / "none"))
    assert "no C compiler" in next(tools.check()).what
    broken = tmp_path / "cc"
    broken.write_text("#!/bin/sh\necho no OpenMP here >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("CC", str(broken))
    found = next(tools.check())
    assert (found.level, "is of no use (no OpenMP here)" in found.what) == ("warning", True)
    broken.write_text("#!/bin/sh\nexit 3\n")
    assert "is of no use (exit code 3)" in next(tools.check()).what
    monkeypatch.setenv(SWITCH, "0")
    assert next(tools.check()).level == "note"


def test_commands_beside_python(tmp_path: Path) -> None:
    assert levels(tools.commands(Path(sys.executable).parent)) == ["ok", "ok"]
    assert levels(tools.commands(tmp_path)) == ["warning", "warning"]


def test_optional_packages() -> None:
    wanted = {"numpy": ("a needs it", "b"), "unheard_of": ("c needs it", "pip install d")}
    there, missing = tools.extras(wanted)
    assert there.level == "ok"
    assert missing.what == "unheard_of is not installed; c needs it"
    assert (missing.level, missing.remedy) == ("note", "pip install d")


# ---- storage


def test_a_place_to_write(tmp_path: Path) -> None:
    assert storage.try_to_write(tmp_path).level == "ok"
    assert list(tmp_path.iterdir()) == [tmp_path / "elsewhere"]


def test_room(tmp_path: Path) -> None:
    rooms = [10**11, 5 * 10**9, 5 * 10**8]
    found = [storage.judge_room(tmp_path, room).level for room in rooms]
    assert found == ["ok", "warning", "problem"]
    assert levels(storage.judge_number_of_files(10**6)) == []
    assert levels(storage.judge_number_of_files(10)) == ["warning"]


def test_a_place_that_cannot_be_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**_: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    found = storage.try_to_write(tmp_path)
    assert (found.level, "(Read-only file system)" in found.what) == ("problem", True)


def test_places_where_locks_do_not_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    found = storage.try_to_write(tmp_path)
    assert (found.level, "(No locks available)" in found.what) == ("warning", True)
    monkeypatch.setattr(fcntl, "flock", lambda *_: None)
    found = storage.try_to_write(tmp_path)
    assert (found.level, found.what) == ("warning", "file locks keep nobody out")


@pytest.mark.parametrize(
    ("kind", "options", "expected"),
    [
        ("ext4", "rw,relatime", []),
        ("nfs4", "rw,vers=4.2,local_lock=none", ["note"]),
        ("nfs", "rw,vers=3,nolock,local_lock=all", ["warning"]),
        ("lustre", "rw,localflock", ["warning"]),
        ("lustre", "rw,flock", ["note"]),
    ],
)
def test_network_file_systems(kind: str, options: str, expected: list[str]) -> None:
    assert levels(storage.judge_mount(kind, options)) == expected


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    missing = tmp_path / "not" / "there"
    found = list(storage.check(missing))
    assert found[0].what == f"there is no folder {missing}"
    assert found[0].level == "warning"
    assert not missing.parent.exists()
    (tmp_path / "file").write_text("")
    assert next(storage.check(tmp_path / "file")).level == "problem"
