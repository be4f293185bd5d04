"""An MLflow store that is a SQLite file, looked at without MLflow, which would write to it."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from typing import get_args
from urllib.parse import quote, unquote, urlsplit

from alembic.script import ScriptDirectory

from lietransformer.doctor.findings import Finding, size
from lietransformer.doctor.locks import look_at
from lietransformer.experiments.registry import TaskName
from lietransformer.tracking.folders import HASH_TAG, SYNCED_TAG

_SECONDS_TO_WAIT_FOR_A_WRITER = 5.0
_MAKE_ANEW = (
    "MLflow is a view on the runs: move the file and its mlflow-artifacts away, then "
    "`lietransformer sync` makes them again"
)
_RUNS = f"""
SELECT named.value, synced.value
FROM runs
JOIN tags AS named ON named.run_uuid = runs.run_uuid AND named.key = '{HASH_TAG}'
LEFT JOIN tags AS synced ON synced.run_uuid = runs.run_uuid AND synced.key = '{SYNCED_TAG}'
WHERE runs.lifecycle_stage = 'active'
"""


class Database:
    """The file of a store.

    Attributes:
        findings: what is to be said of it.
        runs: for the hash of each run in it, the digest of the folder that it has; None if the
            store cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self.runs: dict[str, str | None] | None = None
        self.findings = list(self._look_at(path))

    def _look_at(self, path: Path) -> Iterator[Finding]:
        lock = look_at(path.with_name(path.name + ".lock"))
        if lock.state == "held":
            yield Finding("note", f"{lock.by_whom} writes {path} now")
        try:
            # Read-only, so that nothing is created, and not even a half finished change undone.
            uri = f"file:{quote(str(path.absolute()))}?mode=ro"
            with closing(
                sqlite3.connect(uri, uri=True, timeout=_SECONDS_TO_WAIT_FOR_A_WRITER)
            ) as connection:
                yield from self._read(connection, path)
        except sqlite3.Error as error:
            yield _failure(path, error)

    def _read(self, connection: sqlite3.Connection, path: Path) -> Iterator[Finding]:
        (verdict, *_) = connection.execute("PRAGMA quick_check(1)").fetchone()
        if verdict != "ok":
            yield Finding("problem", f"{path} is damaged ({verdict})", _MAKE_ANEW)
            return
        found = _schema_of(connection)
        if found is None:
            yield Finding("problem", f"{path} has not all of MLflow's tables", _MAKE_ANEW)
            return
        if found not in _schema_of_mlflow():
            yield _other_schema(path, found)
            return
        self.runs = dict(connection.execute(_RUNS))
        yield Finding(
            "ok",
            f"{path}: intact, of this MLflow's version, {len(self.runs):,} runs, "
            f"{size(path.stat().st_size)}",
        )
        yield from _artifacts(connection)


def _failure(path: Path, error: sqlite3.Error) -> Finding:
    said = str(error)
    if getattr(error, "sqlite_errorname", "").startswith("SQLITE_BUSY"):
        return Finding("note", f"{path} is being written to", "look again in a while")
    if path.with_name(path.name + "-journal").exists():
        return Finding(
            "warning",
            f"{path} was left in the middle of a change ({said})",
            "`lietransformer sync` undoes the change and goes on; keep the -journal file beside it",
        )
    return Finding("problem", f"{path} cannot be read ({said})", _MAKE_ANEW)


def _schema_of(connection: sqlite3.Connection) -> str | None:
    """The version of the tables, if there are any."""
    try:
        connection.execute("SELECT 1 FROM runs, tags, experiments LIMIT 1")
        row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    except sqlite3.OperationalError as error:
        if "no such table" in str(error):
            return None
        raise
    return None if row is None else str(row[0])


def _schema_of_mlflow() -> list[str]:
    """The version that the MLflow which is installed here wants."""
    package = find_spec("mlflow")
    assert package is not None  # it is a requirement
    assert package.origin is not None
    migrations = Path(package.origin).parent / "store" / "db_migrations"
    return ScriptDirectory(str(migrations)).get_heads()


def _other_schema(path: Path, found: str) -> Finding:
    return Finding(
        "problem",
        f"{path} was written by another version of MLflow (its tables are of version {found})",
        f"use that version, or make a copy and say `mlflow db upgrade sqlite:///{path}` if it is "
        f"older; or: {_MAKE_ANEW}",
    )


def _artifacts(connection: sqlite3.Connection) -> Iterator[Finding]:
    """The place of the runs' files is stored as it was when the database was made."""
    places = connection.execute(
        "SELECT DISTINCT artifact_location FROM experiments JOIN runs USING (experiment_id) "
        f"WHERE experiments.name IN ({', '.join('?' * len(get_args(TaskName)))})",
        get_args(TaskName),
    )
    for (place,) in places:
        address = urlsplit(str(place))
        if address.scheme == "file" and not Path(unquote(address.path)).is_dir():
            yield Finding(
                "warning",
                f"MLflow looks for files of runs in {unquote(address.path)}, which is not there: "
                "the results were moved",
                _MAKE_ANEW,
            )
