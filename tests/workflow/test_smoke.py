"""The smoke tier from beginning to end, and what is done again after which change."""

import json
import os
import shutil
import time
from pathlib import Path
from typing import Any, get_args

import pytest
from mlflow import MlflowClient

from lietransformer.experiments.registry import FIGURES, TaskName
from lietransformer.settings import read_settings
from lietransformer.sweep.reading import merged
from tests.browser import Browser
from tests.tracking.runs import MLFLOW_WARNINGS
from tests.workflow.workplace import Workplace

# One process runs all of these: the first one takes a minute or two.
pytestmark = pytest.mark.xdist_group("smoke")


# `make test` leaves out most models of springs and QM9, and one draw.
FEWER: dict[str, Any] = {
    "springs": {
        "data_efficiency": {"models": ["Fully-connected (Hamiltonian)", "LieTransformer-T2"]},
        "parameter_efficiency": {"models": ["LieTransformer-SE2 small"]},
        "ablations": {"kinds": []},
        "draws": {"draws": 1},
    },
    "qm9": {"models": ["LieTransformer-T3", "SchNet"]},
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Workplace:
    """The smoke tier, complete; where slow tests are left out, with fewer models."""
    place = Workplace.make(tmp_path_factory.mktemp("smoke") / "project")
    if request.config.option.markexpr == "not slow":
        tier = place.path / "workflow" / "tiers" / "smoke.yaml"
        tier.write_text(json.dumps(merged(read_settings(tier), FEWER)))
    process = place.snakemake("--cores", "2")
    assert process.returncode == 0, process.stdout + process.stderr
    assert "Results of the tier smoke:" in process.stdout
    assert "report    results/report.html" in process.stdout
    return place


@pytest.fixture
def results(finished: Workplace) -> Path:
    return finished.path / "results"


def test_everything_is_there(results: Path) -> None:
    expected = {"report.html", "claims.md", "claims.json", "sweep.json", "mlflow.db"}
    expected |= {f"tables/table{n}.{kind}" for n in (1, 2) for kind in ("md", "csv", "tex")}
    expected |= {f"figures/{name}.{kind}" for name in FIGURES for kind in ("pdf", "png")}
    assert {name for name in expected if not (results / name).stat().st_size} == set()


def test_every_run_of_the_manifest_is_done(results: Path) -> None:
    manifest = json.loads((results / "sweep.json").read_text())
    done = [
        json.loads((results / run["folder"] / "result.json").read_text())
        for run in manifest["runs"]
    ]
    assert {run["task"] for run in done} == {*get_args(TaskName)}
    for run, result in zip(manifest["runs"], done, strict=True):
        assert result["status"] == "finished"
        assert result["sessions"] == 1
        for name in ("task", "model", "seed", "target", "augmentation"):
            assert result[name] == run[name]


def test_every_job_has_its_log_and_its_times(results: Path) -> None:
    summaries = sorted((results / "runs").rglob("seeds-*.json"))
    assert summaries
    for path in summaries:
        name = path.relative_to(results).with_suffix("")
        log = (results / "logs" / name).with_suffix(".log")
        assert "finished" in log.read_text()
        assert (results / "benchmarks" / name).with_suffix(".tsv").exists()


@MLFLOW_WARNINGS
@pytest.mark.parametrize("task", ["constellations", "springs", "qm9"])
def test_mlflow_has_every_run(results: Path, task: TaskName) -> None:
    manifest = json.loads((results / "sweep.json").read_text())
    planned = [run for run in manifest["runs"] if run["task"] == task]
    client = MlflowClient(f"sqlite:///{results / 'mlflow.db'}")
    experiment = client.get_experiment_by_name(task)
    assert experiment is not None
    tracked = client.search_runs([experiment.experiment_id])
    assert len(tracked) == len(planned)
    assert {run.info.status for run in tracked} == {"FINISHED"}
    assert {run.data.tags["model"] for run in tracked} == {run["model"] for run in planned}


@MLFLOW_WARNINGS
def test_mlflow_has_the_outcome(results: Path) -> None:
    client = MlflowClient(f"sqlite:///{results / 'mlflow.db'}")
    experiment = client.get_experiment_by_name("summary")
    assert experiment is not None
    (run,) = client.search_runs([experiment.experiment_id])
    assert run.info.status == "FINISHED"
    assert run.data.tags["tier"] == "smoke"
    manifest = json.loads((results / "sweep.json").read_text())
    assert run.data.metrics["runs/finished"] == len(manifest["runs"])


def test_a_browser_shows_snakemakes_own_report(
    finished: Workplace, tmp_path: Path, browser: Browser
) -> None:
    process = finished.snakemake("--cores", "1", "--report", str(tmp_path / "report.zip"))
    assert process.returncode == 0, process.stdout + process.stderr
    shutil.unpack_archive(tmp_path / "report.zip", tmp_path)
    page = (tmp_path / "report" / "report.html").as_uri()
    for category, caption in (
        ("Claims", "The paper's claims, each with the evidence"),
        ("Tables", "Not in the paper. Springs: test error"),
        ("Figures", "Not in the paper. Time and peak memory"),
    ):
        browser.open("about:blank")  # a page that is open already would keep its place
        browser.open(page)
        browser.click("li", category)
        browser.click("a[iconname=information-circle]")
        browser.find("body", caption)
    captions = browser.run("return Object.values(results).map(own => own.caption)")
    assert len(captions) == len(set(captions)) + 3 == 1 + 6 + 12  # tables are there in two formats
    browser.click("a", "Figures")
    browser.click("a[iconname=eye]")
    browser.wait(lambda: browser.run("return document.images[0]?.naturalWidth > 0"))
    assert browser.errors() == []
    assert browser.hosts() == set()


# ---- what is done again


def test_nothing_is_done_twice(finished: Workplace) -> None:
    assert finished.would_do() == {}


def test_a_comment_or_the_text_of_a_rule_re_trains_nothing(
    finished: Workplace, tmp_path: Path
) -> None:
    place = finished.copy(tmp_path / "project")
    for path in (place.path / "workflow" / "rules").glob("*.smk"):
        text = path.read_text().replace("exec lietransformer train", "exec lietransformer  train")
        path.write_text(text + "\n# A comment.\n")
    (place.path / "Snakefile").write_text((place.path / "Snakefile").read_text() + "\n# And one.\n")
    assert place.would_do() == {}


def test_a_dataset_that_was_touched_re_trains_nothing(finished: Workplace, tmp_path: Path) -> None:
    place = finished.copy(tmp_path / "project")
    for path in (place.path / "results" / "data").glob("*.h5"):
        os.utime(path, (time.time() + 60, time.time() + 60))
    assert place.would_train() == set()


def test_a_hyperparameter_re_trains_what_depends_on_it(finished: Workplace) -> None:
    change = ("--config", "constellations__training__learning_rate=0.01")
    trained = finished.would_train(*change)
    assert {name.split(" on ")[1].split()[0] for name in trained} == {"constellations"}
    rules = finished.would_do(*change)
    assert rules["train"] == len(trained) == 6
    assert "dataset" not in rules
    assert rules["table"] >= 1


def test_a_seed_more_trains_that_seed(finished: Workplace) -> None:
    trained = finished.would_train("--config", "qm9__seeds=2", "compute__seeds_per_job=1")
    by_seed = {name.rpartition(" seeds ")[2] for name in trained if " on qm9 " in name}
    assert by_seed == {"1"}


def test_how_it_is_computed_re_trains_nothing(finished: Workplace) -> None:
    changes = ("compute__checkpoint_every=5", "compute__device=cpu", "compute__threads=2")
    assert finished.would_train("--config", *changes, "compute__seeds_at_once=false") == set()


def test_a_summary_that_was_lost_is_made_again_without_training(
    finished: Workplace, tmp_path: Path
) -> None:
    place = finished.copy(tmp_path / "project")
    summary = next((place.path / "results" / "runs" / "qm9" / "schnet").rglob("seeds-0.json"))
    before = summary.read_text()
    summary.unlink()
    target = str(summary.relative_to(place.path))
    assert place.snakemake("--cores", "2", target).returncode == 0
    assert summary.read_text() == before


@pytest.mark.parametrize(
    ("removed", "rules"),
    [
        ("tables/table1.tex", {"table"}),
        ("figures/figure4.pdf", {"figure"}),
        ("figures", {"figure"}),
        ("claims.json", {"claims"}),
        ("mlflow.db", {"track"}),
    ],
)
def test_what_was_removed_is_made_again_without_training(
    finished: Workplace, tmp_path: Path, removed: str, rules: set[str]
) -> None:
    place = finished.copy(tmp_path / "project")
    path = place.path / "results" / removed
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    planned = place.would_do().keys() - {"all", "report_page", "total", "track_summary"}
    assert planned == rules


@pytest.mark.parametrize("tracking", ["none", "http://localhost:5000"])
def test_tracking_elsewhere_or_not_at_all_re_trains_nothing(
    finished: Workplace, tracking: str
) -> None:
    assert finished.would_train("--config", f"tracking={tracking}") == set()


def test_a_run_that_was_removed_is_trained_again(finished: Workplace, tmp_path: Path) -> None:
    place = finished.copy(tmp_path / "project")
    run = next((place.path / "results" / "runs" / "qm9" / "schnet").rglob("seed-0"))
    shutil.rmtree(run)
    trained = place.would_train()
    assert {name.split()[0] for name in trained} == {"schnet"}
