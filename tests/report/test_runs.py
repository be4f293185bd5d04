import json
import shutil
from pathlib import Path

import pytest

from lietransformer.errors import UserError
from lietransformer.report.provenance import provenance
from lietransformer.report.runs import finished, numbers, read_sweep
from lietransformer.training.loop import Run
from lietransformer.training.run_folder import RunFolder
from tests.report.synthetic import COMMIT, Results, accuracies, springs_errors
from tests.training.runs import tiny


def test_a_row_for_each_run_whatever_became_of_it(tmp_path: Path) -> None:
    results = Results(tmp_path, tier="workstation")
    part, task, model = ["constellations"], "constellations", "SetTransformer"
    results.add(part, task, model, seed=0, test=accuracies(0.5, 0.4, 0.3))
    results.add(part, task, model, seed=1, status="diverged", test=accuracies(0.1, 0.1, 0.1))
    results.add(part, task, model, seed=2, status="running")
    results.add(part, task, model, seed=3, status="missing")
    damaged = results.add(part, task, model, seed=4)
    (damaged / "result.json").write_text("{")
    results.write()

    sweep = read_sweep(tmp_path)

    outcome = ["finished", "diverged", "running", "missing", "missing"]
    assert list(sweep.runs["status"]) == outcome
    assert list(sweep.runs["seed"]) == [0, 1, 2, 3, 4]
    assert "cannot be read" in sweep.runs["reason"][4]
    assert sweep.runs["core_hours"][0] == 2
    assert (sweep.tier, sweep.is_reduced, sweep.commits) == ("workstation", True, (COMMIT,))
    assert len(finished(sweep.runs)) == 1
    assert numbers(sweep.runs, "best/test_T2/accuracy") == {0: 0.4}
    assert numbers(sweep.runs, "best/test/unheard-of") == {}


def test_only_listed_runs_count(tmp_path: Path) -> None:
    other = Results(tmp_path)
    other.add(["qm9"], "qm9", "LieConv-T3", target="mu", seed=0)
    mine = Results(tmp_path)
    mine.add(["qm9"], "qm9", "LieConv-T3", target="mu", seed=1)
    mine.write()
    assert list(read_sweep(tmp_path).runs["seed"]) == [1]


def test_without_a_manifest_all_runs_count(tmp_path: Path) -> None:
    results = Results(tmp_path, tier=None)
    results.add([], "springs", "LieConv-T2", n_train=10, test=springs_errors(1e-3))
    results.add([], "springs", "Fully-connected (Hamiltonian)", n_train=25, status="running")
    folder = results.add([], "springs", "LieTransformer-T2", n_train=10)
    stored = json.loads((folder / "config.json").read_text())
    stored["config"]["architecture"] = {"attention": {"normalisation": "softmax"}}
    (folder / "config.json").write_text(json.dumps(stored))

    sweep = read_sweep(tmp_path)

    assert sweep.tier is None
    assert "no sweep.json" in sweep.warnings[0]
    assert len(sweep.select("data_efficiency")) == 2
    assert list(sweep.select("parameter_efficiency")["model"]) == ["LieConv-T2"]
    assert list(sweep.select("ablations")["ablation"]) == ["softmax"]
    assert list(sweep.select(n_train=25)["status"]) == ["running"]
    assert len(sweep.select(ablation=None)) == 2


def test_copies_and_verifications_are_no_runs(tmp_path: Path) -> None:
    results = Results(tmp_path, tier=None)
    folder = results.add([], "springs", "LieConv-T2", n_train=10, test=springs_errors(1e-3))
    shutil.copytree(folder, tmp_path / "mlflow-artifacts" / "springs" / "0" / "artifacts")
    shutil.copytree(tmp_path / "runs", tmp_path / "verification" / "runs")
    assert len(read_sweep(tmp_path).runs) == 1


def test_a_tier_with_changed_settings_is_not_the_papers(tmp_path: Path) -> None:
    path = Results(tmp_path, tier="paper").write() / "sweep.json"
    assert not read_sweep(tmp_path).is_reduced
    path.write_text(json.dumps({**json.loads(path.read_text()), "is_changed": True}))
    sweep = read_sweep(tmp_path)
    assert sweep.is_reduced
    assert "CHANGED" in provenance(sweep, sweep.runs)[0]


def test_runs_of_different_settings_in_one_cell_are_pointed_out(tmp_path: Path) -> None:
    results = Results(tmp_path)
    results.add(["qm9"], "qm9", "LieConv-T3", target="mu", seed=0)
    folder = results.add(["qm9"], "qm9", "LieConv-T3", target="mu", seed=1)
    stored = json.loads((folder / "config.json").read_text())
    stored["config"]["epochs"] = 5
    (folder / "config.json").write_text(json.dumps(stored))
    results.write()
    (warning,) = read_sweep(tmp_path).warnings
    assert warning == "Runs of 2 different settings are mixed in qm9, LieConv-T3, mu."


def test_an_empty_folder_has_no_runs(tmp_path: Path) -> None:
    assert read_sweep(tmp_path).runs.empty


def test_a_folder_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="a folder of results"):
        read_sweep(tmp_path / "none")


@pytest.mark.parametrize("test", [None, [], {"best": None}, {"best": {"test": [1]}}])
def test_a_result_without_numbers(tmp_path: Path, test: object) -> None:
    results = Results(tmp_path)
    folder = results.add(["qm9"], "qm9", "LieConv-T3", target="mu")
    stored = json.loads((folder / "result.json").read_text())
    (folder / "result.json").write_text(json.dumps(stored | {"test": test, "seconds": None}))
    sweep = read_sweep(results.write())
    assert numbers(sweep.runs, "best/test/mae") == {}


@pytest.mark.parametrize(
    "content",
    [
        "{",
        "[]",
        '{"runs": 3}',
        '{"schema_version": 9, "runs": []}',
        '{"schema_version": 2, "runs": []}',
        '{"schema_version": 3, "runs": [{"folder": "runs/a"}]}',
        '{"schema_version": 3, "runs": [], "published_runs": [3]}',
    ],
)
def test_a_damaged_manifest_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "sweep.json").write_text(content)
    with pytest.raises(UserError, match="is not a list of runs"):
        read_sweep(tmp_path)


def test_a_real_run_is_read(tmp_path: Path, springs_file: Path) -> None:
    folder = tmp_path / "runs" / "one"
    result = Run(tiny(springs_file), RunFolder(folder)).execute()
    (row,) = read_sweep(tmp_path).runs.to_dict("records")
    assert row["status"] == "finished"
    assert row["parts"] == ("data_efficiency",)
    assert row["parameters"] == result["parameters"]
    for weights in ("best", "final"):
        own = result["test"][weights]["test_long"]["mse_geometric"]
        assert row[f"{weights}/test_long/mse_geometric"] == own
