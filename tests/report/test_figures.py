import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from PIL import Image

from lietransformer.cli import main
from lietransformer.experiments.registry import FIGURES
from lietransformer.experiments.springs.figures.pairs import Pair, find_pair
from lietransformer.experiments.springs.rollouts import CONVOLUTION, TRANSFORMER, squared_errors
from lietransformer.experiments.symmetry.lifting import example as lifting_example
from lietransformer.experiments.symmetry.lifting_config import LiftingConfig
from lietransformer.experiments.symmetry.measure import training_example
from lietransformer.reference import data_efficiency, rollout_error
from lietransformer.report.figures import draw_figure, write_figures
from lietransformer.report.figures.drawing import Drawing
from lietransformer.report.figures.style import LOOKS
from lietransformer.report.runs import read_sweep
from lietransformer.training.loop import Run
from lietransformer.training.run_folder import RunFolder
from tests.report.synthetic import TRAJECTORIES, Results, rollout_arrays, springs_errors
from tests.training.runs import tiny


def add_pairs(
    results: Results, sizes: Sequence[int], seeds: int = 3, truth: np.ndarray | None = None
) -> None:
    """Both models at some sizes; LieConv's error is four times LieTransformer's."""
    for model, factor in ((TRANSFORMER, 1.0), (CONVOLUTION, 4.0)):
        for size in sizes:
            for seed in range(seeds):
                level = factor * (1 + seed) / size
                results.add(
                    ["data_efficiency"],
                    "springs",
                    model,
                    n_train=size,
                    seed=seed,
                    test=springs_errors(level),
                    arrays=rollout_arrays(level, seed=int(seed + factor), truth=truth),
                )


def drawn(results: Path, name: str) -> Drawing:
    return draw_figure(name, read_sweep(results))


def axes_of(drawing: Drawing) -> list[Axes]:
    return drawing.figure.axes


def line(axis: Axes, label: str) -> np.ndarray:
    (own,) = (line for line in axis.get_lines() if line.get_label() == label)
    return np.asarray(own.get_xydata())


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_without_runs_says_what_is_missing(tmp_path: Path, name: str) -> None:
    png, pdf = write_figures(read_sweep(tmp_path), [name], tmp_path / "figures")
    assert png.read_bytes().startswith(b"\x89PNG")
    assert pdf.read_bytes().startswith(b"%PDF")
    drawing = drawn(tmp_path, name)
    assert drawing.missing
    texts = [text.get_text() for axis in axes_of(drawing) for text in axis.texts]
    assert any(text.startswith("not run") for text in texts)


def test_the_same_runs_give_the_same_files(tmp_path: Path) -> None:
    results = Results(tmp_path)
    add_pairs(results, [400])
    results.write()
    sweep = read_sweep(tmp_path)
    first = [path.read_bytes() for path in write_figures(sweep, ["figure5"], tmp_path / "a")]
    second = [path.read_bytes() for path in write_figures(sweep, ["figure5"], tmp_path / "b")]
    assert first == second


def test_figure3(tmp_path: Path) -> None:
    results = Results(tmp_path)
    results.add_invariance({1: [1.0, 2.0, 3.0], 10: [0.1, 0.2, 0.3]})
    results.write()
    drawing = drawn(tmp_path, "figure3")
    left, right = axes_of(drawing)
    points = line(left, "LieTransformer-SE2, one layer")
    assert points == pytest.approx(np.array([[1, 2], [10, 0.2]]))
    assert len(right.collections) == 4  # instances
    assert "D_train" not in drawing.caption  # an older measurement


def test_figure3_shows_the_training_example_in_a_colour_for_each_instance(tmp_path: Path) -> None:
    results = Results(tmp_path)
    results.add_invariance({1: [1.0, 2.0]})
    path = tmp_path / results.measurements["invariance"]
    example = training_example()
    path.write_text(json.dumps(json.loads(path.read_text()) | {"example": example}))
    results.write()
    drawing = drawn(tmp_path, "figure3")
    _, right = axes_of(drawing)
    assert f"example {example['training_index']} of D_train" in drawing.caption
    instances = set(example["instance"])
    colours = {tuple(np.asarray(own.get_facecolor())[0]) for own in right.collections}
    assert len(right.collections) == len(colours) == len(instances) > 4
    points = np.concatenate([np.asarray(own.get_offsets()) for own in right.collections])
    assert sorted(map(tuple, points)) == sorted(map(tuple, example["positions"]))
    names = sorted(text.get_text() for text in right.texts)
    assert len(names) == len(instances)
    assert set(names) == set(example["pattern"])


