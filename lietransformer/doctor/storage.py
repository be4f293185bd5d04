"""The place of the results: room, the right to write, and file locks."""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil

from lietransformer.doctor.findings import Finding, counted, size

# A run of the sweep keeps about 30 MB, one of the largest models 1 GB while it trains.
_TOO_LITTLE_ROOM = 1e9
_LITTLE_ROOM = 10e9
_FEW_FILES = 10_000
_NETWORK = ("nfs", "nfs4", "lustre", "gpfs", "beegfs", "cifs", "smb3", "ceph", "fuse.sshfs")
# Options by which locks are those of one machine, and other machines do not see them.
_LOCAL_LOCKS = ("nolock", "local_lock=all", "local_lock=flock", "localflock")


def check(results: Path) -> Iterator[Finding]:
    """Whether runs can be kept there."""
    if results.exists() and not results.is_dir():
        yield Finding("problem", f"{results} is no folder", "give the folder of the results")
    elif not results.exists():
        yield Finding(
            "warning",
            f"there is no folder {results}",
            "call this where `snakemake` is called, which makes it, or give another folder",
        )
    place = next(path for path in (results, *results.absolute().parents) if path.is_dir())
    yield judge_room(place, shutil.disk_usage(place).free)
    number = os.statvfs(place)
    if number.f_files:  # some file systems have no such limit
        yield from judge_number_of_files(number.f_favail)
    yield try_to_write(place)
    kind, options = _mount(place)
    yield from judge_mount(kind, options)


def judge_room(place: Path, free: int) -> Finding:
    """Whether there is room for more runs."""
    what = f"{size(free)} free at {place}"
    remedy = (
        "free some space (see Sweep and Leftovers below), or put the results elsewhere; "
        "`lietransformer forecast` says how much a sweep takes"
    )
    if free < _TOO_LITTLE_ROOM:
        return Finding("problem", what, remedy)
    return Finding("ok", what) if free >= _LITTLE_ROOM else Finding("warning", what, remedy)


def judge_number_of_files(free: int) -> Iterator[Finding]:
    """Whether there may be more files; a run has up to ten, with those for MLflow."""
    if free < _FEW_FILES:
        yield Finding(
            "warning",
            f"room for only {counted(free, 'more file')}",
            "remove files that nobody needs, or put the results elsewhere",
        )


def try_to_write(place: Path) -> Finding:
    """Write a file without a name, which is gone at once, and lock it twice."""
    try:
        with tempfile.TemporaryFile(dir=place) as file:
            file.write(b"anything")
            file.flush()
            return _try_to_lock(file.fileno())
    except OSError as error:
        return Finding(
            "problem",
            f"nothing can be written to {place} ({error.strerror or error})",
            "check the permissions and the quota; tables and reports can be written elsewhere "
            "with --out",
        )


def _try_to_lock(descriptor: int) -> Finding:
    remedy = (
        "do not start the same run twice at the same time, or put the results where locks work "
        "(an NFS server with its lock service, a Lustre file system mounted with `flock`)"
    )
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        what = f"files can be written, but not locked ({error.strerror or error})"
        return Finding("warning", f"{what}: two processes on one run are not kept apart", remedy)
    again = os.open(f"/proc/self/fd/{descriptor}", os.O_RDWR)
    try:
        fcntl.flock(again, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return Finding("ok", "files can be written and locked")
    finally:
        os.close(again)
    return Finding("warning", "file locks keep nobody out", remedy)


def judge_mount(kind: str, options: str) -> Iterator[Finding]:
    """What is to be known of a network file system."""
    local = [option for option in options.split(",") if option in _LOCAL_LOCKS]
    if local:
        yield Finding(
            "warning",
            f"the file system ({kind}, mounted with {local[0]}) does not show locks to other "
            "machines: two of them on one run are not kept apart",
            f"do not start the same run on two machines, or mount it without {local[0]}",
        )
    elif kind in _NETWORK:
        yield Finding(
            "note",
            f"a network file system ({kind}): SQLite is not made to be written from several "
            "machines",
            "leave mlflow.db to `snakemake` or `lietransformer sync` on one machine, or use a "
            "server: `tracking: http://HOST:PORT`",
        )


def _mount(place: Path) -> tuple[str, str]:
    """Kind and options of the file system that a folder is in."""
    path = place.resolve()
    mounts = [m for m in psutil.disk_partitions(all=True) if path.is_relative_to(m.mountpoint)]
    if not mounts:
        return "unknown", ""
    nearest = max(mounts, key=lambda mount: len(mount.mountpoint))
    return nearest.fstype, nearest.opts
