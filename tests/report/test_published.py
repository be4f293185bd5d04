"""Published runs: from the archive to tables, figures, claims and the report."""

import csv
import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from lietransformer.cli import main
from lietransformer.errors import UserError
from lietransformer.experiments.registry import TABLES
from lietransformer.experiments.springs.figures.animation import write_animation
from lietransformer.experiments.springs.figures.pairs import find_pair, find_paths
from lietransformer.experiments.springs.rollouts import (
    CONVOLUTION,
    TRANSFORMER,
    predicted_positions,
    squared_errors,
    step_error,
    step_errors,
    trajectory_error,
    trajectory_errors,
)
from lietransformer.layout import MANIFEST
from lietransformer.report.claims import decide_all
from lietransformer.report.figures import draw_figure
from lietransformer.report.figures.drawing import notes
from lietransformer.report.prices import gpu_hours, not_run
from lietransformer.report.provenance import provenance
from lietransformer.report.report import write_report
from lietransformer.report.runs import Sweep, read_sweep
from lietransformer.report.tables import FORMATS
from tests.report.published import HOURS, add_archive, add_springs
from tests.report.synthetic import (
    COMMIT,
    STEPS,
    Results,
    accuracies,
    compact,
    rollout_arrays,
    write_json,
)

# Importing torch fails, as if it were not installed.
_WITHOUT_TORCH = """
import sys

class NoTorch:
    def find_spec(self, name, *_):
        if name.partition(".")[0] == "torch":
            raise ImportError("torch is not to be imported")

sys.meta_path.insert(0, NoTorch())
from lietransformer.cli import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture(scope="module")
def evidence(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results that are an archive and nothing else; not to be changed."""
    path = tmp_path_factory.mktemp("results")
    add_archive(path)
    return path


@pytest.fixture
def archive(evidence: Path, tmp_path: Path) -> Path:
    """The same archive, to be damaged."""
    shutil.copytree(evidence / "published", tmp_path / "published")
    return tmp_path / "published"


@pytest.fixture(scope="module")
def sweep(evidence: Path) -> Sweep:
    return read_sweep(evidence)


def test_an_archive_alone_is_read(evidence: Path, sweep: Sweep) -> None:
    assert sweep.tier == "workstation"
    assert set(sweep.runs["source"]) == {"published"}
    assert sweep.runs["folder"].str.startswith("published/runs/").all()
    assert sweep.runs["status"].value_counts().to_dict() == {"finished": 33, "missing": 3}
    itself = read_sweep(evidence / "published")
    assert itself.runs["folder"].str.startswith("runs/").all()
    assert list(itself.runs["status"]) == list(sweep.runs["status"])
    assert itself.prices == sweep.prices


def test_local_and_published_runs_together(archive: Path) -> None:
    results = Results(archive.parent, tier="workstation")
    test = accuracies(0.9, 0.9, 0.9)
    for seed in (1, 2):
        results.add(
            ["constellations"],
            "constellations",
            "SetTransformer",
            augmentation="none",
            seed=seed,
            test=test,
        )
    folder = "published/runs/constellations/settransformer/none/seed-0"
    results.runs.append({**results.runs[0], "folder": folder, "seed": 0, "source": "published"})
    sweep = read_sweep(results.write())
    assert list(sweep.runs["source"]) == ["local", "local", "published"]
    lines = provenance(sweep, sweep.runs)
    assert f"Published runs: 1, commit {COMMIT[:10]}, Xeon, Linux, python 3.11, torch 2.9." in lines
    assert f"Runs of this machine: 2, commit {COMMIT[:10]}." in lines
    table = TABLES["table1"].make(sweep)
    assert "(1† + 2)" in FORMATS["md"](table)
    assert r"1$\dagger$ + 2" in FORMATS["tex"](table)
    assert {row["source"] for row in _csv(sweep, "table1")} == {"both", ""}


def test_without_any_plan_the_runs_that_are_there_count(archive: Path) -> None:
    content = json.loads((archive / MANIFEST).read_text())
    write_json(archive / MANIFEST, content | {"sweep": {}})
    local = Results(archive.parent, tier=None)
    add_springs(local, [10], seeds=1)
    sweep = read_sweep(archive.parent)
    assert sweep.runs["source"].value_counts().to_dict() == {"published": 29, "local": 4}
    assert not sweep.runs.duplicated(["task", "model", "n_train", "augmentation", "seed"]).any()
    assert set(read_sweep(archive).runs["source"]) == {"published"}


