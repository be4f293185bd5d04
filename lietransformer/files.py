"""Files that are either complete or absent."""

import errno
import fcntl
import io
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from lietransformer.errors import UserError

PART_SUFFIX = ".part"

# Some network file systems have no locks. A file is then still complete or absent, but two
# writers of the same file are not kept apart.
_NO_LOCKS_HERE = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP)


def require_writable_name(path: Path, *, replace: bool) -> None:
    """Refuse a folder's name, and an existing file's unless it may be replaced."""
    if not path.name or path.is_dir():
        raise UserError(f"cannot write to {path}: it is a folder. Add the name of a file in it.")
    if not replace and os.path.lexists(path):
        raise UserError(
            f"{path} exists already. Choose another name, remove it, or replace it with --force."
        )


def read_json(file: Path) -> dict[str, Any] | None:
    """The JSON object in a file, or None if it is missing or holds something else."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) else None


def read_lines(path: Path, *keys: str) -> Iterator[dict[str, Any]]:
    """The JSON objects in the complete lines of a file that may be growing.

    Args:
        path: the file; one that does not exist has no lines.
        keys: that each object has a number for.
    """
    try:
        lines = path.read_bytes().splitlines(keepends=True)
    except FileNotFoundError:
        return
    except OSError as error:
        raise UserError(
            f"cannot read {path}: {(error.strerror or str(error)).lower()}. Restore the file."
        ) from error
    for line in lines:
        if line.endswith(b"\n"):
            try:
                record = json.loads(line)
            except ValueError:
                record = None
            if not isinstance(record, dict) or not all(_is_number(record.get(k)) for k in keys):
                what = f"JSON objects with {' and '.join(keys)}" if keys else "JSON objects"
                raise UserError(
                    f"{path} must have lines that are {what}, got {line.strip()[:60]!r}. Restore "
                    "the file, or remove that line."
                )
            yield record


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


@contextmanager
def complete_or_absent(path: Path) -> Iterator[Path]:
    """A temporary file to write to, renamed to `path` only if the block succeeds.

    The temporary file is `path` with the suffix .part. Its writer holds a lock on it, so a
    second process that wants to write the same file is refused, while what a killed process
    left behind is overwritten by the next one.
    """
    part = path.with_name(path.name + PART_SUFFIX)
    with _readable_system_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = _lock(part)
    has_its_name = False
    try:
        yield part
        with _readable_system_errors(path):
            os.fsync(descriptor)
            os.replace(part, path)
            has_its_name = True
            _sync_directory(path.parent)
    finally:
        if not has_its_name:
            # Ours: nobody else writes to it while we hold the lock.
            with suppress(FileNotFoundError):
                part.unlink()
        os.close(descriptor)


@contextmanager
def exclusive(lock: Path, what: str, *, wait: Callable[[], object] | None = None) -> Iterator[None]:
    """Let only one process at a time into the block, by a lock that dies with the process.

    Args:
        lock: a file to lock; it is removed at the end.
        what: what the process does that no other may do at the same time, for the message.
        wait: passes some time; it is called until the other process has ended. Without it, the
            other one's presence is an error.
    """
    descriptor = None
    with _readable_system_errors(lock):
        while descriptor is None:
            # A process that ends may remove the folder, if it is empty, at any moment.
            with suppress(FileNotFoundError):
                lock.parent.mkdir(parents=True, exist_ok=True)
                try:
                    descriptor = _lock(lock, what)
                except _Locked:
                    if wait is None:
                        raise
                    wait()
    try:
        yield
    finally:
        with suppress(FileNotFoundError):
            lock.unlink()
        os.close(descriptor)


class _Locked(UserError):
    """Another process holds the lock."""


def _lock(part: Path, what: str | None = None) -> int:
    """An empty file that only this process writes to."""
    what = what or f"writes {part.name}"
    while True:
        descriptor = os.open(part, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise _Locked(
                f"another process {what} now. Wait for it to end, or choose another name."
            ) from None
        except OSError as error:
            if error.errno not in _NO_LOCKS_HERE:
                os.close(descriptor)
                raise
        # Between open and lock its former owner may have finished and renamed or removed it.
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(descriptor), part.stat()):
                os.ftruncate(descriptor, 0)
                return descriptor
        os.close(descriptor)


def _sync_directory(directory: Path) -> None:
    """Make a rename survive a power cut."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _readable_system_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise cannot_write(path, error) from error


def cannot_write(path: Path, error: OSError) -> UserError:
    """The error for a write that the operating system refused."""
    return UserError(
        f"cannot write {path}: {(error.strerror or str(error)).lower()}. Free some space, check "
        "the permissions, or choose another place."
    )


class PatientFile(io.RawIOBase):
    """A file below a library that must not learn that the disk is full.

    When a write fails, HDF5 can no longer close its file and crashes the process at exit, and
    torch.save raises something that no longer says why. So a failure is kept here, everything
    after it is dropped, and it is raised when the library has returned.
    """

    def __init__(self, raw: Any) -> None:
        self._raw = raw
        self.failure: OSError | None = None

    def raise_failure(self) -> None:
        """Raise what went wrong below the library, if anything did."""
        if self.failure is not None:
            raise self.failure

    def write(self, data: Any) -> int:
        rest = memoryview(data)
        while rest and self.failure is None:
            try:
                rest = rest[self._raw.write(rest) :]
            except OSError as error:
                self.failure = error
        return len(data)

    def readinto(self, buffer: Any) -> int:
        count = int(self._raw.readinto(buffer))
        if self.failure is not None:
            # What was dropped reads as zeros; the file is thrown away in any case.
            buffer[count:] = bytes(len(buffer) - count)
            return len(buffer)
        return count

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return int(self._raw.seek(offset, whence))

    def tell(self) -> int:
        return int(self._raw.tell())

    def truncate(self, size: int | None = None) -> int:
        size = self.tell() if size is None else size
        if self.failure is None:
            try:
                self._raw.truncate(size)
            except OSError as error:
                self.failure = error
        return size
