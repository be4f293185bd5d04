"""The MLflow store: a file or a server, whole or not, with or without the runs of the folders."""

import http.server
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest

from lietransformer.cli.sync import sync
from lietransformer.doctor.findings import Finding
from lietransformer.doctor.listing import list_results
from lietransformer.doctor.runs import examine
from lietransformer.doctor.store import address_of, check
from lietransformer.training.run_folder import RunFolder
from tests.doctor.folders import (
    begin,
    finish,
    finished,
    held_by_another_process,
    levels,
    the,
    write_manifest,
)
from tests.tracking.runs import MLFLOW_WARNINGS
from tests.tracking.server import Server, free_port

pytestmark = MLFLOW_WARNINGS


def check_store(results: Path, uri: str | None = None) -> list[Finding]:
    runs = [examine(folder) for folder in list_results(results).runs]
    return list(check(results, uri or address_of(results, None), runs))


def change(database: Path, statement: str) -> None:
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute(statement)


def test_which_store_is_looked_at(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = f"sqlite:///{results}/mlflow.db"
    assert address_of(results, None) == own
    write_manifest(results, [], tracking="sqlite:///results/mlflow.db")
    assert address_of(results, None) == own
    write_manifest(results, [], tracking="http://host:5000")
    assert address_of(results, None) == "http://host:5000"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://other:5000")
    assert address_of(results, None) == "http://other:5000"
    assert address_of(results, "none") == "none"


def test_no_store(results: Path, springs_file: Path) -> None:
    assert levels(check_store(results)) == ["note"]
    finished(results / "run", springs_file)
    found = the("warning", check_store(results))
    assert f"lietransformer sync {results}" in str(found.remedy)
    assert not (results / "mlflow.db").exists()
    assert levels(check_store(results, "none")) == ["note"]
    assert levels(check_store(results, "./mlruns")) == ["problem"]
    assert levels(check_store(results, f"sqlite:///{results}")) == ["problem"]


def test_runs_beside_the_store(results: Path, database: Path, springs_file: Path) -> None:
    assert levels(check_store(results)) == ["ok"]
    first, second = (
        finished(results / "runs" / f"seed-{seed}", springs_file, seed=seed) for seed in (0, 1)
    )
    sync(f"sqlite:///{database}", [first])
    assert the("warning", check_store(results)).items == (str(second.path),)
    sync(f"sqlite:///{database}", [second])
    assert levels(check_store(results)) == ["ok"]
    # One was trained again, and has other numbers.
    second.write_records([{"step": 1, "time": 1.0, "train/loss": 0.7}])
    assert the("warning", check_store(results)).items == (str(second.path),)
    sync(f"sqlite:///{database}", [second])
    # Of two folders with the same run one is in the store, and that is as it should be.
    shutil.copytree(second.path, results / "runs" / "copy")
    assert levels(check_store(results)) == ["ok"]
    # One that runs again has a folder.
    second.result_file.unlink()
    with held_by_another_process(second.state_folder / "lock"):
        assert "note" not in levels(check_store(results))
    its_hash = str(first.read_config_json()["hash"])
    shutil.rmtree(first.path)
    assert the("note", check_store(results)).items == (its_hash,)


@pytest.mark.usefixtures("database")
def test_a_writer_at_work(results: Path) -> None:
    with held_by_another_process(results / "mlflow.db.lock"):
        found = check_store(results)
    assert levels(found) == ["note", "ok"]
    assert "now" in found[0].what


@pytest.mark.parametrize(
    ("damage", "text"),
    [
        (lambda file: file.write_text("something else altogether"), "cannot be read"),
        (lambda file: file.write_bytes(b""), "has not all of MLflow's tables"),
        (lambda file: os.truncate(file, file.stat().st_size // 2), "("),
        (lambda file: change(file, "DROP TABLE tags"), "has not all of MLflow's tables"),
        (lambda file: change(file, "DELETE FROM alembic_version"), "has not all of MLflow's"),
        (
            lambda file: change(file, "UPDATE alembic_version SET version_num = 'older'"),
            "another version of MLflow (its tables are of version older)",
        ),
    ],
)
def test_stores_that_cannot_be_used(
    damage: object, text: str, results: Path, database: Path
) -> None:
    assert callable(damage)
    damage(database)
    before = database.read_bytes()
    found = the("problem", check_store(results))
    assert text in found.what
    assert "lietransformer sync" in str(found.remedy)
    assert database.read_bytes() == before


def test_results_that_were_moved(results: Path, database: Path, springs_file: Path) -> None:
    finished(results / "runs" / "run", springs_file)
    sync(f"sqlite:///{database}", [RunFolder(results / "runs" / "run")])
    moved = results.rename(results.with_name("elsewhere"))
    found = the("warning", check_store(moved))
    assert f"{results}/mlflow-artifacts/springs, which is not there" in found.what


# Killed in the middle of a change that has reached the file.
KILLED = """
import os, signal, sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("PRAGMA cache_size = 2")
connection.execute("BEGIN")
for number in range(2000):
    connection.execute("INSERT INTO tags VALUES (?, ?, 'x')", (str(number), "y" * 1000))
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_change_that_was_cut_off(results: Path, database: Path) -> None:
    killed = subprocess.run([sys.executable, "-c", KILLED, database], check=False)
    assert killed.returncode == -signal.SIGKILL
    journal = results / "mlflow.db-journal"
    before = database.read_bytes(), journal.read_bytes()
    found = the("warning", check_store(results))
    assert "was left in the middle of a change" in found.what
    assert (database.read_bytes(), journal.read_bytes()) == before
    # As the remedy says.
    sync(f"sqlite:///{database}", [])
    assert levels(check_store(results)) == ["ok"]


def test_a_server(tmp_path: Path, results: Path, springs_file: Path) -> None:
    server = Server(tmp_path)
    server.start()
    try:
        server.wait()
        assert levels(check_store(results, server.uri)) == ["ok"]
        folder = finish(begin(results / "run", springs_file), "diverged")
        assert levels(check_store(results, server.uri)) == ["ok", "warning"]
        sync(server.uri, [folder])
        found = check_store(results, server.uri)
        assert levels(found) == ["ok"]
        assert found[0].what == f"{server.uri} answers and has 1 runs"
    finally:
        server.kill()


def test_a_server_that_is_not_there(results: Path) -> None:
    uri = f"http://127.0.0.1:{free_port()}"
    found = the("problem", check_store(results, uri))
    assert f"no MLflow server answers at {uri}" in found.what


class _Other(http.server.BaseHTTPRequestHandler):
    """A web server of something else, which answers everything."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"<html>Welcome")

    def log_message(self, *_: object) -> None:
        pass


def test_a_server_of_something_else(results: Path) -> None:
    with http.server.HTTPServer(("127.0.0.1", 0), _Other) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            assert levels(check_store(results, f"http://127.0.0.1:{server.server_port}")) == [
                "problem"
            ]
        finally:
            server.shutdown()
            thread.join()