@pytest.mark.parametrize("content", ["{", "{}", '{"lift_samples": [1], "errors": []}'])
def test_figure3_of_a_damaged_file(
    tmp_path: Path, content: str, caplog: pytest.LogCaptureFixture
) -> None:
    results = Results(tmp_path)
    results.add_invariance({1: [1.0]})
    results.write()
    (tmp_path / results.measurements["invariance"]).write_text(content)
    assert drawn(tmp_path, "figure3").missing
    assert "cannot be read" in caplog.text


def test_figure4_shows_medians_and_names_what_is_missing(tmp_path: Path) -> None:
    results = Results(tmp_path)
    add_pairs(results, [10, 100])
    results.add(["data_efficiency"], "springs", CONVOLUTION, n_train=400, status="running")
    results.write()
    drawing = drawn(tmp_path, "figure4")
    short, long = axes_of(drawing)
    assert line(short, "LieTransformer-T2") == pytest.approx(np.array([[10, 0.2], [100, 0.02]]))
    assert line(long, "LieTransformer-T2") == pytest.approx(np.array([[10, 2], [100, 0.2]]))
    assert "LieConv-T2 at n = 400, no run with numbers" in drawing.missing
    assert len(short.get_lines()) == 2 + 4  # and the paper's
    assert len(long.get_lines()) == 2  # which has published 5 steps only


def published_bands(axis: Axes) -> list[np.ndarray]:
    """The corners of the hatched bands, without repetition."""
    bands = [own for own in axis.collections if own.get_hatch()]
    return [np.unique(own.get_paths()[0].vertices, axis=0) for own in bands]


def test_figure4_has_the_papers_bands_over_5_steps_only(tmp_path: Path) -> None:
    results = Results(tmp_path)
    add_pairs(results, [10, 100])
    results.write()
    drawing = drawn(tmp_path, "figure4")
    short, long = axes_of(drawing)
    assert not published_bands(long)
    published = data_efficiency()
    bands = published_bands(short)
    assert len(bands) == len(published)
    for band, model in zip(bands, LOOKS, strict=True):
        corners = [
            (n, value)
            for n, own in published[model].items()
            for value in {own.lower_quartile, own.upper_quartile}
        ]
        assert band == pytest.approx(np.array(sorted(corners)))
    (legend,) = drawing.figure.legends
    labels = [text.get_text() for text in legend.get_texts()]
    assert labels[-2:] == ["ours (median, quartiles)", "paper (median, quartiles)"]


@pytest.mark.parametrize(("size", "bands"), [(10_000, 2), (400, 0)])
def test_figure5_has_the_papers_bands_at_its_size(tmp_path: Path, size: int, bands: int) -> None:
    results = Results(tmp_path)
    add_pairs(results, [size])
    results.write()
    drawing = drawn(tmp_path, "figure5")
    (axis,) = axes_of(drawing)
    found = published_bands(axis)
    assert len(found) == bands
    assert ("paper's medians and interquartile ranges" in drawing.caption) == bool(bands)
    if found:
        last = rollout_error()[TRANSFORMER][99]
        assert found[0][-2:, 1] == pytest.approx([last.lower_quartile, last.upper_quartile])


@pytest.mark.parametrize("name", ["figure4", "figure5", "figure9"])
def test_a_legend_fits_into_its_figure(tmp_path: Path, name: str) -> None:
    results = Results(tmp_path)
    add_pairs(results, [400, 10_000], seeds=1)
    results.write()
    figure = drawn(tmp_path, name).figure
    canvas: Any = FigureCanvasAgg(figure)
    canvas.draw()
    box = figure.legends[0].get_window_extent()
    assert box.x0 >= 0
    assert box.x1 <= figure.bbox.x1


def test_figure5_takes_the_papers_size_or_the_largest(tmp_path: Path) -> None:
    results = Results(tmp_path)
    add_pairs(results, [100, 400])
    results.write()
    (axis,) = axes_of(drawn(tmp_path, "figure5"))
    assert axis.get_title() == "n = 400"
    points = line(axis, "LieConv-T2")
    assert len(points) == 99
    assert points[-1] == pytest.approx([99, 8 / 400])
    add_pairs(results, [10_000, 30_000])
    results.write()
    (axis,) = axes_of(drawn(tmp_path, "figure5"))
    assert axis.get_title() == "n = 10,000"


