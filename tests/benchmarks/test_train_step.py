"""The benchmark of training steps: what it compares with and what it says, not how fast."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from benchmarks import train_step
from benchmarks.comparison import (
    ROWS,
    Measurement,
    Row,
    read_baseline,
    with_baseline,
    write_baseline,
)
from benchmarks.train_step import RowFailed
from lietransformer.experiments.registry import get_preset

# The table of what to beat: the authors' cost, the goal (GEMM-GFLOP), and the batch.
EXPECTED = {
    "springs LieTransformer-T2 842k": (453, 180, 100),
    "springs LieTransformer-T2 139k": (208, 65, 100),
    "springs LieTransformer-SE2 139k": (535, 160, 100),
    "springs LieConv-T2 895k": (368, 180, 100),
    "constellations LieTransformer-T2": (80, 25, 32),
    "constellations LieTransformer-SE2": (88, 28, 32),
    "QM9 LieTransformer-T3": (2566, 600, 75),
    "QM9 LieConv-T3": (875, 440, 75),
}
CHEAP = "constellations LieTransformer-T2"


def measurement(gemm_gflop: float, **others: object) -> Measurement:
    figures: dict[str, object] = {
        "name": CHEAP,
        "gemm_gflop": gemm_gflop,
        "peak_gb": 1.0,
        "goal_gemm_gflop": 100.0,
        "seconds": gemm_gflop / 50,
        "gemm_gflops": 50.0,
        "original_gemm_gflop": 300.0,
        "baseline": None,
        "goal_peak_gb": None,
        "compile_seconds": 2.0,
    }
    return Measurement(**(figures | others))  # type: ignore[arg-type]


def test_all_rows_are_there() -> None:
    assert {row.name: (row.original, row.goal, row.batch_size) for row in ROWS} == EXPECTED
    peaks = {row.name: row.goal_peak_gb for row in ROWS if row.goal_peak_gb is not None}
    assert peaks == {"QM9 LieTransformer-T3": 3}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_rows_are_what_they_are_called(row: Row) -> None:
    task, model, *size = row.name.split()
    preset = get_preset(row.task, row.model)
    assert task.lower() == row.task
    assert row.model in (model, f"{model} small")
    if size:
        assert f"{preset.parameter_count / 1000:.0f}k" == size[0]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_runs_are_the_papers(row: Row) -> None:
    config = train_step.run_config(row, Path("data.h5"), threads=1)
    assert config.batch_size == row.batch_size
    assert (config.device, config.precision, config.threads) == ("cpu", "float32", 1)
    assert not config.compile, "C code is faster, and there at once"


@pytest.mark.slow
def test_one_row_from_the_command_to_its_figures(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    baseline = tmp_path / "baseline.json"
    baseline.write_text(json.dumps([{"name": CHEAP, "gemm_gflop": 12.5}]))
    monkeypatch.setattr(train_step, "BASELINE", baseline)
    arguments = ["--json", "--only", CHEAP, "--repetitions", "1", "--threads", "1"]
    assert train_step.main(arguments) == 0
    (row,) = json.loads(capsys.readouterr().out)
    figures = ("gemm_gflop", "peak_gb", "seconds", "gemm_gflops", "compile_seconds")
    assert all(isinstance(row[key], float) and row[key] > 0 for key in figures)
    assert row["gemm_gflop"] == pytest.approx(row["seconds"] * row["gemm_gflops"])
    assert {key: value for key, value in row.items() if key not in figures} == {
        "name": CHEAP,
        "goal_gemm_gflop": 25,
        "original_gemm_gflop": 80,
        "baseline": 12.5,
        "goal_peak_gb": None,
    }
    assert json.loads(baseline.read_text()) == [{"name": CHEAP, "gemm_gflop": 12.5}]


def test_a_process_that_fails_is_noticed(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    row = next(row for row in ROWS if row.name == CHEAP)
    with pytest.raises(RowFailed, match="exit code 1"):
        train_step.measure_apart(row, tmp_path / "missing.h5", repetitions=1, threads=1)
    assert "missing.h5" in capfd.readouterr().err


@pytest.mark.parametrize("as_json", [True, False])
def test_a_row_that_fails_does_not_hide_the_others(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    as_json: bool,
) -> None:
    def measured(row: Row, _: Path, **__: int) -> Measurement:
        if row.name == CHEAP:
            raise RowFailed("out of memory")
        return measurement(200.0, name=row.name)

    monkeypatch.setattr(train_step, "generate", lambda task, folder: folder / task)
    monkeypatch.setattr(train_step, "measure_apart", measured)
    monkeypatch.setattr(train_step, "BASELINE", tmp_path / "none.json")
    assert train_step.main(["--json"] if as_json else []) == 1
    captured = capsys.readouterr()
    assert f"{CHEAP} failed: out of memory" in captured.err
    if as_json:
        names = [row["name"] for row in json.loads(captured.out)]
        assert names == [name for name in EXPECTED if name != CHEAP]
    else:
        lines = {line[:36].strip(): line[36:].split() for line in captured.out.splitlines()}
        assert lines[CHEAP] == ["failed"]
        assert lines["QM9 LieConv-T3"] == ["300", "100", "200", "200", "-", "1.0", "half-way"]


@pytest.mark.parametrize(
    ("figures", "marks"),
    [
        (measurement(100.0), ("goal",)),
        (measurement(101.0), ("half-way",)),
        (measurement(200.0), ("half-way",)),
        (measurement(201.0), ("missed",)),
        (measurement(90.0, goal_peak_gb=1.0), ("goal",)),
        (measurement(90.0, goal_peak_gb=0.5), ("half-way", "over 0.5 GB")),
        (measurement(90.0, baseline=90.0), ("goal",)),
        (measurement(90.0, baseline=200.0), ("goal",)),
        (measurement(90.0, baseline=85.0), ("goal",)),
        (measurement(90.0, baseline=80.0), ("goal", "slower than baseline")),
        (measurement(201.0, baseline=100.0), ("missed", "slower than baseline")),
    ],
)
def test_marks(figures: Measurement, marks: tuple[str, ...]) -> None:
    assert figures.marks == marks


def test_a_row_without_committed_figure_is_compared_with_none() -> None:
    compared = with_baseline(measurement(90.0), {"other": {"gemm_gflop": 1.0}})
    assert compared.baseline is None
    assert not compared.is_regression


def test_figures_are_committed_and_compared_with(tmp_path: Path) -> None:
    path = tmp_path / "baseline.json"
    assert read_baseline(path) == {}
    other = measurement(50.0, name="QM9 LieConv-T3")
    write_baseline(path, [measurement(70.0), other], threads=2)
    write_baseline(path, [measurement(80.0)], threads=1)  # the other one stays
    baseline = read_baseline(path)
    assert {name: row["gemm_gflop"] for name, row in baseline.items()} == {
        CHEAP: 80.0,
        "QM9 LieConv-T3": 50.0,
    }
    assert baseline[CHEAP]["note"].startswith("torch ")
    assert baseline[CHEAP]["note"].endswith(", 1 threads")
    assert [list(row) for row in json.loads(path.read_text())] == 2 * [sorted(baseline[CHEAP])]
    assert with_baseline(measurement(89.0), baseline).is_regression
    assert not with_baseline(measurement(87.0), baseline).is_regression


@pytest.mark.parametrize(
    "arguments", [["--repetitions", "0"], ["--threads", "-1"], ["--only", "nothing"]]
)
def test_senseless_options_are_refused(arguments: list[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        train_step.main(arguments)


def test_figures_survive_the_way_between_processes() -> None:
    figures = measurement(1 / 3)
    assert Measurement(**json.loads(json.dumps(asdict(figures)))) == figures
