"""Compile C code of this package when it is first needed, and keep the result.

A compiler is a help, not a need: without one, callers compute the same with PyTorch.
"""

import ctypes
import functools
import hashlib
import logging
import os
import platform
import shlex
import shutil
import stat
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path

from lietransformer.kernels import SWITCH

log = logging.getLogger(__name__)

_SOURCES = Path(__file__).parent / "csrc"
_PATIENCE = 120  # seconds for the compiler, which takes a few
_FLAGS = ("-std=gnu11", "-O3", "-march=native", "-ffp-contract=fast", "-fno-math-errno")
# The largest of two numbers is then one instruction. What is not a number stays so nevertheless,
# as long as the code does not ask for it.
_FLAGS_ALSO = ("-fno-trapping-math", "-ffinite-math-only", "-fno-signed-zeros")
_LIBRARY = ("-fopenmp", "-shared", "-fPIC")
# Compilers for these processors shun their widest vectors unless told otherwise.
_WIDE_VECTORS = {"x86_64": ("-mprefer-vector-width=512",), "AMD64": ("-mprefer-vector-width=512",)}
# A few lines that need of a compiler what our files need.
_TRIAL = """
void doubled(float *numbers, int count) {
    #pragma omp parallel for
    for (int i = 0; i < count; i++) numbers[i] *= 2;
}
"""


@functools.cache
def load(source: str, definitions: tuple[tuple[str, int], ...] = ()) -> ctypes.CDLL | None:
    """The compiled code of a file in this folder; None where it cannot be compiled.

    Args:
        source: the file's name.
        definitions: names and values of macros, such as widths that loops are unrolled for.
    """
    if not is_possible():
        return None
    command = [*_compiler_with_flags(), *(f"-D{name}={value}" for name, value in definitions)]
    for cache in (_cache, _temporary_cache):
        try:
            return _load_from(cache(), source, command)
        # RuntimeError: there is no home folder.
        except (OSError, RuntimeError, subprocess.SubprocessError) as error:
            problem = error
    _warn(problem)
    return None


def is_possible() -> bool:
    """Whether there is a compiler, and it is not forbidden to use it."""
    return bool(find_compiler()) and os.environ.get(SWITCH) != "0"


def find_compiler() -> list[str]:
    """The command of the C compiler: the variable CC, or the first of the usual names."""
    candidates = [os.environ["CC"]] if "CC" in os.environ else ["cc", "gcc", "clang"]
    for program, *arguments in filter(None, map(shlex.split, candidates)):
        if (found := shutil.which(program)) is not None:
            return [found, *arguments]
    return []


def complaint() -> str | None:
    """What keeps the compiler from compiling such code as ours; None if nothing does."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "trial.c"
        source.write_text(_TRIAL)
        try:
            _compile(_compiler_with_flags(), source, Path(folder) / "trial.so")
        except (OSError, subprocess.SubprocessError) as error:
            return _reason(error)
    return None


def _compiler_with_flags() -> list[str]:
    flags = (*_FLAGS, *_FLAGS_ALSO, *_LIBRARY, *_WIDE_VECTORS.get(platform.machine(), ()))
    return [*find_compiler(), *flags]


def _load_from(folder: Path, source: str, command: list[str]) -> ctypes.CDLL:
    """The compiled code in a folder, after compiling it into there if need be."""
    compiled = folder / f"{Path(source).stem}-{_fingerprint(source, command)}.so"
    with suppress(OSError):  # none there, or a damaged one
        return ctypes.CDLL(str(compiled))
    _compile(command, _SOURCES / source, compiled)
    return ctypes.CDLL(str(compiled))


_problems: list[str] = []


def _warn(problem: Exception) -> None:
    """Say that a compiler is there but of no use; of several reasons only the first."""
    _problems.append(_reason(problem))
    if len(_problems) == 1:
        log.warning("computing without C code, more slowly: cannot compile it (%s)", *_problems)


def _reason(problem: Exception) -> str:
    """The first error that the compiler names, or what kept it from running."""
    said = str(problem)
    if isinstance(problem, subprocess.CalledProcessError):
        said = problem.stderr.strip() or f"exit code {problem.returncode}"
    lines = said.splitlines()
    return next((line for line in lines if "error:" in line), lines[0])


def _compile(command: list[str], source: Path, compiled: Path) -> None:
    compiled.parent.mkdir(parents=True, exist_ok=True)
    # Under a name of its own first: several processes may compile the same at once.
    with tempfile.TemporaryDirectory(dir=compiled.parent) as folder:
        part = Path(folder) / compiled.name
        whole = [*command, str(source), "-o", str(part)]
        subprocess.run(whole, check=True, capture_output=True, text=True, timeout=_PATIENCE)
        part.replace(compiled)


def _cache() -> Path:
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "lietransformer"


def _temporary_cache() -> Path:
    """For when the home folder cannot be written, as on the nodes of some clusters.

    Everybody can write beside it, so it has to be this user's alone: whoever could put a library
    into it could run code as this user.
    """
    folder = Path(tempfile.gettempdir()) / f"lietransformer-{os.getuid()}"
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    found = folder.lstat()  # of a link itself, not of where it leads
    is_private = stat.S_ISDIR(found.st_mode) and stat.S_IMODE(found.st_mode) == 0o700
    if not is_private or found.st_uid != os.getuid():
        raise PermissionError(f"{folder} is not a folder of this user alone")
    return folder


def _fingerprint(source: str, command: list[str]) -> str:
    """Of all that the code depends on: a home folder can be that of machines of many kinds."""
    files = [_SOURCES / source, *sorted(_SOURCES.glob("*.h"))]
    parts = [*(file.read_text() for file in files), *command]
    parts += [_version(command[0]), _processor()]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def _version(compiler: str) -> str:
    answer = subprocess.run(
        [compiler, "--version"], check=True, capture_output=True, text=True, timeout=_PATIENCE
    )
    return answer.stdout


def _processor() -> str:
    """What the processor is and can do."""
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return "".join(line for line in lines[:40] if line.startswith(("model", "flags", "Feat")))
    return platform.processor()