# ---- damage


@pytest.mark.parametrize(
    "name",
    [
        "runs/springs/lieconv-t2/10/seed-0/result.json",
        "runs/springs/lieconv-t2/10/seed-0/evaluation.h5",
        "measurements/prices-0.json",
        "trajectories/n100-seed-0.h5",
    ],
)
@pytest.mark.parametrize("is_missing", [False, True])
def test_a_damaged_archive_is_an_error(archive: Path, name: str, is_missing: bool) -> None:
    file = archive / name
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    if is_missing:
        file.unlink()
    for results in (archive, archive.parent):
        with pytest.raises(UserError, match=r"archive .* is damaged: .*Restore it with"):
            read_sweep(results)


def test_a_run_that_the_manifest_does_not_know_is_not_published(archive: Path) -> None:
    content = json.loads((archive / MANIFEST).read_text())
    content["runs"].pop("runs/springs/lieconv-t2/10/seed-0")
    write_json(archive / MANIFEST, content)
    sweep = read_sweep(archive.parent)
    assert "Run folders in the archive (1, such as" in " ".join(sweep.warnings)
    statuses = sweep.select("data_efficiency", model=CONVOLUTION, n_train=10)["status"]
    assert [*statuses] == ["missing", "finished", "finished"]


def test_runs_of_an_archive_without_its_manifest_are_an_error(archive: Path) -> None:
    plan = json.loads((archive / MANIFEST).read_text())["sweep"]
    (archive / MANIFEST).unlink()
    write_json(archive / "sweep.json", plan)
    with pytest.raises(UserError, match=r"MANIFEST.json is missing\. Restore"):
        read_sweep(archive)


def test_a_damaged_plan_is_an_error(archive: Path) -> None:
    content = json.loads((archive / MANIFEST).read_text())
    write_json(archive / MANIFEST, content | {"sweep": {"runs": 3}})
    with pytest.raises(UserError, match=r"sweep.runs.*git checkout"):
        read_sweep(archive.parent)


@pytest.mark.parametrize("content", ["[]", '{"schema_version": 2}', '{"schema_version": 1}', "{"])
def test_prices_that_cannot_be_read_are_an_error(archive: Path, content: str) -> None:
    (archive / "measurements" / "prices-0.json").write_text(content)
    results = Results(archive)
    results.runs = json.loads((archive / MANIFEST).read_text())["sweep"]["runs"]
    sweep = read_sweep(results.write_archive())
    with pytest.raises(UserError, match="is not a list of prices"):
        assert sweep.prices


# ---- roll-outs


def test_compact_and_full_evaluations_give_the_same_errors(tmp_path: Path) -> None:
    full = rollout_arrays(1.0)
    full["final/test_long/squared"][0, 50:] = np.nan
    results = Results(tmp_path)
    for seed, arrays in enumerate((full, compact(full))):
        results.add(
            ["data_efficiency"], "springs", TRANSFORMER, n_train=10, seed=seed, arrays=arrays
        )
    sweep = read_sweep(results.write())
    one, other = sweep.runs.itertuples()
    for read in (step_errors, trajectory_errors):
        np.testing.assert_array_equal(read(sweep, one), read(sweep, other))
    squared = squared_errors(sweep, one)
    assert squared is not None
    np.testing.assert_array_equal(step_error(squared), step_errors(sweep, one))
    np.testing.assert_array_equal(trajectory_error(squared), trajectory_errors(sweep, one))
    assert np.isinf(step_error(squared)[50:]).all()
    assert squared_errors(sweep, other) is None
    assert predicted_positions(sweep, other) is None


@pytest.mark.slow
def test_published_paths_are_drawn_without_a_dataset(sweep: Sweep, tmp_path: Path) -> None:
    pair = find_pair(sweep, 100)
    assert pair is not None
    paths = find_paths(sweep, pair, [pair.median_ratio])
    assert {*paths} == {*pair.highlighted.values()}
    own = paths[pair.median_ratio]
    assert own.truth is not None
    assert own.truth.shape[0] == STEPS + 1
    assert {*own.predicted} == {TRANSFORMER, CONVOLUTION}
    for name in ("figure6", "figure11"):
        drawing = draw_figure(name, sweep)
        assert not drawing.missing
        assert len(drawing.figure.axes[0].get_lines()) == 3 * 6  # truth, prediction, start
    write_animation(sweep, tmp_path / "trajectory.gif")
    with Image.open(tmp_path / "trajectory.gif") as picture:
        assert getattr(picture, "n_frames", 1) == STEPS + 1


