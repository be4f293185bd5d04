"""MLflow's web page in a real browser: what the README says can be done there."""

import json
import shutil
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from lietransformer.cli import main
from lietransformer.training.run_folder import RunFolder
from tests.browser import Browser, one_at_a_time
from tests.tracking.outcomes import make_outcome
from tests.tracking.runs import (
    MLFLOW_WARNINGS,
    RECORDS,
    make_run,
    settings_of_another,
    sqlite_uri,
)
from tests.tracking.server import free_port
from tests.tracking.ui import MakeUi, Ui, run_make_ui, serving

pytestmark = [MLFLOW_WARNINGS, one_at_a_time]

# A sweep of springs: names as the page shows them, and the settings behind.
_WIDER = "{width: 16, layers: 1}"
SPRINGS: dict[str, dict[str, object]] = {
    "Fully-connected (Hamiltonian) n=10 width=8 layers=1 seed 0": {},
    "Fully-connected (Hamiltonian) n=10 width=8 layers=1 seed 1": {"seed": 1},
    "Fully-connected (Hamiltonian) n=20 width=16 layers=1 seed 0": {
        "n_train": 20,
        "architecture": _WIDER,
    },
    "LieTransformer-T2 n=10 width=16 layers=1 seed 0": {
        "model": "LieTransformer-T2",
        "architecture": _WIDER,
    },
    "LieTransformer-SE2 n=10 width=16 layers=1 seed 0": {
        "model": "LieTransformer-SE2",
        "architecture": _WIDER,
    },
}
PLAIN, SECOND_SEED, WIDER, T2, SE2 = SPRINGS


@pytest.fixture(scope="module")
def page(
    tmp_path_factory: pytest.TempPathFactory,
    empty_database: Path,
    finished: RunFolder,
    springs_file: Path,
    constellations_file: Path,
) -> Iterator[MakeUi]:
    """`make ui` on the runs of two tasks and what they amount to."""
    results = tmp_path_factory.mktemp("ui") / "results"
    for number, changes in enumerate(SPRINGS.values()):
        settings_of_another(finished, results / f"runs/{number}", springs_file, **changes)
    make_run(
        results / "runs/constellations",
        constellations_file,
        task="constellations",
        model="LieTransformer-T2",
        architecture="{width: 8, layers: 1, heads: 1}",
        epochs=1,
        evaluations=1,
    ).execute()
    store = Path(shutil.copy(empty_database, results / "mlflow.db"))
    outcome = make_outcome(results.with_name("outcome"))
    tracking = ("--tracking", sqlite_uri(store))
    assert main(["sync", str(results / "runs"), *tracking]) == 0
    assert main(["sync", str(outcome), "--summary", *tracking]) == 0
    with serving(results.parent, store) as server:
        yield server


@pytest.fixture
def ui(page: MakeUi, browser: Browser) -> Iterator[Ui]:
    ui = Ui(browser, page.uri)
    yield ui
    assert ui.errors() == []
    assert browser.hosts() == {"127.0.0.1"}


@pytest.mark.slow
def test_it_says_where_it_is_and_sends_nothing_elsewhere(page: MakeUi) -> None:
    assert f"MLflow is at {page.uri}; Ctrl-C ends it." in page.log
    address = f"{page.uri}/ajax-api/3.0/mlflow/ui-telemetry"
    with urllib.request.urlopen(address) as answer:
        assert json.load(answer)["disable_ui_telemetry"] is True


def test_without_a_store_it_says_what_to_do(tmp_path: Path) -> None:
    process = run_make_ui(tmp_path / "mlflow.db", free_port())
    assert process.returncode != 0
    assert process.stderr.startswith(
        f"Expected runs in {tmp_path}/mlflow.db; found no such file. Run the experiments first: "
        "make reproduce.\n"
    )
    assert not (tmp_path / "mlflow.db").exists()


def test_an_experiment_for_each_task_and_one_for_summaries(ui: Ui) -> None:
    expected = {"constellations", "springs", "qm9", "summary", "Default"}
    ui.browser.expect(ui.experiments, expected)
    ui.open_experiment("constellations")
    ui.browser.wait(lambda: len(ui.runs()) == 1)


def test_runs_are_filtered_by_what_they_are(ui: Ui) -> None:
    ui.open_experiment("springs")
    ui.browser.expect(ui.runs, set(SPRINGS))
    hamiltonian = 'tags.model = "Fully-connected (Hamiltonian)"'
    for condition, names in {
        hamiltonian: {PLAIN, SECOND_SEED, WIDER},
        f'{hamiltonian} and tags.seed = "1"': {SECOND_SEED},
        'tags.`group` = "SE(2)"': {SE2},
        'tags.size = "1x16"': {WIDER, T2, SE2},
        'tags.n_train = "20"': {WIDER},
        'tags.n_train = "30"': set[str](),
        "": set(SPRINGS),
    }.items():
        ui.search(condition)
        ui.browser.expect(ui.runs, names)


def test_curves_of_runs_lie_over_each_other(ui: Ui) -> None:
    ui.open_experiment("springs")
    ui.search('tags.`group` != "none"')
    ui.browser.expect(ui.runs, {T2, SE2})
    ui.draw_curves("train/loss")
    ui.browser.expect(ui.curves, [{T2: RECORDS, SE2: RECORDS}])


def test_parallel_coordinates_of_runs(ui: Ui) -> None:
    ui.open_experiment("springs")
    ui.browser.expect(ui.runs, set(SPRINGS))
    ui.compare()
    ui.browser.wait(ui.parallel_coordinates)
    ui.choose(["group", "model"], "best/test/mse_geometric")
    places = dict.fromkeys(["group", "model", "best/test/mse_geometric"], len(SPRINGS))
    ui.browser.expect(ui.parallel_coordinates, places)


def test_tables_and_figures_are_artifacts_of_the_summary(ui: Ui) -> None:
    ui.open_experiment("summary")
    ui.open_run("tier workstation")
    ui.open_artifact("tables", "table1.md")
    ui.browser.find("#root", "LieTransformer-T2")
    ui.open_artifact("figures", "figure4.png")
    ui.browser.wait(ui.pictures)
