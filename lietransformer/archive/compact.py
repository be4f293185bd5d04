"""Evaluations small enough for git: errors per step and per trajectory, and the drawn paths."""

from collections.abc import Collection, Iterable
from pathlib import Path

import numpy as np

from lietransformer.data.reader import DatasetFile
from lietransformer.data.writer import create_dataset
from lietransformer.experiments.springs.figures.pairs import find_pair
from lietransformer.experiments.springs.rollouts import (
    TRANSFORMER,
    predicted_positions,
    step_error,
    trajectory_error,
)
from lietransformer.report.runs import read_sweep

_KEPT = ("best/test", "final/test_long")  # what tables, figures and claims read


def write_compact_evaluation(full: Path, target: Path) -> None:
    """Mean squared error at each step, and the geometric mean of each test trajectory."""
    file = DatasetFile(full, kind="evaluation")
    with create_dataset(target, kind="evaluation", config=file.config, seed=file.seed) as compact:
        for name in _KEPT:
            if f"{name}/squared" in file.names:
                squared = np.asarray(file.array(f"{name}/squared"), dtype=np.float64)
                compact.write(f"{name}/step_error", step_error(squared))
                compact.write(f"{name}/trajectory_error", trajectory_error(squared))


def write_trajectories(
    results: Path, published: Iterable[str], known: Collection[str], stage: Path
) -> list[str]:
    """The paths that Figures 6 and 11 draw, for every training size with both models.

    Args:
        results: with the full evaluations and the dataset.
        published: folders of all published runs, new ones included.
        known: files of the archive.
        stage: where new ones go.
    """
    if not (results / "runs").is_dir():
        return []
    # All runs below the folder, whatever is planned or published.
    sweep, runs, written = read_sweep(results / "runs"), set(published), []
    sizes = sweep.select("data_efficiency")["n_train"].dropna().unique()
    for size in sorted(int(size) for size in sizes):
        pair = find_pair(sweep, size)
        if pair is None or not {f"runs/{run.folder}" for run in pair.runs.values()} <= runs:
            continue
        name = f"trajectories/n{size}-seed-{pair.seed}.h5"
        data = results / "data" / Path(pair.runs[TRANSFORMER].data).name
        positions = {model: predicted_positions(sweep, run) for model, run in pair.runs.items()}
        is_complete = data.exists() and all(own is not None for own in positions.values())
        if name in known or not is_complete:
            continue
        drawn = sorted(set(pair.highlighted.values()))
        truth = DatasetFile(data, kind="springs", verify=False).array("test/long_states")
        config = {"runs": {model: f"runs/{run.folder}" for model, run in pair.runs.items()}}
        with create_dataset(
            stage / name, kind="trajectories", config={**config, "n_train": size}, seed=pair.seed
        ) as file:
            file.write("drawn", np.array(drawn, dtype=np.int64))
            file.write("truth", np.asarray(truth[drawn, :, 0], dtype=np.float32))
            for model, own in positions.items():
                assert own is not None
                file.write(model, own[drawn].astype(np.float32))
        written.append(name)
    return written
