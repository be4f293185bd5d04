"""Freed memory is kept for the tensors that follow, and in large pages where there are any."""

import platform
import subprocess
import sys
from pathlib import Path

from tests.requirements import needs

pytestmark = needs(platform.libc_ver()[0] == "glibc", "glibc, which can be told what to keep")

PAGES = Path("/sys/kernel/mm/transparent_hugepage/enabled")
# In a process of its own: how it gets its memory cannot be changed back.
PROGRAM = """
import resource, sys, torch
from lietransformer.training.allocation import keep_freed_memory

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    torch.ones(50_000_000)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

if sys.argv[1] == "kept":
    keep_freed_memory()
faults()
print(faults())
with open("/proc/self/smaps") as lines:
    print(any("hg" in line.split() for line in lines if line.startswith("VmFlags:")))
"""


def run(what: str) -> tuple[int, bool]:
    """Pages that a second tensor had to be given, and whether large ones were asked for."""
    command = [sys.executable, "-c", PROGRAM, what]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    faults, is_large = output.split()
    return int(faults), is_large == "True"


def test_a_tensor_takes_the_place_of_the_one_before() -> None:
    faults, _ = run("kept")
    assert faults < 0.01 * run("returned")[0] + 100


def test_large_pages_are_asked_for_where_the_kernel_has_any() -> None:
    assert run("kept")[1] == PAGES.exists()
    assert not run("returned")[1]
