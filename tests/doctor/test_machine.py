"""Packages, hardware and disk: each can be fine, and each can fail."""

import shutil
import tempfile
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from lietransformer.doctor import machine
from lietransformer.kernels import SWITCH
from tests.doctor.folders import levels
from tests.requirements import needs_compiler


def test_requirements(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = ["numpy>=2", "numpy>=999", "absent>=2", "lost; extra == 'qm9'", "x; extra == 'dev'"]
    monkeypatch.setattr(machine, "requires", lambda _: wanted)
    _, old, absent, optional = machine.packages(tmp_path / "none")
    assert old.what == f"numpy>=999 is not installed but {version('numpy')}"
    assert absent.what == "absent>=2 is not installed"
    assert absent.remedy == "run `make setup`, or `pip install 'absent>=2'`"
    assert levels([old, absent, optional]) == ["problem", "problem", "note"]
    assert optional.what == "lost is not installed; needed by QM9 without downloading its archive"


def test_tested_versions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "requires", lambda _: None)
    pins, torch = tmp_path / "constraints.txt", version("torch").partition("+")[0]
    pins.write_text(f"# a comment with ==\ntorch=={torch}\nnot-installed==1.0\n")
    assert levels(machine.packages(pins)) == ["ok"]
    pins.write_text(f"numpy==0.1\ntorch=={torch}\n")
    *_, found = machine.packages(pins)
    assert found.items == (f"numpy {version('numpy')} (tested: 0.1)",)


@needs_compiler
def test_hardware(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SWITCH, raising=False)
    memory = SimpleNamespace(available=8 * 10**9, total=16 * 10**9)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: memory)
    cores, compiler, _ = machine.hardware()
    assert levels([cores, compiler]) == ["ok", "ok"]
    assert "8.0 GB of 16.0 GB memory available" in cores.what
    memory.available = 10**9
    assert next(machine.hardware()).level == "warning"


def test_compilers_that_do_not_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SWITCH, raising=False)
    monkeypatch.setenv("CC", str(tmp_path / "cc"))
    assert "(none found)" in list(machine.hardware())[1].what
    (tmp_path / "cc").write_text("#!/bin/sh\necho no OpenMP here >&2\nexit 1\n")
    (tmp_path / "cc").chmod(0o755)
    found = list(machine.hardware())[1]
    assert (found.level, "(no OpenMP here)" in found.what) == ("warning", True)
    monkeypatch.setenv(SWITCH, "0")
    assert list(machine.hardware())[1].level == "note"


def test_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["A100", "H100"]
    cuda = SimpleNamespace(
        is_available=lambda: bool(names),
        device_count=lambda: len(names),
        get_device_name=names.__getitem__,
    )
    torch = SimpleNamespace(__version__="2", cuda=cuda)
    assert machine.gpus(torch).what == "torch 2 with A100, H100"
    names.clear()
    for driver, level in ((None, "ok"), ("/bin/nvidia-smi", "warning")):
        monkeypatch.setattr(shutil, "which", lambda _, found=driver: found)
        assert machine.gpus(torch).level == level


def test_storage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = SimpleNamespace(free=10**11)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    assert levels(machine.storage(tmp_path)) == ["ok", "ok"]
    assert levels(machine.storage(tmp_path / "not" / "there")) == ["warning", "ok", "ok"]
    for usage.free, level in ((5 * 10**9, "warning"), (5 * 10**8, "problem")):
        assert next(machine.storage(tmp_path)).level == level
    assert list(tmp_path.iterdir()) == []

    def refuse(**_: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    *_, found = machine.storage(tmp_path)
    assert (found.level, "(Read-only file system)" in found.what) == ("problem", True)
