"""An archive of invented published runs, as `lietransformer publish` would leave it."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from lietransformer.data.writer import create_dataset
from lietransformer.experiments.constellations.tables import MODELS
from lietransformer.experiments.registry import claims as all_claims
from lietransformer.experiments.springs.figures.pairs import find_pair
from lietransformer.experiments.springs.rollouts import CONVOLUTION, TRANSFORMER
from lietransformer.layout import run_name
from lietransformer.reference import data_efficiency, table1
from lietransformer.report.figures.style import LOOKS
from lietransformer.report.runs import read_sweep
from tests.report.synthetic import (
    PARTICLES,
    STEPS,
    Results,
    accuracies,
    compact,
    rollout_arrays,
    springs_errors,
)

SIZES = (10, 100)
HOURS = 4.1  # of any run of the paper tier


def add_archive(results: Path, sizes: Iterable[int] = SIZES, seeds: int = 3) -> Results:
    """results/published with springs, constellations without augmentation, paths and prices."""
    archive = Results(results / "published", tier="workstation")
    add_springs(archive, sizes, seeds)
    for model in MODELS:
        paper = [table1()[model, "none", test].mean for test in ("none", "T2", "SE2")]
        for seed in range(seeds + 1):
            archive.add(
                ["constellations"],
                "constellations",
                model,
                augmentation="none",
                seed=seed,
                status="finished" if seed < seeds else "missing",
                test=accuracies(*(mean + 0.01 * seed for mean in paper)),
            )
    names = {run_name(labels) for claim in all_claims() for labels in claim.needs.configurations}
    archive.add_prices(dict.fromkeys(names, HOURS))
    archive.write_archive()
    for size in sizes:
        _add_paths(archive, size)
    archive.write_archive()
    return archive


def add_springs(results: Results, sizes: Iterable[int], seeds: int, *, worse: float = 1.0) -> None:
    """Figure 4 near the paper's medians, with compact evaluations."""
    for model in LOOKS:
        for size in sizes:
            for seed in range(seeds):
                level = worse * data_efficiency()[model][size].median * (0.8 + 0.2 * seed)
                arrays = compact(rollout_arrays(10 * level, seed=len(model) + seed))
                results.add(
                    ["data_efficiency"],
                    "springs",
                    model,
                    n_train=size,
                    seed=seed,
                    test=springs_errors(level),
                    arrays=arrays if model in (TRANSFORMER, CONVOLUTION) else None,
                )


def _add_paths(archive: Results, size: int) -> None:
    """The paths that Figures 6 and 11 draw."""
    pair = find_pair(read_sweep(archive.path), size)
    assert pair is not None
    drawn = sorted(set(pair.highlighted.values()))
    generator = np.random.default_rng(0)
    moves = generator.normal(0, 0.1, (len(drawn), STEPS + 1, PARTICLES, 2))
    truth = moves.cumsum(axis=1)
    path = archive.path / "trajectories" / f"n{size}-seed-{pair.seed}.h5"
    runs = {model: run.folder for model, run in pair.runs.items()}
    with create_dataset(path, kind="trajectories", config={"runs": runs}, seed=pair.seed) as file:
        file.write("drawn", np.array(drawn, dtype=np.int64))
        file.write("truth", truth.astype("f4"))
        for model, noise in ((TRANSFORMER, 0.02), (CONVOLUTION, 0.1)):
            errors = generator.normal(0, noise, truth[:, 1:].shape).cumsum(axis=1)
            file.write(model, (truth[:, 1:] + errors).astype("f4"))
