"""Results folders in which runs have the numbers of a claim's case."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lietransformer.experiments.cost import claims as complexity
from lietransformer.experiments.springs.claims.long_rollouts import LAST_STEP, OVER_STEPS
from lietransformer.experiments.springs.rollouts import TRANSFORMER
from tests.report.claim_cases import Cells
from tests.report.synthetic import Results, for_both_weights, mae

CONSTELLATIONS, MOLECULES = (1, 2, 3, 19, 20), (5, 6, 7, 8, 9, 21, 22)
ROLLOUTS = (13, 24)
PARAMETER_EFFICIENCY = (14, 15, 16, 23)
ABLATIONS = {17: "softmax", 25: "log_lift"}


def add_runs(results: Results, number: int, cells: Cells, **settings: Any) -> None:
    """Runs with these numbers; settings are the paper's, except those that are given."""
    if number in CONSTELLATIONS:
        _add_constellations(results, cells, settings)
    elif number in MOLECULES:
        _add_molecules(results, cells, settings)
    elif number == 12:
        _add_long_errors(results, cells, settings)
    elif number in ROLLOUTS:
        _add_rollouts(results, cells, settings)
    elif number == 4:
        results.add_invariance(cells)
    elif number == 18:
        add_costs(results, cells)
    else:
        for cell, sample in cells.items():
            _add_errors(results, number, cell, sample.values, settings)


def _add_molecules(results: Results, cells: Cells, settings: Mapping[str, Any]) -> None:
    for (model, augmentation, task), sample in cells.items():
        for seed, error in sample.values.items():
            results.add(
                ["qm9"],
                "qm9",
                model,
                target=task,
                augmentation=augmentation,
                seed=seed,
                status=_status(error),
                test=mae(float(error)),
                settings=settings,
            )


def _add_long_errors(results: Results, cells: Cells, settings: Mapping[str, Any]) -> None:
    for seed in cells[OVER_STEPS].values:
        over, last = (float(cells[name].values[seed]) for name in (OVER_STEPS, LAST_STEP))
        results.add(
            ["data_efficiency"],
            "springs",
            TRANSFORMER,
            n_train=10_000,
            seed=seed,
            status=_status(last),
            test=for_both_weights(test_long={"mse_geometric": over, "mse_last": last}),
            settings=settings,
        )


def _add_rollouts(results: Results, cells: Cells, settings: Mapping[str, Any]) -> None:
    for (model, size), sample in cells.items():
        for seed, curve in sample.values.items():
            results.add(
                ["data_efficiency"],
                "springs",
                model,
                n_train=size,
                seed=seed,
                status=_status(curve[0]),
                arrays={"final/test_long/squared": np.atleast_2d(curve).astype("f8")},
                settings=settings,
            )


def _add_errors(
    results: Results,
    number: int,
    cell: Any,
    values: Mapping[int, float],
    settings: Mapping[str, Any],
) -> None:
    """Runs of springs with a 5-step error."""
    ablation = None
    if number in ABLATIONS:
        part, (model, size, is_ablated) = "ablations", cell
        ablation = ABLATIONS[number] if is_ablated else None
    elif number in PARAMETER_EFFICIENCY:
        part, model, size = "parameter_efficiency", "-".join(cell), 3000
    else:
        part, (model, size) = "data_efficiency", cell
    for seed, error in values.items():
        own = {"mse_geometric": float(error)}
        results.add(
            [part],
            "springs",
            model,
            n_train=size,
            seed=seed,
            status=_status(error),
            test=for_both_weights(test=own, test_long=own),
            settings=settings,
            ablation=ablation,
        )


def _add_constellations(results: Results, cells: Cells, settings: Mapping[str, Any]) -> None:
    runs: dict[tuple[str, str, int], dict[str, float]] = {}
    for (model, augmentation, test), sample in cells.items():
        name = "test" if test == "none" else f"test_{test}"
        for seed, accuracy in sample.values.items():
            runs.setdefault((model, augmentation, seed), {})[name] = float(accuracy)
    for (model, augmentation, seed), sets in runs.items():
        test = for_both_weights(**{name: {"accuracy": value} for name, value in sets.items()})
        results.add(
            ["constellations"],
            "constellations",
            model,
            augmentation=augmentation,
            seed=seed,
            status=_status(next(iter(sets.values()))),
            test=test,
            settings=settings,
        )


def _status(value: float) -> str:
    return "finished" if np.isfinite(value) else "diverged"


def add_costs(
    results: Results,
    cells: Cells,
    sizes: Sequence[int] = (256, 1024, 4096),
    neighbourhoods: Sequence[int] = (8, 32, 128),
) -> None:
    """Measurements that grow as the curves do; the trick saves a factor of eight."""
    curve = cells["LieConv", "seconds", "set_size"]
    power = float(np.polyfit(np.log(curve.sizes), np.log(curve.costs), 1)[0])
    memory = {"LieSelfAttention": 1.0, "LieConv": 1.0, complexity.NAIVE: 8.0}
    points = [
        {
            "layer": layer,
            "set_size": size,
            "neighbourhood": near,
            "seconds": float(size) ** power * near,
            "megabytes": factor * float(size) ** power * near,
        }
        for layer, factor in memory.items()
        for size in sizes
        for near in neighbourhoods
    ]
    results.add_measurement("complexity", {"schema_version": 2, "measurements": points})