def test_paths_that_were_not_published_are_named(archive: Path) -> None:
    (archive / "trajectories" / "n100-seed-0.h5").unlink()
    content = json.loads((archive / MANIFEST).read_text())
    del content["files"]["trajectories/n100-seed-0.h5"]
    write_json(archive / MANIFEST, content)
    missing = draw_figure("figure6", read_sweep(archive)).missing
    assert "the true trajectories" in missing
    assert "`lietransformer verify springs/LieTransformer-T2/n100/seed-0 springs/L" in missing[-1]


def test_pairs_of_one_source_come_first(tmp_path: Path) -> None:
    results = Results(tmp_path)
    for model in (TRANSFORMER, CONVOLUTION):
        for seed in (0, 1):
            arrays = compact(rollout_arrays(1.0, seed=seed))
            results.add(
                ["data_efficiency"], "springs", model, n_train=400, seed=seed, arrays=arrays
            )
    sweep = read_sweep(results.write())
    sweep.runs.loc[0, "source"] = "published"
    pair = find_pair(sweep, 400)
    assert pair is not None
    assert pair.seed == 1


# ---- both beside each other


def test_figures_show_published_runs_beside_local_ones(archive: Path, sweep: Sweep) -> None:
    results = Results(archive.parent, tier="workstation")
    add_springs(results, [10], seeds=2, worse=2.0)
    published = read_sweep(archive).runs
    stored = json.loads((archive / MANIFEST).read_text())["sweep"]["runs"]
    results.published_runs = [{**run, "folder": f"published/{run['folder']}"} for run in stored]
    beside = read_sweep(results.write())
    assert set(beside.runs["source"]) == {"local"}
    assert beside.comparison is not None
    assert len(beside.comparison.runs) == len(published)
    for name in ("figure4", "figure5", "figure9"):
        drawing = draw_figure(name, beside)
        (legend,) = drawing.figure.legends
        assert "published runs (median)" in [text.get_text() for text in legend.get_texts()]
        dotted = [ln for ln in drawing.figure.axes[0].get_lines() if ln.get_linestyle() == ":"]
        assert len(dotted) == (4 if name == "figure4" else 2)
        assert f"published runs (commit {COMMIT[:10]}" in drawing.caption
    (first, *_) = (
        ln for ln in draw_figure("figure4", beside).figure.axes[0].get_lines()
        if ln.get_linestyle() == ":"
    )  # fmt: skip
    assert len(np.asarray(first.get_xdata())) == 2
    alone = draw_figure("figure4", sweep)
    assert not [ln for ln in alone.figure.axes[0].get_lines() if ln.get_linestyle() == ":"]


# ---- what was not run


def _csv(sweep: Sweep, name: str) -> list[dict[str, str]]:
    text = FORMATS["csv"](TABLES[name].make(sweep))
    return list(csv.DictReader(line for line in text.splitlines() if not line.startswith("#")))


def test_cells_that_nobody_has_run_have_a_price(sweep: Sweep) -> None:
    table1, table2 = (FORMATS["md"](TABLES[name].make(sweep)) for name in ("table1", "table2"))
    assert "not run (≥ 33 GPU-h)<br>paper 0.61 ± 0.02" in table1
    assert "0.59 ± 0.01 (3† of 4)<br>paper 0.58 ± 0.07" in table1
    assert "not run (≥ 4.1 GPU-h)<br>paper 0.125" in table2
    assert "hours of a GPU of 15,700 GFLOP/s (float32), a lower bound" in table2
    for text in (table1, table2):
        assert "missing" not in text
        assert "†: " not in text
    rows = _csv(sweep, "table2")
    assert {row["gpu_hours"] for row in rows if row["is_quoted"] == "False"} == {str(HOURS)}