def test_a_damaged_evaluation_is_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    results = Results(tmp_path)
    add_pairs(results, [400], seeds=2)
    results.write()
    folders = [run["folder"] for run in results.runs if run["seed"] == 0]
    (tmp_path / folders[0] / "evaluation.h5").write_bytes(b"damaged")
    (tmp_path / folders[1] / "evaluation.h5").unlink()
    pair = find_pair(read_sweep(tmp_path), 400)
    assert pair is not None
    assert pair.seed == 1
    assert drawn(tmp_path, "figure5").missing == ["n = 10,000, not run"]
    assert "left out" in caplog.text


@pytest.mark.parametrize(("name", "panels"), [("figure6", 2), ("figure11", 4)])
def test_trajectories(
    tmp_path: Path, springs_truth: tuple[Path, np.ndarray], name: str, panels: int
) -> None:
    data, truth = springs_truth
    results = Results(tmp_path, data=data)
    add_pairs(results, [100, 300], truth=truth)
    results.write()
    drawing = drawn(tmp_path, name)
    assert not drawing.missing
    assert "300 examples" in drawing.caption  # the nearest to the paper's 400
    assert len(axes_of(drawing)) == panels
    assert ("is the median over all test trajectories" in drawing.caption) == (name == "figure6")
    pair = find_pair(read_sweep(tmp_path), 300)
    assert pair is not None
    chosen = pair.median_ratio if name == "figure6" else pair.worst(TRANSFORMER)
    assert f"MSE {pair.errors[TRANSFORMER][chosen]:.1e}" in axes_of(drawing)[0].get_title()
    assert len(axes_of(drawing)[0].get_lines()) == 3 * 6  # truth, prediction, start


@pytest.mark.slow
def test_an_animation_has_a_picture_for_each_state(
    tmp_path: Path, springs_truth: tuple[Path, np.ndarray], capsys: pytest.CaptureFixture[str]
) -> None:
    data, truth = springs_truth
    results = Results(tmp_path, data=data)
    add_pairs(results, [300], seeds=1, truth=truth)
    assert main(["animation", str(results.write())]) == 0
    path = tmp_path / "figures" / "trajectory.gif"
    assert str(path) in capsys.readouterr().out
    with Image.open(path) as picture:
        assert getattr(picture, "n_frames", 1) == 1 + truth.shape[1]  # the initial state


def test_nothing_to_animate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["animation", str(Results(tmp_path).write())]) == 1
    assert "Train LieTransformer-T2 and LieConv-T2" in capsys.readouterr().err
    assert not (tmp_path / "figures").exists()


def test_figure2_shows_the_example(tmp_path: Path) -> None:
    results = Results(tmp_path)
    path = results.add_measurement("lifting", lifting_example(LiftingConfig()))
    results.write()
    drawing = drawn(tmp_path, "figure2")
    assert not drawing.missing
    assert len(axes_of(drawing)) == 4
    path.write_text('{"elements": [[0, 0]]}')
    assert drawn(tmp_path, "figure2").missing


def test_costs_show_the_exponents(tmp_path: Path) -> None:
    results = Results(tmp_path)
    sizes = [(n, 4) for n in (16, 32, 64)] + [(32, k) for k in (2, 8)]
    points = [
        {"layer": layer, "set_size": n, "neighbourhood": k, "seconds": n * k**2, "megabytes": n * k}
        for layer in ("LieSelfAttention", "another")
        for n, k in sizes
    ]
    content = {"schema_version": 2, "measurements": points}
    path = results.add_measurement("complexity", content)
    results.write()
    drawing = drawn(tmp_path, "complexity")
    assert not drawing.missing
    texts = [{text.get_text() for text in axis.texts} for axis in axes_of(drawing)]
    assert texts == [{"power 1.00"}, {"power 2.00"}, {"power 1.00"}, {"power 1.00"}]
    path.write_text(json.dumps(content | {"measurements": [points[0] | {"seconds": -1}]}))
    assert drawn(tmp_path, "complexity").missing


STEP_SIZES = {"set_size": 64, "neighbourhood": 8, "lift_samples": 1, "layers": 2, "batch": 1}


