"""`lietransformer sync --summary`: what a sweep amounts to, as a run."""

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import get_args

import pytest
from mlflow import MlflowClient
from mlflow.entities import Run

from lietransformer.cli import main
from lietransformer.report.claims.verdict import Verdict
from tests.report.synthetic import COMMIT
from tests.tracking.outcomes import make_outcome
from tests.tracking.runs import MLFLOW_WARNINGS, sqlite_uri
from tests.tracking.server import Server
from tests.tracking.test_sync import failing

pytestmark = MLFLOW_WARNINGS

FILES = {
    *("claims.json", "claims.md", "report.html"),
    *("figures/figure4.pdf", "figures/figure4.png"),
    *("tables/table1.csv", "tables/table1.md", "tables/table1.tex"),
}


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a small sweep amounts to; not to be changed."""
    return make_outcome(tmp_path_factory.mktemp("outcome") / "results")


def summarise(uri: str, results: Path) -> int:
    return main(["sync", str(results), "--summary", "--tracking", uri])


def summaries(client: MlflowClient) -> list[Run]:
    """The newest first."""
    experiment = client.get_experiment_by_name("summary")
    assert experiment is not None
    ids = [experiment.experiment_id]
    return list(client.search_runs(ids, order_by=["attributes.start_time DESC"]))


def artifacts(client: MlflowClient, run: Run, folder: str | None = None) -> set[str]:
    found: set[str] = set()
    for file in client.list_artifacts(run.info.run_id, folder):
        found |= artifacts(client, run, file.path) if file.is_dir else {file.path}
    return found


def assert_complete(client: MlflowClient, run: Run, results: Path, to: Path) -> None:
    """It has ended, and has the files of the folder as they are."""
    assert run.info.status == "FINISHED"
    assert artifacts(client, run) == set(run.data.tags["files"].split(", ")) == FILES
    for name in FILES:
        copy = Path(client.download_artifacts(run.info.run_id, name, str(to)))
        assert copy.read_bytes() == (results / name).read_bytes()


def test_it_says_what_became_of_the_sweep(database: Path, outcome: Path, tmp_path: Path) -> None:
    uri = sqlite_uri(database)
    assert summarise(uri, outcome) == 0
    client = MlflowClient(uri)
    (run,) = summaries(client)
    assert_complete(client, run, outcome, tmp_path)
    assert run.info.run_name == "tier workstation"
    assert run.data.tags["tier"] == "workstation"
    assert run.data.tags["commit"] == COMMIT[:10]
    claims = json.loads((outcome / "claims.json").read_text())["claims"]
    verdicts = Counter(claim["verdict"] for claim in claims)
    assert run.data.metrics == {
        **{f"claims/{name.replace(' ', '_')}": verdicts[name] for name in get_args(Verdict)},
        **{"runs/finished": 2, "runs/diverged": 1, "runs/running": 0, "runs/missing": 1},
    }


def test_what_has_not_changed_adds_nothing(
    database: Path, outcome: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also when it was made anew."""
    uri, again = sqlite_uri(database), make_outcome(tmp_path / "again")
    assert summarise(uri, outcome) == 0
    assert capsys.readouterr().out == f"{uri}: {outcome} summarised\n"
    for results in (outcome, again):
        assert summarise(uri, results) == 0
        assert capsys.readouterr().out == f"{uri}: {results} has not changed\n"
    assert len(summaries(MlflowClient(uri))) == 1


def test_what_has_changed_is_a_new_run_beside_the_old_ones(
    database: Path, outcome: Path, tmp_path: Path
) -> None:
    """The newest one is what the folder holds, also when that goes back to what it was."""
    uri, other = sqlite_uri(database), make_outcome(tmp_path / "other", accuracy=0.8)
    client = MlflowClient(uri)
    for number, results in enumerate((outcome, other, outcome), start=1):
        assert summarise(uri, results) == 0
        runs = summaries(client)
        assert len(runs) == number
        assert_complete(client, runs[0], results, tmp_path)


@pytest.mark.parametrize(
    ("name", "number", "is_done"),
    [
        ("create_run", 1, True),
        ("log_batch", 1, False),
        ("log_artifact", 1, False),
        ("log_artifact", len(FILES), True),
        ("set_terminated", 1, False),
    ],
)
def test_one_that_was_cut_off_does_not_look_finished_and_is_replaced(
    database: Path,
    outcome: Path,
    tmp_path: Path,
    name: str,
    number: int,
    is_done: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    uri = sqlite_uri(database)
    client = MlflowClient(uri)
    with monkeypatch.context() as patch:
        method = getattr(MlflowClient, name)
        patch.setattr(MlflowClient, name, failing(method, number, is_done=is_done))
        assert summarise(uri, outcome) == 1
    assert "mlflow.db: cut off" in capsys.readouterr().err
    assert [run.info.status for run in summaries(client)] == ["RUNNING"]
    assert summarise(uri, outcome) == 0
    (run,) = summaries(client)
    assert_complete(client, run, outcome, tmp_path)


def test_on_a_server(server: Server, outcome: Path, tmp_path: Path) -> None:
    for _ in range(2):
        assert summarise(server.uri, outcome) == 0
    (run,) = summaries(server.client)
    assert_complete(server.client, run, outcome, tmp_path)


def test_tiers_do_not_replace_each_other(database: Path, outcome: Path, tmp_path: Path) -> None:
    uri, other = sqlite_uri(database), Path(shutil.copytree(outcome, tmp_path / "other"))
    manifest = json.loads((other / "sweep.json").read_text())
    (other / "sweep.json").write_text(json.dumps(manifest | {"tier": "smoke"}))
    for results in (outcome, other, outcome, other):
        assert summarise(uri, results) == 0
    tiers = [run.data.tags["tier"] for run in summaries(MlflowClient(uri))]
    assert tiers == ["smoke", "workstation"]


def test_half_an_outcome_is_refused(
    database: Path, outcome: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    half = Path(shutil.copytree(outcome, tmp_path / "half"))
    (half / "report.html").rename(half / "report.html.part")
    uri = sqlite_uri(database)
    assert summarise(uri, half) == 1
    assert capsys.readouterr().err == (
        f"lietransformer: {half} has no report.html, so its sweep cannot be summarised. "
        "Make it with `lietransformer tables`, `figures`, `claims` and `report`.\n"
    )
    assert summaries(MlflowClient(uri)) == []
