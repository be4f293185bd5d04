"""Opening an MLflow store: a SQLite file, or a server."""

import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import get_args

from mlflow import MlflowClient
from mlflow.exceptions import MlflowException

from lietransformer.experiments.registry import TaskName
from lietransformer.files import complete_or_absent, exclusive
from lietransformer.layout import ARTIFACTS
from lietransformer.tracking.address import (
    SQLITE,
    database_of,
    is_server,
    require_usable,
)

SUMMARY = "summary"  # the experiment beside those of the tasks
_SECONDS_BETWEEN_TRIES = 0.05


def reason(error: Exception) -> str:
    """What went wrong, in a short line."""
    return (str(error) or type(error).__name__).splitlines()[0][:300]


@contextmanager
def open_store(uri: str) -> Iterator[MlflowClient]:
    """A client whose store has its tables, an experiment for each task and one for summaries.

    A SQLite file has one writer at a time: others wait here for their turn.
    """
    require_usable(uri)
    database = None if is_server(uri) else database_of(uri)
    lock = (
        nullcontext()
        if database is None
        else exclusive(
            database.with_name(database.name + ".lock"),
            f"writes {uri}",
            wait=partial(time.sleep, _SECONDS_BETWEEN_TRIES),
        )
    )
    with lock:
        if database is not None and not database.exists():
            _create(database)
        client = MlflowClient(tracking_uri=uri)
        for name in (*get_args(TaskName), SUMMARY):
            _require_experiment(client, name, database)
        yield client


def _create(database: Path) -> None:
    """Create a database with all of MLflow's tables or none: MLflow cannot repair a part."""
    with complete_or_absent(database) as part:
        MlflowClient(tracking_uri=f"{SQLITE}{part}").search_experiments()


def _require_experiment(client: MlflowClient, name: str, database: Path | None) -> None:
    if client.get_experiment_by_name(name) is not None:
        return
    # Beside the database. MLflow's own default is relative to wherever a process runs.
    root = None if database is None else database.absolute().parent / ARTIFACTS
    try:
        client.create_experiment(name, None if root is None else (root / name).as_uri())
    except MlflowException:
        # On a server, another process may have made it a moment ago.
        if client.get_experiment_by_name(name) is None:
            raise
