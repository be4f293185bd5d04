"""What processes that were killed have left behind."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil

from lietransformer.doctor.findings import Finding, counted, size, some
from lietransformer.doctor.listing import Listing, size_of
from lietransformer.doctor.locks import look_at
from lietransformer.training.run_folder import RunFolder


def check(results: Path, listing: Listing) -> Iterator[Finding]:
    """Files that are half written, checkpoints that nobody needs, and Snakemake's lock."""
    findings = [
        *_parts(listing.parts),
        *_states(listing.states),
        *_workflow(results.absolute().parent),
    ]
    yield from findings or [Finding("ok", "nothing was left behind")]


def _parts(parts: Sequence[Path]) -> Iterator[Finding]:
    left: list[Path] = []
    for path in parts:
        lock = look_at(path)
        if lock.state == "held":
            yield Finding("note", f"{path} is being written by {lock.by_whom}", None, (str(path),))
        elif lock.state == "unknown":
            yield Finding(
                "note",
                f"{path} may be half written, or be written just now: there are no locks to tell",
                "remove it if nothing runs",
                (str(path),),
            )
        elif path.exists():
            left.append(path)
    if left:
        total = sum(path.lstat().st_size for path in left if path.exists())
        yield Finding(
            "warning",
            f"{counted(len(left), 'half written file')}, {size(total)}, of processes that were "
            f"killed: {some(left)}",
            "remove them; whoever writes the files again would also overwrite them",
            tuple(map(str, left)),
        )


def _states(states: Sequence[Path]) -> Iterator[Finding]:
    """Folders for resuming: each is needed while its run is there and not done."""
    of_done: list[Path] = []
    of_none: list[Path] = []
    for path in states:
        run = RunFolder(path.parent.parent / path.name)
        if look_at(path / "lock").state == "held" or not path.exists():
            continue
        if run.is_done:
            of_done.append(path)
        elif not run.config_file.exists():
            of_none.append(path)
    yield from _needless(of_done, "of runs that are done", "remove these folders")
    yield from _needless(
        of_none,
        "of runs that are not there",
        "remove these folders; a run of the same settings and place would go on from them",
    )


def _needless(states: Sequence[Path], whose: str, remedy: str) -> Iterator[Finding]:
    if states:
        total = size(sum(map(size_of, states)))
        what = f"{counted(len(states), 'checkpoint')}, {total}, {whose}: {some(states)}"
        yield Finding("warning", what, remedy, tuple(map(str, states)))


def _workflow(folder: Path) -> Iterator[Finding]:
    """Snakemake's lock on the folder that it works in, which does not die with its process."""
    if not any((folder / ".snakemake" / "locks").glob("*.lock")):
        return
    process = _snakemake_in(folder)
    if process is not None:
        yield Finding("note", f"Snakemake works in {folder} now (process {process})")
    else:
        yield Finding(
            "warning",
            f"Snakemake's lock on {folder}, and no process here that it would belong to: it was "
            "killed, or runs on another machine",
            f"if it runs nowhere, say `snakemake --unlock --cores 1` in {folder}, then the same "
            "command as before",
        )


def _snakemake_in(folder: Path) -> int | None:
    """The process of a Snakemake that was started in a folder."""
    for process in psutil.process_iter():
        try:
            if "snakemake" in " ".join(process.cmdline()) and Path(process.cwd()) == folder:
                return process.pid
        except (psutil.Error, OSError):  # it has ended, or is another user's
            continue
    return None
