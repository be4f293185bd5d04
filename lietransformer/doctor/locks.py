"""Whether a living process holds the lock on a file, without getting into its way."""

import fcntl
import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

_TABLE = Path("/proc/locks")


@dataclass(frozen=True)
class Lock:
    """The lock on a file, as `files.exclusive` and `files.complete_or_absent` take it.

    Attributes:
        state: "unknown" where the file system has no locks or does not let us see them.
        process: who holds it, where that is a process that this machine shows us.
    """

    state: Literal["held", "free", "unknown"]
    process: int | None = None

    @property
    def by_whom(self) -> str:
        """The holder, for a sentence."""
        return "another process" if self.process is None else f"process {self.process}"


def look_at(path: Path) -> Lock:
    """The state of a lock; that of a file that is not there is free."""
    try:
        found = path.lstat()
        if not stat.S_ISREG(found.st_mode):
            return Lock("free")  # nothing of ours; to open a pipe would be to wait for its writer
        process = _holder(found)
        return _asked_for(path) if process is None else Lock("held", process)
    except FileNotFoundError:
        return Lock("free")
    except OSError:
        return Lock("unknown")


def _asked_for(path: Path) -> Lock:
    """What happens to somebody who wants the lock.

    The kernel's table has no locks of other machines or containers. So it is asked for, shared and
    for a moment only: who comes at that very moment and does not wait is refused.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return Lock("held")
    finally:
        os.close(descriptor)
    return Lock("free")


def _holder(file: os.stat_result) -> int | None:
    """The process that the kernel's table names, for example

    1: FLOCK  ADVISORY  WRITE 4711 08:01:393217 0 EOF
    """
    place = f"{os.major(file.st_dev):02x}:{os.minor(file.st_dev):02x}:{file.st_ino}"
    with suppress(OSError, ValueError):
        for line in _TABLE.read_text().splitlines():
            match line.split():
                case [_, "FLOCK", _, _, process, where, *_] if where == place:
                    return int(process)
    return None