def step_costs(powers: dict[str, float]) -> dict[str, Any]:
    """Training steps whose time grows with these powers of their sizes, and memory linearly."""
    points = []
    for name, held in STEP_SIZES.items():
        for factor in (1, 2, 4, 8):
            sizes = STEP_SIZES | {name: held * factor}
            seconds = math.prod(sizes[size] ** power for size, power in powers.items())
            # What does not grow is seen at the smallest size, which does not count.
            megabytes = math.prod(sizes.values()) + (100 if factor == 1 else 0)
            points.append({**sizes, "seconds": seconds, "megabytes": megabytes})
    return {
        "schema_version": 2,
        "settings": {"steps": {"held": STEP_SIZES}},
        "steps": [
            {"model": model, **point} for model in ("LieTransformer", "another") for point in points
        ],
    }


def test_growth_shows_the_exponents(tmp_path: Path) -> None:
    powers = dict(zip(STEP_SIZES, (2.0, 0.5, 1.5, 0.0, 1.0), strict=True))
    results = Results(tmp_path)
    path = results.add_measurement("complexity", step_costs(powers))
    results.write()
    drawing = drawn(tmp_path, "growth")
    assert not drawing.missing
    assert "64 points, 8 neighbours" in drawing.caption
    texts = [{text.get_text() for text in axis.texts} for axis in axes_of(drawing)]
    assert texts[:5] == [{f"{power:.2f}"} for power in powers.values()]
    assert texts[5:] == [{"1.00"}] * 5
    path.write_text(json.dumps(step_costs(powers) | {"settings": {}}))
    assert drawn(tmp_path, "growth").missing


@pytest.mark.parametrize("name", ["complexity", "growth"])
def test_costs_of_an_older_version_are_to_be_measured_again(
    tmp_path: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    results = Results(tmp_path)
    results.add_measurement("complexity", {"schema_version": 1, "measurements": []})
    results.write()
    assert drawn(tmp_path, name).missing
    assert "schema version must be 2, got 1" in caplog.text
    assert "snakemake --cores all complexity" in caplog.text


def test_trajectories_of_another_dataset_are_not_drawn(
    tmp_path: Path, springs_truth: tuple[Path, np.ndarray], caplog: pytest.LogCaptureFixture
) -> None:
    results = Results(tmp_path, data=springs_truth[0])
    add_pairs(results, [400])
    results.write()
    for file in tmp_path.rglob("result.json"):
        file.write_text(json.dumps(json.loads(file.read_text()) | {"dataset_hash": "other"}))
    assert drawn(tmp_path, "figure6").missing == ["the true trajectories"]
    assert "is not the dataset that" in caplog.text


@pytest.mark.parametrize(("name", "scale"), [("figure7", 1.0), ("figure8", 10.0)])
def test_parameter_efficiency(tmp_path: Path, name: str, scale: float) -> None:
    results = Results(tmp_path)
    errors = {"LieTransformer-SE2 small": 1e-3, "LieConv-T2": 1e-2, "LieConv-SE2": 5e-2}
    for model, error in errors.items():
        for seed in range(3):
            test = springs_errors(error * (1 + seed))
            results.add(
                ["parameter_efficiency"],
                "springs",
                model,
                n_train=3000,
                seed=seed,
                test=test,
                parameters=139_353,
            )
    results.write()
    drawing = drawn(tmp_path, name)
    assert not drawing.runs["model"].str.endswith("-SE2").any()
    (axis,) = axes_of(drawing)
    ticks = [text.get_text() for text in axis.get_xticklabels()]
    assert ticks == ["T(2)\nsmall", "T(2)", "SE(2)\nsmall"]
    medians = [float(np.asarray(line.get_ydata())[0]) for line in axis.get_lines()]
    assert sorted(medians) == pytest.approx([2e-3 * scale, 2e-2 * scale])
    assert "139k" in [text.get_text() for text in axis.texts]
    (missing,) = drawing.missing
    assert missing.count("Lie") == 4  # of the paper's six, which has no large SE2


def test_figure9_has_a_panel_for_each_size(tmp_path: Path) -> None:
    results = Results(tmp_path)
    add_pairs(results, [100, 400], seeds=1)
    results.write()
    drawing = drawn(tmp_path, "figure9")
    assert [axis.get_title() for axis in axes_of(drawing)] == ["n = 100", "n = 400"]
    assert drawing.missing == ["n = 1,000, 3,000, 10,000, 30,000, not run"]


def test_figure10_highlights_the_trajectories_of_figures_6_and_11(tmp_path: Path) -> None:
    results = Results(tmp_path)
    add_pairs(results, [100, 400])
    results.write()
    first, second = axes_of(drawn(tmp_path, "figure10"))
    assert len(first.collections) == 1
    assert len(second.collections) == 1 + 3
    pair = find_pair(read_sweep(tmp_path), 400)
    assert pair is not None
    worst = pair.worst(CONVOLUTION)
    assert pair.errors[CONVOLUTION][worst] == pair.errors[CONVOLUTION].max()
    (mark,) = (own for own in second.collections if own.get_label() == "Figure 6, median ratio")
    expected = [pair.errors[model][pair.median_ratio] for model in (TRANSFORMER, CONVOLUTION)]
    assert np.asarray(mark.get_offsets())[0] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("transformer", "convolution", "expected"),
    [
        ([1.0, 9.0, 4.0], [1.0, 3.0, 2.0], 2),  # ratios 1, 3, 2
        ([4.0, 1.0, 2.0, 3.0], [1.0] * 4, 2),  # the lower median of an even number
        ([np.inf, 2.0, np.inf, 0.0, 1.0], [np.inf, 1.0, 1.0, 1.0, np.inf], 0),  # a tie
    ],
)
def test_figure6_takes_the_trajectory_of_the_median_ratio(
    transformer: list[float], convolution: list[float], expected: int
) -> None:
    errors = {TRANSFORMER: np.array(transformer), CONVOLUTION: np.array(convolution)}
    assert Pair(400, {}, errors).median_ratio == expected


