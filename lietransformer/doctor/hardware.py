"""Cores, memory and GPUs."""

import os
import platform
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import torch

from lietransformer.doctor.findings import Finding, size
from lietransformer.processes import available_cores

# Runs take 0.5 to 5 GB, see the README.
_LITTLE_MEMORY = 2e9
_DRIVERS = tuple(map(Path, ("/proc/driver/nvidia/version", "/dev/nvidiactl", "/dev/kfd")))
_SWITCH = "CUDA_VISIBLE_DEVICES"


def check() -> Iterator[Finding]:
    """What runs can be computed on."""
    memory = psutil.virtual_memory()
    cores, all_cores = available_cores(), os.cpu_count() or 1
    share = "" if cores == all_cores else f" of {all_cores}"
    yield Finding("ok", f"{platform.system()} {platform.machine()}, {cores}{share} cores")
    yield judge_memory(memory.available, memory.total)
    yield judge_gpus(find_gpus())


def judge_memory(available: int, total: int) -> Finding:
    """Whether there is enough for a run."""
    what = f"{size(available)} of {size(total)} memory available"
    if available >= _LITTLE_MEMORY:
        return Finding("ok", what)
    return Finding(
        "warning", what, "end other programs, or start fewer jobs at once: `snakemake --cores 1`"
    )


@dataclass(frozen=True)
class Gpus:
    """What there is of GPUs.

    Attributes:
        torch: its version.
        platform: what torch was built for, such as "CUDA 13.0"; None for CPUs only.
        names: the GPUs that torch can use.
        has_driver: whether the machine has the driver of one.
        are_hidden: whether the environment keeps them from programs.
        complaint: what torch said when it looked for them.
    """

    torch: str
    platform: str | None
    names: tuple[str, ...]
    has_driver: bool
    are_hidden: bool
    complaint: str | None


def find_gpus() -> Gpus:
    """Ask torch, and the machine."""
    names = []
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            for number in range(torch.cuda.device_count() if torch.cuda.is_available() else 0):
                gpu = torch.cuda.get_device_properties(number)
                names.append(f"{gpu.name} ({size(gpu.total_memory)})")
        except (RuntimeError, AssertionError) as error:  # as torch reports what CUDA reports
            warnings.warn(str(error), stacklevel=1)
    built_for = {"CUDA": torch.version.cuda, "ROCm": torch.version.hip}
    return Gpus(
        torch=torch.__version__,
        platform=next((f"{kind} {found}" for kind, found in built_for.items() if found), None),
        names=tuple(names),
        has_driver=any(map(Path.exists, _DRIVERS)),
        are_hidden=os.environ.get(_SWITCH, "0").strip() in ("", "-1"),
        complaint=str(said[0].message).partition("\n")[0] if said else None,
    )


def judge_gpus(gpus: Gpus) -> Finding:
    """Whether torch can use what there is."""
    build = f"torch {gpus.torch} for {gpus.platform or 'CPUs only'}"
    if gpus.names:
        what = f"{build}: {', '.join(gpus.names)}"
        if gpus.complaint is None:
            return Finding("ok", what)
        return Finding("warning", f"{what}; but it says: {gpus.complaint}", _OTHER_BUILD)
    if gpus.are_hidden:
        return Finding("note", f"{build}; {_SWITCH} hides all GPUs", f"unset {_SWITCH} to use them")
    if not gpus.has_driver:
        return Finding("ok", f"{build}; this machine has no driver of a GPU")
    if gpus.platform is None:
        return Finding(
            "warning",
            f"{build}, but this machine has the driver of a GPU, which will not be used",
            "install a build of torch for it (envs/cuda.yaml has one)",
        )
    said = "" if gpus.complaint is None else f": {gpus.complaint}"
    return Finding(
        "warning",
        f"{build} finds no GPU that it can use, but this machine has the driver of one{said}",
        f"see whether `nvidia-smi` lists a GPU, and whether the job asked for one; {_OTHER_BUILD}",
    )


_OTHER_BUILD = "a newer driver, or a build of torch for this one, may be needed"