def test_signs_that_a_table_does_not_show_are_not_explained(sweep: Sweep) -> None:
    text = FORMATS["md"](TABLES["draws"].make(sweep))
    assert "GPU-h" not in text
    assert "†" not in text


def test_figures_do_not_print_internal_names(tmp_path: Path) -> None:
    sweep = read_sweep(Results(tmp_path).write())
    for name in ("figure4", "figure7", "figure8"):
        axes = draw_figure(name, sweep).figure.axes
        assert not [own for axis in axes for own in axis.texts if "_" in own.get_text()]


def test_figures_say_the_price_of_what_they_do_not_show(sweep: Sweep) -> None:
    missing = draw_figure("figure4", sweep).missing
    assert len(missing) == 4
    assert missing[0].endswith(f"96,000, not run (≥ {8 * 10 * HOURS:.0f} GPU-h)")
    for name in ("figure5", "figure7", "figure9", "figure10"):
        drawing = draw_figure(name, sweep)
        assert any("GPU-h)" in text for text in drawing.missing)
        assert "GPU of 15,700 GFLOP/s" in " ".join(notes(sweep, drawing))


def test_claims_that_were_not_run_have_a_price(sweep: Sweep) -> None:
    decided = {claim.number: own for claim, own in decide_all(sweep)}
    assert decided[8].reason.endswith(f": ≥ {96 * HOURS:.0f} GPU-h.")
    assert decided[12].reason.endswith(f": ≥ {10 * HOURS:.0f} GPU-h.")
    assert "GPU-h" not in decided[4].reason  # nothing is trained
    assert "all published" in decided[11].rests_on


def test_prices_in_words() -> None:
    assert [not_run(hours) for hours in (None, 41.2)] == ["not run", "not run (≥ 41 GPU-h)"]
    assert [gpu_hours(hours) for hours in (0.01, 2.34, 12_345.0)] == [
        "under 0.1 GPU-h of arithmetic",
        "≥ 2.3 GPU-h",
        "≥ 12,345 GPU-h",
    ]


def test_no_price_is_said_without_prices(tmp_path: Path) -> None:
    sweep = read_sweep(Results(tmp_path).write())
    assert "GPU-h" not in FORMATS["md"](TABLES["table2"].make(sweep))
    assert sweep.prices.total([{"task": "qm9", "model": "LieConv-T3"}]) is None


# ---- the commands


@pytest.mark.parametrize("command", ["tables", "figures", "claims", "report"])
def test_commands_need_no_torch(evidence: Path, tmp_path: Path, command: str) -> None:
    out = tmp_path / "report.html" if command == "report" else tmp_path
    done = subprocess.run(
        [sys.executable, "-c", _WITHOUT_TORCH, command, str(evidence), "--out", str(out)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


@pytest.mark.parametrize("command", ["tables", "figures", "claims", "report"])
def test_nothing_is_written_to_an_archive(
    archive: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    before = sorted(archive.rglob("*"))
    assert main([command, str(archive)]) == 1
    assert "Give --out, or the results folder" in capsys.readouterr().err
    assert sorted(archive.rglob("*")) == before


def test_the_report_counts_both_kinds_of_runs(sweep: Sweep, tmp_path: Path) -> None:
    write_report(sweep, tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text()
    assert "33 runs say (33 published, 0 of this machine)" in text
    assert f"Published runs: 33, commit {COMMIT[:10]}" in text
    assert "Nothing was verified on this machine yet: <code>lietransformer verify</code>" in text


@pytest.mark.parametrize("damage", ["manifest", "run"])
def test_where_published_runs_are_ignored_a_damaged_archive_is_a_warning(
    archive: Path, damage: str
) -> None:
    local = Results(archive.parent, tier="workstation")
    add_springs(local, [10], seeds=1)
    inside = Results(archive)
    inside.runs = json.loads((archive / MANIFEST).read_text())["sweep"]["runs"]
    local.published_runs = inside.published_entries()
    local.published = "ignore"
    results = local.write()
    assert read_sweep(results).comparison is not None
    (archive / MANIFEST if damage == "manifest" else next(archive.rglob("result.json"))).write_text(
        "{"
    )
    sweep = read_sweep(results)
    assert sweep.comparison is None
    assert any("damaged" in text or "MANIFEST" in text for text in sweep.warnings)
    assert TABLES["table2"].make(sweep)
