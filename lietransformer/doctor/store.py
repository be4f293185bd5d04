"""The MLflow store beside the run folders that it shows."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from lietransformer.doctor.database import Database
from lietransformer.doctor.findings import Finding, Level, counted, some
from lietransformer.doctor.runs import ExaminedRun
from lietransformer.doctor.server import Server
from lietransformer.errors import UserError
from lietransformer.files import read_json
from lietransformer.report.runs import MANIFEST
from lietransformer.tracking.address import (
    DEFAULT_URI,
    NO_TRACKING,
    SQLITE,
    database_of,
    is_server,
    require_usable,
)
from lietransformer.tracking.folders import PUBLISHED, digest_of

_DONE = ("finished", "diverged")


def address_of(results: Path, given: str | None) -> str:
    """The store to look at: as in other commands, but for what the sweep says of itself."""
    said = given or os.environ.get("MLFLOW_TRACKING_URI")
    if said:
        return said
    manifest = results / MANIFEST
    config = (read_json(manifest) or {}).get("config") if manifest.is_file() else None
    said = config.get("tracking") if isinstance(config, dict) else None
    # The default is relative to where the workflow runs, which need not be here.
    own = f"{SQLITE}{results / database_of(DEFAULT_URI).name}"
    return said if isinstance(said, str) and said != DEFAULT_URI else own


def check(results: Path, uri: str, runs: Sequence[ExaminedRun]) -> Iterator[Finding]:
    """Whether the store can be used, and has what the folders have."""
    if uri == NO_TRACKING:
        yield Finding("note", "runs are not tracked")
        return
    try:
        require_usable(uri)
    except UserError as error:
        yield Finding("problem", str(error).rstrip("."), "give another store with --tracking")
        return
    sync = f"lietransformer sync {results} --tracking {uri}"
    if not is_server(uri) and not database_of(uri).is_file():
        has_runs = any(run.status in _DONE for run in runs)
        level: Level = "warning" if has_runs else "note"
        yield Finding(level, f"no store at {uri} yet", f"`{sync}` makes it")
        return
    store = Server(uri) if is_server(uri) else Database(database_of(uri))
    yield from store.findings
    if store.runs is not None:
        yield from compare(runs, store.runs, sync)


def compare(
    runs: Sequence[ExaminedRun], stored: Mapping[str, str | None], sync: str
) -> Iterator[Finding]:
    """Runs that only one of the two has. `stored` are digests of folders by hashes of runs."""
    by_hash: dict[str, list[ExaminedRun]] = {}
    for run in runs:
        if run.hash is not None and run.status in _DONE:
            by_hash.setdefault(run.hash, []).append(run)
    # Of several folders with a run of the same settings, MLflow shows one.
    behind = [
        str(same[0].folder.path)
        for its_hash, same in by_hash.items()
        if stored.get(its_hash) not in map(_digest, same)
    ]
    if behind:
        yield Finding(
            "warning",
            f"{counted(len(behind), 'finished run')} not in the store, or not as the folder is "
            f"now: {some(behind)}",
            f"say `{sync}`",
            tuple(behind),
        )
    known = {run.hash for run in runs}
    # One that is broken has a folder, too, but its hash may be unknown.
    gone = sorted(key for key in stored.keys() - known if not key.startswith(PUBLISHED))
    if gone and all(run.hash is not None for run in runs):
        yield Finding(
            "note",
            f"{counted(len(gone), 'run')} in the store without a folder in the results",
            "if no other results are in this store, delete them on MLflow's page: the tag "
            "lietransformer.hash names them",
            tuple(gone),
        )


def _digest(run: ExaminedRun) -> str | None:
    try:
        return digest_of(run.folder)
    except OSError:  # removed meanwhile, or not readable
        return None
