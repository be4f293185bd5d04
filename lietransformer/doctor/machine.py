"""Packages, hardware, compiler and disk. Imports no torch at the top, to report a broken one."""

import fcntl
import os
import platform
import shutil
import tempfile
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any

import psutil
from packaging.requirements import Requirement

from lietransformer import __version__
from lietransformer.doctor.findings import Finding, Level, listed, size
from lietransformer.kernels import SWITCH, build
from lietransformer.processes import available_cores

_PINS = Path(__file__).parents[2] / "constraints.txt"  # only in a checkout
_EXTRAS = {
    "qm9": "QM9 without downloading its archive",
    "specialists": "SchNet and DimeNet++",
    "workflow": "the workflow (`make reproduce`)",
}
_LITTLE_MEMORY = 2e9  # a run takes 0.5 to 5 GB
_LITTLE_ROOM, _NO_ROOM = 10e9, 1e9  # a run keeps about 30 MB, the largest 1 GB while training


def packages(pins: Path = _PINS) -> Iterator[Finding]:
    """Required and optional packages, and differences from the tested versions."""
    yield Finding("ok", f"Python {platform.python_version()}, lietransformer {__version__}")
    for requirement in map(Requirement, requires("lietransformer") or ()):
        name, marker, found = requirement.name, requirement.marker, _installed(requirement.name)
        extras = [e for e in ("", *_EXTRAS) if marker is None or marker.evaluate({"extra": e})]
        if not extras or (found and requirement.specifier.contains(found, prereleases=True)):
            continue
        what = f"{name}{requirement.specifier} is not installed" + (
            f" but {found}" if found else ""
        )
        remedy = f"run `make setup`, or `pip install '{name}{requirement.specifier}'`"
        if needed_by := _EXTRAS.get(extras[0]):
            yield Finding("note", f"{what}; needed by {needed_by}", remedy)
        else:
            yield Finding("problem", what, remedy)
    if pins.is_file():
        lines = pins.read_text(encoding="utf-8").splitlines()
        tested = dict(line.split("==", 1) for line in lines if "==" in line and line[0] != "#")
        found_here = {name: _installed(name) for name in tested}
        others = [
            f"{name} {found} (tested: {tested[name]})"
            for name, found in found_here.items()
            if found and found.partition("+")[0] != tested[name]  # 2.13.0+cpu is a build of 2.13.0
        ]
        remedy = "run `make setup` if something does not work or numbers have to be comparable"
        yield from listed("warning", f"other versions than in {pins.name}", others, remedy)


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def hardware() -> Iterator[Finding]:
    """Cores, memory, C compiler and GPUs."""
    memory = psutil.virtual_memory()
    room = f"{size(memory.available)} of {size(memory.total)} memory available"
    what = f"{platform.system()} {platform.machine()}, {available_cores()} cores, {room}"
    if memory.available < _LITTLE_MEMORY:
        yield Finding("warning", what, "end other programs, or use `snakemake --cores 1`")
    else:
        yield Finding("ok", what)
    yield _compiler()
    yield gpus(import_module("torch"))


def _compiler() -> Finding:
    slower = "models run in PyTorch alone, which is slower on a CPU"
    if os.environ.get(SWITCH) == "0":
        return Finding("note", f"{SWITCH}=0: {slower}", f"unset {SWITCH} to use C")
    compiler = " ".join(build.find_compiler())
    complaint = build.complaint() if compiler else "none found"
    if complaint is None:
        return Finding("ok", f"C compiler {compiler}")
    remedy = "install gcc, or clang with OpenMP, or set CC"
    return Finding("warning", f"C compiler {compiler} ({complaint}): {slower}", remedy)


def gpus(torch: Any) -> Finding:
    """The GPUs that torch finds, if any."""
    what = f"torch {torch.__version__}"
    if torch.cuda.is_available():
        names = map(torch.cuda.get_device_name, range(torch.cuda.device_count()))
        return Finding("ok", f"{what} with {', '.join(names)}")
    if shutil.which("nvidia-smi") is None:
        return Finding("ok", f"{what}, no GPU")
    remedy = "check `nvidia-smi`, CUDA_VISIBLE_DEVICES and torch's CUDA version (envs/cuda.yaml)"
    return Finding("warning", f"{what} finds no GPU, although nvidia-smi is installed", remedy)


def storage(results: Path) -> Iterator[Finding]:
    """Free space, and the right to write and lock files in the results folder."""
    if not results.is_dir():
        what = f"there is no folder {results}"
        yield Finding("warning", what, "run `snakemake`, which creates it, or give another folder")
    place = next(path for path in (results, *results.absolute().parents) if path.is_dir())
    free = shutil.disk_usage(place).free
    level: Level = "problem" if free < _NO_ROOM else "warning" if free < _LITTLE_ROOM else "ok"
    remedy = None if level == "ok" else "remove leftovers (below), or put the results elsewhere"
    yield Finding(level, f"{size(free)} free in {place}", remedy)
    try:
        with tempfile.TemporaryFile(dir=place) as file:
            file.write(b"anything")
            file.flush()
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        what = f"cannot write and lock files in {place} ({error.strerror})"
        yield Finding("problem", what, "check permissions, quota and mount options")
    else:
        yield Finding("ok", f"files can be written and locked in {place}")