def test_a_prediction_that_flies_off_does_not_hide_the_truth(
    tmp_path: Path, springs_truth: tuple[Path, np.ndarray]
) -> None:
    data, truth = springs_truth
    results = Results(tmp_path, data=data)
    add_pairs(results, [300], seeds=1, truth=truth)
    for run in results.runs:
        if run["model"] == CONVOLUTION:
            with h5py.File(tmp_path / run["folder"] / "evaluation.h5", "r+") as file:
                file["final/test_long/positions"][0, 40:] = 1e12
                file["final/test_long/squared"][0, 40:] = np.inf
    results.write()
    far = axes_of(drawn(tmp_path, "figure11"))[2]
    assert np.ptp(far.get_xlim()) < 10 * np.ptp(truth[0])
    drawing = drawn(tmp_path, "figure10")
    assert [text for text in drawing.missing if "end of the axis" in text]
    points = [np.asarray(own.get_offsets()) for own in axes_of(drawing)[0].collections]
    marks = [own for own in points if len(own) == 1]
    assert len(marks) == 3
    assert np.isfinite(np.concatenate(marks)).all()


@pytest.mark.slow
@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("trajectories", [1, TRAJECTORIES])
def test_rollouts_that_left_the_range_of_numbers(
    tmp_path: Path, value: float, trajectories: int
) -> None:
    results = Results(tmp_path)
    for model in (TRANSFORMER, CONVOLUTION):
        arrays = rollout_arrays(1.0)
        for name in ("squared", "positions"):
            arrays[f"final/test_long/{name}"][:trajectories, 50:] = value
        results.add(["data_efficiency"], "springs", model, n_train=400, arrays=arrays)
    sweep = read_sweep(results.write())
    names = ["figure5", "figure6", "figure9", "figure10", "figure11"]
    assert len(list(write_figures(sweep, names, tmp_path / "figures"))) == 2 * len(names)
    pair = find_pair(sweep, 400)
    assert pair is not None
    assert np.isinf(pair.errors[TRANSFORMER][pair.worst(TRANSFORMER)])


def test_real_runs_are_drawn(tmp_path: Path, springs_file: Path) -> None:
    """What the engine writes is what the figures read: names of arrays, shapes, the dataset."""
    small = {"width": 8, "layers": 1}
    architectures = {TRANSFORMER: {**small, "heads": 2}, CONVOLUTION: small}
    for model, architecture in architectures.items():
        config = tiny(springs_file, model=model, architecture=architecture, epochs=1, evaluations=1)
        Run(config, RunFolder(tmp_path / model)).execute()
    for name in ("figure4", "figure5", "figure6", "figure10"):
        missing = drawn(tmp_path, name).missing
        assert all(text.endswith("not run") for text in missing), name
    sweep = read_sweep(tmp_path)
    stored = sweep.runs.set_index("model")["final/test_long/mse_geometric"]
    for run in sweep.runs.itertuples():
        squared = squared_errors(sweep, run)
        assert squared is not None
        geometric = np.exp(np.log(squared.mean(axis=0)).mean())
        assert geometric == pytest.approx(stored[run.model], rel=1e-5)
