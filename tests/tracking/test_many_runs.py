"""Eight runs at once, each in a process of its own, into one store."""

import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from mlflow import MlflowClient

from lietransformer.training.run_folder import RunFolder
from tests.tracking.runs import (
    MLFLOW_WARNINGS,
    assert_complete,
    sqlite_uri,
    tracked_runs,
    train_command,
)
from tests.tracking.server import Server

pytestmark = MLFLOW_WARNINGS

COUNT = 8

# The command line in processes that begin at the same moment, for each line of arguments
# that is read. They share the imports, which would take them longer than the runs do.
AT_ONCE = """
import json, os, sys
from lietransformer.cli import main
import lietransformer.training.loop, lietransformer.tracking.live
import mlflow.store.tracking.sqlalchemy_store, torch._dynamo

processes = []
for line in sys.stdin:
    process = os.fork()
    if process == 0:
        try:
            code = main(json.loads(line))
            sys.stderr.flush()
        finally:
            os._exit(code)
    processes.append(process)
codes = [os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) for process in processes]
print("exit codes", codes)
"""


def train_at_once(uri: str, root: Path, data: Path, first_seed: int) -> list[RunFolder]:
    """Train runs of different seeds; all must succeed."""
    seeds = range(first_seed, first_seed + COUNT)
    folders = [RunFolder(root / f"run-{seed}") for seed in seeds]
    commands = [
        train_command(folder.path, uri, data, seed=seed, model="Fully-connected (direct)")
        for seed, folder in zip(seeds, folders, strict=True)
    ]
    result = subprocess.run(
        [sys.executable, "-c", AT_ONCE],
        input="\n".join(map(json.dumps, commands)),
        capture_output=True,
        text=True,
        check=True,
        timeout=500,
    )
    assert result.stdout.splitlines()[-1] == f"exit codes {[0] * COUNT}", result.stderr
    assert "tracking" not in result.stderr
    assert "MLflow:" not in result.stderr
    return folders


@pytest.mark.slow
def test_one_new_file(tmp_path: Path, springs_file: Path) -> None:
    database = tmp_path / "store" / "mlflow.db"
    folders = train_at_once(sqlite_uri(database), tmp_path, springs_file, first_seed=0)
    client = MlflowClient(sqlite_uri(database))
    assert len(tracked_runs(client)) == COUNT
    for folder in folders:
        assert_complete(client, folder)
    connection = sqlite3.connect(database)
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()
    assert sorted(os.listdir(database.parent)) == ["mlflow-artifacts", "mlflow.db"]


@pytest.mark.slow
def test_one_server(server: Server, tmp_path: Path, springs_file: Path) -> None:
    folders = train_at_once(server.uri, tmp_path, springs_file, first_seed=100)
    for folder in folders:
        assert_complete(server.client, folder)
