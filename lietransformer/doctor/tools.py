"""Programs and optional packages that some commands need."""

import importlib.util
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from lietransformer.dispatch import SWITCH
from lietransformer.doctor.findings import Finding
from lietransformer.kernels import build as library

# Who needs it, and how to get it.
_COMMANDS = {
    "snakemake": (
        "the workflow (`make reproduce`) needs it",
        "pip install 'lietransformer[workflow]'",
    ),
    "mlflow": ("its web page (`make ui`) needs it", "pip install mlflow"),
}
_EXTRAS = {
    "torch_geometric": (
        "SchNet and DimeNet++ need it",
        "pip install 'lietransformer[specialists]'",
    ),
    "qm9pack": (
        "QM9 without a download of its archive needs it",
        "pip install 'lietransformer[qm9]', or use `--set source=figshare`",
    ),
}


def check() -> Iterator[Finding]:
    """The C compiler, the commands beside this Python, and the optional packages."""
    yield _compiler()
    yield from commands(Path(sys.executable).parent)
    yield from extras()


def _compiler() -> Finding:
    compiler = " ".join(library.find_compiler())
    if os.environ.get(SWITCH) == "0":
        return Finding(
            "note",
            f"{SWITCH}=0: models are computed without C code, more slowly on a CPU",
            f"unset {SWITCH} unless that is meant",
        )
    if not compiler:
        return Finding(
            "warning",
            "no C compiler: models are computed without C code, more slowly on a CPU",
            "install gcc or clang, or name one with the variable CC",
        )
    complaint = library.complaint()
    if complaint is None:
        return Finding("ok", f"the C compiler {compiler} works")
    return Finding(
        "warning",
        f"the C compiler {compiler} is of no use ({complaint}): models are computed without C "
        "code, more slowly on a CPU",
        "install gcc, or clang with OpenMP, or name one with the variable CC",
    )


def commands(beside: Path) -> Iterator[Finding]:
    """The programs that have to be in the folder of this Python."""
    for name, (need, remedy) in _COMMANDS.items():
        if os.access(beside / name, os.X_OK):
            yield Finding("ok", f"the command {name} is there")
        else:
            yield Finding("warning", f"there is no {name} in {beside}; {need}", remedy)


def extras(names: Mapping[str, tuple[str, str]] = _EXTRAS) -> Iterator[Finding]:
    """Packages that are not needed by all."""
    for name, (need, remedy) in names.items():
        # Found without importing it, which takes long, and in the case of qm9pack fails.
        if importlib.util.find_spec(name) is not None:
            yield Finding("ok", f"the optional package {name} is there")
        else:
            yield Finding("note", f"{name} is not installed; {need}", remedy)
