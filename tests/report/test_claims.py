"""Each verdict follows from runs: the paper's numbers turn it one way, their opposite the other."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lietransformer.data.config import GeneratorConfig
from lietransformer.experiments.constellations.claims import ALL_MOVED
from lietransformer.experiments.constellations.plan import ConstellationsConfig
from lietransformer.experiments.cost.claims import SAVINGS
from lietransformer.experiments.cost.read import Curve
from lietransformer.experiments.qm9.claims import _quoted
from lietransformer.experiments.qm9.plan import QM9Config
from lietransformer.experiments.qm9.tables import TASKS
from lietransformer.experiments.registry import claims as all_claims
from lietransformer.experiments.springs.plan import SpringsConfig
from lietransformer.experiments.springs.rollouts import CONVOLUTION, TRANSFORMER
from lietransformer.layout import FOLDER, MANIFEST, empty_manifest
from lietransformer.reference import rollout_error
from lietransformer.report.claims import decide_all
from lietransformer.report.claims.documents import write_claims
from lietransformer.report.claims.protocol import DATA, _other, _smaller
from lietransformer.report.claims.rules import Ruling, every, most, not_worse
from lietransformer.report.claims.samples import ACCURACY, SPRINGS, Comparison, Sample, compare
from lietransformer.report.claims.verdict import (
    INCONCLUSIVE,
    NOT_REPRODUCED,
    NOT_RUN,
    REDUCED,
    REPRODUCED,
    Finding,
)
from lietransformer.report.runs import read_sweep
from lietransformer.training.config import RunConfig
from tests.report import claim_cases
from tests.report.claim_cases import Cells, opposite, published
from tests.report.claim_runs import ABLATIONS, CONSTELLATIONS, MOLECULES, add_costs, add_runs
from tests.report.synthetic import Results, for_both_weights

OTHER = "other settings than the paper's: "
_FACTOR = "Better, but by less than a factor of 2."
TRAINED = sorted(set(claim_cases.NUMBERS) - {4, 18})


def decide(results: Results, number: int) -> Finding:
    (claim,) = (claim for claim in all_claims() if claim.number == number)
    return claim.decide(read_sweep(results.write()))


def finding(path: Path, number: int, cells: Cells, **settings: Any) -> Finding:
    results = Results(path)
    add_runs(results, number, cells, **settings)
    return decide(results, number)


def diverged(cells: Cells, *, model: str = "") -> Cells:
    """All runs diverged, or those of one model."""
    return {
        cell: _diverged(cell, own) if model in str(cell) else own for cell, own in cells.items()
    }


def _diverged(cell: Any, own: Sample) -> Sample:
    worst = -math.inf if cell in claim_cases.TABLE1 else math.inf
    return Sample(own.name, {seed: np.full_like(v, worst) for seed, v in own.values.items()})


def test_there_are_25_claims() -> None:
    assert (
        [claim.number for claim in all_claims()]
        == list(range(1, 26))
        == sorted(claim_cases.NUMBERS)
    )


@pytest.mark.parametrize("number", claim_cases.NUMBERS)
def test_the_papers_numbers_bear_a_claim_out(tmp_path: Path, number: int) -> None:
    found = finding(tmp_path, number, published(number))
    assert (found.verdict, found.reductions) == (REPRODUCED, ())
    assert found.ours
    assert found.rests_on
    assert found.evidence


@pytest.mark.parametrize("number", claim_cases.NUMBERS)
def test_their_opposite_refutes_it(tmp_path: Path, number: int) -> None:
    assert finding(tmp_path, number, opposite(number)).verdict == NOT_REPRODUCED


@pytest.mark.parametrize("tier", [None, "paper", "smoke"])
def test_nothing_is_decided_without_runs(tmp_path: Path, tier: str | None) -> None:
    decided = decide_all(read_sweep(Results(tmp_path, tier=tier).write()))
    assert {own.verdict for _, own in decided} == {NOT_RUN}
    assert all("Needs" in own.reason for _, own in decided)


@pytest.mark.parametrize("number", TRAINED)
def test_runs_that_all_diverged_decide_nothing(tmp_path: Path, number: int) -> None:
    found = finding(tmp_path, number, diverged(published(number)))
    # An error below a bound needs no other model to be refuted.
    assert found.verdict == (NOT_REPRODUCED if number in (12, 22) else INCONCLUSIVE)
    assert found.verdict == NOT_REPRODUCED or "diverged" in found.reason
    assert number not in (5, 7, 8, 21) or "ll pairs of runs diverged" in found.reason
    assert "nan" not in found.ours
    assert "()" not in found.ours


@pytest.mark.parametrize("value", [math.nan, math.inf])
@pytest.mark.parametrize(
    ("number", "name", "content"), [(4, "invariance", "errors"), (18, "complexity", "measurements")]
)
def test_measurements_that_are_not_finite_decide_nothing(
    tmp_path: Path, number: int, name: str, content: str, value: float
) -> None:
    results = Results(tmp_path)
    add_runs(results, number, published(number))
    path = tmp_path / results.measurements[name]
    before = json.loads(path.read_text())
    before[content] = [
        [value for _ in own] if number == 4 else own | {"seconds": value} for own in before[content]
    ]
    path.write_text(json.dumps(before))
    assert decide(results, number).verdict == NOT_RUN
    cells: Cells = {
        cell: Curve(own.sizes, tuple(value for _ in own.costs)) if number == 18 else [value] * 100
        for cell, own in published(number).items()
        if cell != SAVINGS
    }
    (claim,) = (claim for claim in all_claims() if claim.number == number)
    with np.errstate(invalid="ignore"):
        assert claim.judge(cells).state == "undecided"


def test_runs_that_diverged_before_any_test_are_counted(tmp_path: Path) -> None:
    """No run has the column of the metric."""
    results = Results(tmp_path)
    for model in claim_cases.FIGURE4:
        for size in (10, 25, 50, 3000):
            for seed in range(3):
                results.add(
                    ["data_efficiency", "parameter_efficiency"],
                    "springs",
                    model,
                    n_train=size,
                    seed=seed,
                    status="diverged",
                )
    for number in (10, 11, 13, 14, 15, 16, 23, 24):
        assert decide(results, number).verdict in (INCONCLUSIVE, NOT_RUN)
    for number in (10, 11, 13, 24):
        found = decide(results, number)
        assert found.verdict == INCONCLUSIVE
        assert "diverged" in found.reason


def test_a_metric_that_was_not_measured_is_left_out(tmp_path: Path) -> None:
    """Absent is not measured; null is not finite."""
    results = Results(tmp_path)
    add_runs(results, 1, published(1))
    path = tmp_path / next(r["folder"] for r in results.runs if "T2" in r["model"]) / "result.json"
    before = json.loads(path.read_text())
    del before["test"]["best"]["test_T2_all"]
    path.write_text(json.dumps(before))
    found = decide(results, 1)
    assert found.verdict == REDUCED
    assert found.reductions == ("7 seeds instead of 8",)
    before["test"]["best"]["test_T2_all"] = {"accuracy": None}
    path.write_text(json.dumps(before))
    found = decide(results, 1)
    assert found.verdict == INCONCLUSIVE
    assert "1 of 8 diverged" in found.evidence[0]


@pytest.mark.parametrize("number", TRAINED)
def test_runs_that_have_not_ended_decide_nothing(tmp_path: Path, number: int) -> None:
    results = Results(tmp_path)
    add_runs(results, number, published(number))
    for file in tmp_path.rglob("result.json"):
        file.unlink()
    assert decide(results, number).verdict == NOT_RUN


@pytest.mark.parametrize("number", sorted(set(TRAINED) - set(MOLECULES)))
def test_two_seeds_do_not_decide(tmp_path: Path, number: int) -> None:
    results = Results(tmp_path)
    add_runs(results, number, published(number))
    for run in results.runs:
        if run["seed"] > 1:
            (tmp_path / run["folder"] / "result.json").unlink()
    assert decide(results, number).verdict == INCONCLUSIVE


@pytest.mark.parametrize(
    ("number", "model"),
    [
        (2, "LieTransformer-SE2"),
        (10, TRANSFORMER),
        (11, TRANSFORMER),
        (13, TRANSFORMER),
        (14, "LieTransformer"),
        (17, "False"),
    ],
)
def test_a_model_that_diverged_has_lost(tmp_path: Path, number: int, model: str) -> None:
    cells = diverged(published(number), model=model)
    assert finding(tmp_path, number, cells).verdict == NOT_REPRODUCED


def test_an_ablation_that_diverges_is_unstable(tmp_path: Path) -> None:
    cells = diverged(published(25), model="True")
    assert finding(tmp_path, 25, cells).verdict == REPRODUCED


@pytest.mark.parametrize(
    ("usual", "ablated", "verdict"),
    [
        ((1, 1, 1), (math.inf, math.inf, 1.1), REDUCED),
        ((1, 1, 1), (math.inf, 12, 1.1), REDUCED),
        ((1, 1, 1), (math.inf, 12, 0.9), INCONCLUSIVE),
        ((1, 1, math.inf), (math.inf, math.inf, 1), INCONCLUSIVE),
        ((1, 1, 1), (math.inf, 1.1, 1.1), INCONCLUSIVE),
        ((1, 1, 1, 1, 1), (math.inf, math.inf, 20, 0.9, 1), REPRODUCED),
    ],
)
def test_the_log_lift_is_unstable_in_most_runs(
    tmp_path: Path, usual: tuple[float, ...], ablated: tuple[float, ...], verdict: str
) -> None:
    model = "LieTransformer-SE2 small"
    cells = {(model, 3000, False): sample(*usual), (model, 3000, True): sample(*ablated)}
    found = finding(tmp_path, 25, cells)
    assert found.verdict == verdict
    assert "e+0" not in found.ours  # no stand-in for a run that diverged


# ---- QM9


def _molecules(number: int, lead: Callable[[str, str], float]) -> Cells:
    """The variant that a claim prefers is better by this factor, by architecture and task."""
    augmented = {5: ("SE3", "none"), 7: ("T3", "SO3"), 21: ("T3", "SO3"), 22: ("SE3", "none")}
    level = {task: min(errors) for task, errors in _quoted().items() if errors}
    return {
        (model, augmentation, task): sample(
            level.get(task, 1.0)
            / (lead(name, task) if (group, augmentation) == augmented[number] else 1.0)
        )
        for model, augmentation, task in claim_cases.TABLE2
        for name, group in [model.split("-")]
    }


@pytest.mark.parametrize("number", [5, 7, 21])
def test_a_claim_about_both_architectures_is_true_of_both(tmp_path: Path, number: int) -> None:
    worse = ("Cv", "G", "H", "r2", "U", "U0", "zpve")
    cells = _molecules(number, lambda *_: 2.0)
    assert finding(tmp_path / "both", number, cells).verdict == REPRODUCED
    conv = {f"LieConv{task}" for task in worse}
    cells = _molecules(number, lambda name, task: 1 / 3 if name + task in conv else 2.0)
    found = finding(tmp_path / "one", number, cells)
    assert found.verdict == INCONCLUSIVE
    assert "LieConv is better on 5 of 12 tasks" in found.reason
    conv = {f"LieConv{task}" for task in TASKS}
    cells = _molecules(number, lambda name, task: 1 / 3 if name + task in conv else 2.0)
    assert finding(tmp_path / "opposite", number, cells).verdict == NOT_REPRODUCED


@pytest.mark.parametrize("number", [5, 21, 22])
def test_near_ties_do_not_decide(tmp_path: Path, number: int) -> None:
    """A lead of 0.001 % on all tasks."""
    cells = _molecules(number, lambda *_: 1.00001)
    assert finding(tmp_path, number, cells).verdict == INCONCLUSIVE


def test_four_energies_are_one_target(tmp_path: Path) -> None:
    better = ("G", "H", "U", "U0", "gap", "homo")
    cells = _molecules(5, lambda name, task: 2.0 if "T" in name or task in better else 1.0)
    assert "12 of 18 targets better, 0 worse" in finding(tmp_path, 5, cells).ours


@pytest.mark.parametrize(("number", "verdict"), [(8, NOT_RUN), (9, REDUCED)])
def test_an_error_of_zero_was_not_measured(tmp_path: Path, number: int, verdict: str) -> None:
    cells = published(number)
    name = cells["LieConv-T3", "SO3", "homo"].name
    cells["LieConv-T3", "SO3", "homo"] = Sample(name, {0: 0.0})
    found = finding(tmp_path, number, cells)
    assert found.verdict == verdict
    assert verdict == NOT_RUN or found.reductions == ("11 of the paper's 12 tasks",)


def test_a_first_task_that_diverged_is_not_the_whole(tmp_path: Path) -> None:
    cells = {
        cell: sample(*[math.inf if cell[1:] == ("none", "alpha") else 1.0] * 3)
        for cell in published(6)
    }
    assert finding(tmp_path, 6, cells).verdict == INCONCLUSIVE


# ---- the protocol


@pytest.mark.parametrize(
    ("content_hash", "settings", "reductions"),
    [
        ("a", {}, ()),
        ("a", {"chunk": 9}, (f"{OTHER}chunk 9 instead of 5",)),
        ("b", {}, ("the dataset's settings are not known",)),
    ],
)
def test_data_of_an_unplanned_run_are_known_by_their_hash(
    tmp_path: Path, content_hash: str, settings: dict[str, int], reductions: tuple[str, ...]
) -> None:
    results = Results(tmp_path, tier=None)
    add_runs(results, 11, published(11))
    for file in tmp_path.rglob("result.json"):
        file.write_text(json.dumps({**json.loads(file.read_text()), "dataset_hash": "a"}))
    known = {"kind": "springs", "settings": settings, "content_hash": content_hash}
    manifest = json.dumps(empty_manifest() | {"datasets": {"springs-0": known}})
    (tmp_path / FOLDER).mkdir()
    (tmp_path / FOLDER / MANIFEST).write_text(manifest)
    assert decide(results, 11).reductions == reductions


def test_a_setting_that_was_not_recorded_is_not_the_papers(tmp_path: Path) -> None:
    results = Results(tmp_path)
    add_runs(results, 11, published(11))
    for file in tmp_path.rglob("config.json"):
        stored = json.loads(file.read_text())
        del stored["config"]["schedule_per"], stored["config"]["betas"]
        file.write_text(json.dumps(stored))
    found = decide(results, 11)
    assert (found.verdict, found.reductions) == (REDUCED, ("not recorded: betas, schedule per",))


@pytest.mark.parametrize(
    ("number", "settings", "phrase"),
    [
        (10, {"epochs": 100}, "100 epochs instead of 126–6,928"),
        (11, {"test_examples": 500}, "500 test examples instead of 2,000"),
        (14, {"architecture": {"layers": 2}}, "LieTransformer-T2 small with layers 2"),
        (2, {"n_train": 5_000}, "5,000 training examples instead of 10,000"),
        (5, {"n_train": 10_000}, "10,000 training examples instead of 100,000"),
        (5, {"epochs": 30}, "30 epochs instead of 500"),
        (9, {"learning_rate": 1e-3}, f"{OTHER}learning rate 0.001 instead of 0.0003–0.003"),
        (9, {"size_pool": 8}, f"{OTHER}size pool 8 instead of 1"),
        (11, {"betas": [0.5, 0.9]}, f"{OTHER}betas (0.5, 0.9) instead of (0.9, 0.999)"),
        (11, {"schedule": "constant"}, f"{OTHER}schedule constant instead of cosine"),
        (11, {"ema": 0.99}, f"{OTHER}ema 0.99 instead of none"),
        (11, {"precision": "bf16"}, f"{OTHER}precision bf16 instead of float32"),
        (11, {"evaluations": 10}, "10 evaluations instead of 100"),
        (11, {"validation_examples": 100}, "100 validation examples instead of 2,000"),
        (20, {"epochs": 300, "evaluations": 30}, "30 evaluations instead of 300"),
    ],
)
def test_smaller_runs_reproduce_at_reduced_scale(
    tmp_path: Path, number: int, settings: dict[str, Any], phrase: str
) -> None:
    found = finding(tmp_path, number, published(number), **settings)
    assert found.verdict == REDUCED
    assert phrase in found.reductions
    assert phrase in found.reason


def test_more_is_as_good(tmp_path: Path) -> None:
    better = {"precision": "float64", "evaluations": 1_000, "test_examples": 9_000}
    assert finding(tmp_path, 11, published(11), **better).reductions == ()


def test_other_data_are_another_setting(tmp_path: Path) -> None:
    data = {"variant": "text", "rotation": 0.0, "noise": 0.1, "train": 10_000}
    results = Results(tmp_path, config={"constellations": {"data": data}})
    add_runs(results, 20, published(20))
    found = decide(results, 20)
    assert found.verdict == REDUCED
    expected = f"{OTHER}variant text instead of release, rotation 0.0 instead of 0.33"
    assert found.reductions == (expected.replace("0.0 ", "0 "),)


@pytest.mark.parametrize(
    ("data", "reduction"),
    [
        ({"generation_batch": 100_000}, f"{OTHER}generation batch 100,000 instead of 5,000"),
        ({"systems": 50_000}, "50,000 systems instead of 100,000"),
    ],
)
def test_the_springs_data_are_the_papers(
    tmp_path: Path, data: dict[str, int], reduction: str
) -> None:
    results = Results(tmp_path, config={"springs": {"data": data}})
    add_runs(results, 11, published(11))
    assert decide(results, 11).reductions == (reduction,)


def test_the_papers_data_are_the_generators_defaults() -> None:
    generators: dict[str, type[GeneratorConfig]] = {
        "constellations": ConstellationsConfig,
        "springs": SpringsConfig,
        "qm9": QM9Config,
    }
    for task, expected in DATA.items():
        defaults = generators[task].model_fields
        assert {name: defaults[name].default for name in expected} == expected


@pytest.mark.parametrize("model", ["LieTransformer-T3", "LieConv-T3"])
@pytest.mark.parametrize("task", ["constellations", "springs", "qm9"])
def test_the_papers_settings_are_those_of_training(task: str, model: str) -> None:
    """A run with default settings differs from the paper in nothing."""
    names = {"constellations": "LieTransformer-T2", "springs": model[:-2] + "T2", "qm9": model}
    given: dict[str, Any] = {"task": task, "model": names[task], "data": "data.h5"}
    given |= {"n_train": 400 if task == "springs" else None}
    given |= {"target": "mu" if task == "qm9" else None}
    config = RunConfig.model_validate(given).model_dump(mode="json")
    assert [*_smaller(config, {}, {}), *_other(config, {})] == []


def test_fewer_seeds_are_a_reduction(tmp_path: Path) -> None:
    cells = {
        cell: Sample(own.name, dict([*own.values.items()][:5]))
        for cell, own in published(1).items()
    }
    found = finding(tmp_path, 1, cells)
    assert (found.verdict, found.reductions) == (REDUCED, ("5 seeds instead of 8",))


def test_what_an_ablation_changes_is_not_a_difference(tmp_path: Path) -> None:
    for number in ABLATIONS:
        assert finding(tmp_path / str(number), number, published(number)).reductions == ()
    changed = {"architecture": {"attention": {"normalisation": "softmax"}, "layers": 2}}
    found = finding(tmp_path / "smaller", 17, published(17), **changed)
    assert "LieTransformer-T2 with layers 2" in found.reductions


def test_a_small_dataset_is_a_reduction(tmp_path: Path) -> None:
    results = Results(tmp_path, config={"springs": {"data": {"test": 200}}})
    add_runs(results, 11, published(11))
    assert decide(results, 11).reductions == ("200 test examples instead of 2,000",)


def test_constellations_have_to_converge(tmp_path: Path) -> None:
    results = Results(tmp_path)
    add_runs(results, 20, published(20), epochs=40)
    assert decide(results, 20).verdict == REPRODUCED  # all stopped early
    for file in tmp_path.rglob("result.json"):
        file.write_text(json.dumps({**json.loads(file.read_text()), "stopped_early": False}))
    found = decide(results, 20)
    assert found.verdict == REDUCED
    assert found.reductions == ("40 epochs at most instead of 300",)


@pytest.mark.parametrize(
    ("number", "verdict"),
    [(10, REDUCED), (11, REDUCED), (12, NOT_RUN), (13, REDUCED), (24, REDUCED)],
)
def test_small_sizes_only(tmp_path: Path, number: int, verdict: str) -> None:
    """Sizes up to 100, three seeds: as the evidence sweep begins."""
    sizes, results = (10, 25, 50, 100), Results(tmp_path)
    if number in (13, 24):
        add_runs(results, number, claim_cases.rollouts(sizes, 5.0, 3))
    else:
        levels = zip(claim_cases.FIGURE4, (1.0, 6.0, 60.0, 600.0), strict=True)
        cells = {
            (model, size): claim_cases.around(f"{model} {size}", level / size, 3)
            for model, level in levels
            for size in sizes
        }
        add_runs(results, 10, cells)
    found = decide(results, number)
    assert found.verdict == verdict
    phrases = {
        10: "4 of the paper's 10 training set sizes",
        11: "4 of the paper's 10 training set sizes",
        13: "n = 100 instead of 10,000",
        24: "1 of the paper's 6 training set sizes",
    }
    assert verdict == NOT_RUN or phrases[number] in found.reductions


@pytest.mark.parametrize("number", MOLECULES)
def test_one_task_over_seeds(tmp_path: Path, number: int) -> None:
    """QM9 at a tenth: nothing is said about quoted errors, other claims compare seeds."""
    factors = {"T3": 2.0, "T3 SO3": 1.0, "SE3": 1.5, "SE3 SO3": 1.5}
    cells = {
        (model, augmentation, "homo"): claim_cases.around(
            f"{model} {augmentation}",
            factors[f"{model.split('-')[1]} {augmentation}".removesuffix(" none")]
            * (2.0 if "Conv" in model else 1.0),
            3,
            0.01,
        )
        for model, augmentation, task in claim_cases.TABLE2
        if task == "homo"
    }
    found = finding(tmp_path, number, cells, n_train=10_000, architecture={"width": 128})
    assert found.verdict == (INCONCLUSIVE if number in (8, 22) else REDUCED)
    assert "homo" in found.rests_on
    if found.verdict == REDUCED:
        assert "1 of the paper's 12 tasks" in found.reductions
    else:
        assert "full training" in found.reason


def test_three_numbers_of_lift_samples_are_a_reduction(tmp_path: Path) -> None:
    cells = {count: own for count, own in published(4).items() if count in (1, 3, 250)}
    found = finding(tmp_path, 4, cells)
    assert found.verdict == REDUCED
    assert found.reductions == ("3 numbers of lift samples, fewer than 8",)


@pytest.mark.parametrize(("t2", "se2"), [(0.001, 0.0), (-0.05, -0.1), (0.015, 0.001)])
def test_costs_much_less_than_nothing(tmp_path: Path, t2: float, se2: float) -> None:
    """A model that loses nothing leaves nothing to save."""
    costs = {"LieTransformer-T2": t2, "LieTransformer-SE2": se2}
    cells = {
        cell: sample(*(0.7 - costs[cell[0]] * (cell[2] == "SE2") + 1e-5 * np.arange(8)))
        for cell in published(3)
        if cell[0] in costs and cell[1] == "none" and cell[2] in ("none", "SE2")
    }
    found = finding(tmp_path, 3, cells)
    assert found.verdict == INCONCLUSIVE
    assert "LieTransformer-T2 is not known to lose 0.02 or more" in found.reason


def test_small_sets_are_a_reduced_measurement_of_costs(tmp_path: Path) -> None:
    results = Results(tmp_path)
    add_costs(results, published(18), sizes=(128, 256, 512), neighbourhoods=(8, 16, 32))
    found = decide(results, 18)
    assert found.verdict == REDUCED
    assert found.reductions == (
        "up to 512 group elements instead of 4,096",
        "up to 32 neighbours instead of 128",
    )


def test_another_model_than_that_of_figure_3(tmp_path: Path) -> None:
    results = Results(tmp_path)
    add_runs(results, 4, published(4))
    path = tmp_path / results.measurements["invariance"]
    content = json.loads(path.read_text())
    content["settings"] |= {"width": 16, "kernel_width": 4}
    path.write_text(json.dumps(content))
    found = decide(results, 4)
    assert found.verdict == REDUCED
    assert found.reductions[-1] == (
        "other settings than the paper's: width 16 instead of 8, kernel width 4 instead of 2"
    )


def test_an_ablation_is_compared_with_runs_of_its_own_part(tmp_path: Path) -> None:
    results = Results(tmp_path)
    add_runs(results, 17, published(17))
    before = decide(results, 17)
    for seed in range(3):
        labels: dict[str, Any] = {"n_train": 3000, "draw": 1}
        test = for_both_weights(test={"mse_geometric": 1e3})
        results.add(["draws"], "springs", "LieTransformer-T2", seed=seed, test=test, **labels)
    assert decide(results, 17) == before


def test_the_papers_advantage_in_figure_5() -> None:
    curves = [rollout_error()[model] for model in (CONVOLUTION, TRANSFORMER)]
    ratios = [curves[0][step].median / curves[1][step].median for step in sorted(curves[0])]
    (claim,) = (claim for claim in all_claims() if claim.number == 13)
    assert claim.paper == (
        f"×{min(ratios):.1f} to ×{max(ratios):.1f}, ×{ratios[-1]:.1f} at the last step"
    )


def test_columns_that_were_not_run(tmp_path: Path) -> None:
    cells = {cell: own for cell, own in published(2).items() if cell[1] == "none"}
    found = finding(tmp_path, 2, cells)
    assert (found.verdict, found.reductions) == (REDUCED, ("6 of 12 comparisons",))
    assert found.evidence[-1] == "not run: 6 of 12 comparisons"


@pytest.mark.parametrize(
    ("number", "left_out"),
    [
        (2, lambda cell: cell[0] == "LieTransformer-SE2"),
        (2, lambda cell: cell[1:] == ("none", "T2")),
        (14, lambda cell: cell[1] != "T2"),
        (14, lambda cell: cell[1] == "SE2 small"),
        (15, lambda cell: cell == ("LieConv", "T2 small")),
        (16, lambda cell: cell == ("LieConv", "T2 small")),
        (20, lambda cell: cell[2] == "T2"),
        (23, lambda cell: cell[0] == "LieConv"),
        (23, lambda cell: cell == ("LieConv", "T2")),
    ],
)
def test_a_claim_about_several_models_needs_all_of_them(
    tmp_path: Path, number: int, left_out: Callable[[Any], bool]
) -> None:
    cells = {cell: own for cell, own in published(number).items() if not left_out(cell)}
    found = finding(tmp_path, number, cells)
    assert found.verdict == NOT_RUN
    assert "Needs" in found.reason


def test_invariance_needs_the_set_in_which_every_example_is_moved(tmp_path: Path) -> None:
    cells = {cell: own for cell, own in published(1).items() if cell[2] != ALL_MOVED}
    assert finding(tmp_path, 1, cells).verdict == NOT_RUN


def test_runs_of_the_smoke_tier_decide_nothing(tmp_path: Path) -> None:
    results = Results(tmp_path, tier="smoke")
    add_runs(results, 1, published(1))
    decided = {claim.number: own for claim, own in decide_all(read_sweep(results.write()))}
    assert {decided[number].verdict for number in CONSTELLATIONS} == {INCONCLUSIVE}
    assert decided[1].reason == "Runs of the smoke tier are too short to decide anything."
    assert {decided[number].verdict for number in MOLECULES} == {NOT_RUN}


# ---- comparisons


def sample(*values: float) -> Sample:
    return Sample("", dict(enumerate(values)))


def outcome(*gaps: float) -> str | None:
    """Of a comparison with these log-ratios in favour of the first."""
    (compared,) = compare(SPRINGS, [("", sample(*[1.0] * len(gaps)), sample(*np.exp(gaps)))])
    return compared.outcome


def test_three_seeds_take_agreement_and_a_factor() -> None:
    assert outcome(1.0, 1.1, 0.9) == "win"
    assert outcome(-1.0, -1.1, -0.9) == "loss"
    assert outcome(0.3, 0.31, 0.29) == "tie"  # below the factor of 1.5
    assert outcome(0.5, 2.0, 1.0) == "tie"  # one side, but spread too much
    assert outcome(1.0, 1.1) == "tie"
    assert outcome(0.3, 0.31, 0.29, 0.3, 0.3) == "win"


def test_signs_decide_where_runs_diverged() -> None:
    gone = math.inf
    assert outcome(gone, 1.0, 0.5) == "win"
    assert outcome(gone, 1.0, 0.1) == "tie"  # below the factor of 1.5
    assert outcome(gone, gone, -0.1) == "tie"
    assert outcome(gone, gone) == "tie"
    assert outcome(gone, 0.1, 0.2, 0.1, 3.0) == "win"
    assert outcome(gone, 0.1, 0.2, 0.1, -0.1) == "tie"


def test_a_run_that_diverged_has_no_number() -> None:
    pairs = [("", sample(1, 1, 1), sample(2, 8, math.inf))]
    (compared,) = compare(SPRINGS, pairs)
    assert compared.interval == "×4 (1 of 3 diverged)"
    assert "5 (1 of 3 diverged), ratio" in compared.describe()
    (compared,) = compare(SPRINGS, pairs, at_least=math.log(2))
    assert compared.interval == "×4 (1 of 3 diverged)"
    (compared,) = compare(SPRINGS, [("", sample(1, 1, 1), sample(*[math.inf] * 3))])
    assert compared.interval == "the other diverged"
    (compared,) = compare(SPRINGS, [("", sample(*[math.inf] * 3), sample(1, 1, 1))])
    assert compared.interval == "diverged"


def test_pairs_are_those_of_shared_seeds() -> None:
    first, second = (
        Sample("", {0: 1.0, 1: 1.0, 2: 1.0, 3: 9.0}),
        Sample("", {0: 2.0, 1: 4.0, 2: 8.0}),
    )
    (compared,) = compare(SPRINGS, [("", first, second)])
    assert compared.gaps == pytest.approx([math.log(2), math.log(4), math.log(8)])
    elsewhere = Sample("", {7: 2.0, 8: 2.0, 9: 2.0})
    (compared,) = compare(SPRINGS, [("", first, elsewhere)])
    assert compared.gaps == pytest.approx([math.log(2)] * 3)


def test_two_that_diverged_decide_nothing() -> None:
    gone = sample(*[math.inf] * 3)
    (compared,) = compare(SPRINGS, [("", gone, gone)])
    assert (compared.outcome, compared.gaps) == ("tie", ())
    (compared,) = compare(SPRINGS, [("", sample(1, 1, 1), gone)])
    assert compared.outcome == "win"
    (compared,) = compare(ACCURACY, [("", sample(0.7, 0.7, 0.7), sample(*[-math.inf] * 3))])
    assert compared.outcome == "win"


def test_one_near_tie_does_not_decide() -> None:
    others = (sample(9, 9, 9), sample(0.1, 0.1, 0.1), sample(1, 1.1, 0.9))
    ones = sample(1, 1, 1)
    win, loss, tie = (compare(SPRINGS, [("", ones, other)])[0] for other in others)
    assert every([win, win, tie]).state == "holds"
    assert every([win, tie]).state == "undecided"
    assert every([win, win, loss]) == Ruling("fails", "worse in 1 of 3 comparisons")
    assert every([loss, loss]) == Ruling("fails", "the runs say the opposite")
    assert every([win, tie, tie]).reason == "not separated in 2 of 3 comparisons"
    assert every([]).state == most([]).state == "not run"
    assert most([win, win, loss]).state == "holds"
    assert most([loss, loss, win]).state == "fails"
    assert most([tie, tie, tie, win]).state == "undecided"


def test_what_may_be_worse_is_not_a_near_tie() -> None:
    ones = sample(1, 1, 1)
    (win,) = compare(SPRINGS, [("", ones, sample(9, 9, 9))])
    (spread,) = compare(SPRINGS, [("", ones, sample(0.01, 0.5, 0.7))])
    (few,) = compare(SPRINGS, [("here", ones, sample(0.01, 0.01))])
    (one,) = compare(SPRINGS, [("there", ones, sample(9))])
    assert spread.outcome == few.outcome == "tie"
    assert every([win, win, spread]).reason == "not separated in 1 of 3 comparisons"
    assert every([win, win, few]).reason == "two seeds (here); three are needed"
    assert every([win, win, one]).reason == "one seed (there); three are needed"
    assert every([one]).reason == "one seed; three are needed"


def test_seeds_that_agree_at_every_size_are_not_independent() -> None:
    """Three seeds, ten sizes: 20 of 30 pairs are better, all of them of two lucky seeds."""
    lucky = [1.5, 1.5, 0.9]
    compared = compare(SPRINGS, [(str(k), sample(1, 1, 1), sample(*lucky)) for k in range(10)])
    assert sum(gap > 0 for own in compared for gap in own.gaps) == 20
    assert most(compared).state == "undecided"


# ---- reasons


@pytest.mark.parametrize(
    ("number", "change", "verdict", "reason"),
    [
        (11, lambda c: _seeds(c, 1), INCONCLUSIVE, "One seed; three are needed."),
        (11, lambda c: _sizes(c, 2), INCONCLUSIVE, "Two sizes; three are needed."),
        (10, lambda c: _seeds(c, 2), INCONCLUSIVE, "Two seeds; three are needed."),
        (17, lambda _: claim_cases.ablation(TRANSFORMER, 1.4), NOT_REPRODUCED, _FACTOR),
        (1, lambda _: opposite(1), NOT_REPRODUCED, "the difference is larger than ±0.005"),
        (14, lambda _: opposite(14), NOT_REPRODUCED, "The runs say the opposite."),
        (4, lambda _: opposite(4), NOT_REPRODUCED, "The error rises from 1 to 2 lift samples."),
    ],
)
def test_reasons_are_true(
    tmp_path: Path, number: int, change: Callable[[Cells], Cells], verdict: str, reason: str
) -> None:
    found = finding(tmp_path, number, change(published(number)))
    assert found.verdict == verdict
    assert reason in found.reason


def _seeds(cells: Cells, count: int) -> Cells:
    return {
        cell: Sample(own.name, {k: v for k, v in own.values.items() if k < count})
        for cell, own in cells.items()
    }


def _sizes(cells: Cells, count: int) -> Cells:
    sizes = sorted({size for _, size in cells})[:count]
    return {cell: own for cell, own in cells.items() if cell[1] in sizes}


def test_both_roll_outs_overflow(tmp_path: Path) -> None:
    cells = claim_cases.rollouts((100, 400, 1_000), 3.0, 3)
    for model in (TRANSFORMER, CONVOLUTION):
        cells[model, 100].values[1][60:] = np.inf
    found = finding(tmp_path, 24, cells)
    assert found.verdict == REDUCED
    assert "nan" not in found.ours


def test_no_comparison_counts_twice(tmp_path: Path) -> None:
    for number, count in ((15, 6), (23, 7)):
        found = finding(tmp_path / str(number), number, published(number))
        assert len(found.evidence) == len(set(found.evidence)) == count


def test_a_claim_rests_on_the_runs_that_it_uses(tmp_path: Path) -> None:
    assert finding(tmp_path, 16, published(16)).rests_on.startswith("20 runs")


# ---- the files


def test_documents(tmp_path: Path) -> None:
    results = Results(tmp_path, tier="workstation")
    add_runs(results, 1, published(1))
    sweep = read_sweep(results.write())
    markdown, structured = write_claims(sweep, decide_all(sweep), tmp_path / "out")
    text = markdown.read_text()
    counts = "5 reproduced, 0 reproduced at reduced scale, 0 not reproduced, 0 inconclusive, "
    assert f"Of 25 claims: {counts}20 not run." in text
    assert text.index("| claim | paper | ours") < text.index("## 1.")
    ours = "D_test +0.040 [+0.020, +0.060], D_test^T2 +0.040"
    assert f"| +0.04 and +0.04 | {ours}" in text
    assert "| not run | needs 10 runs of 219 epochs on 10,000 systems" in text
    assert "left out" not in text
    assert "except those of claims 4, 14–18 and 23–25" in text
    assert "REDUCED" not in text
    assert "16 runs, 8 seeds each" in text
    assert "missing" not in text.split("## 4.")[1].split("## 19.")[0]
    content = json.loads(structured.read_text())
    assert content["schema_version"] == 2
    assert [claim["number"] for claim in content["claims"]] == list(range(1, 26))
    assert content["claims"][0]["verdict"] == REPRODUCED
    assert all(claim["rule"] and claim["paper"] and claim["needs"] for claim in content["claims"])


def test_sizes_in_words(tmp_path: Path) -> None:
    found = finding(tmp_path, 13, claim_cases.rollouts((10, 400), 4.0, 3))
    assert found.rests_on == "6 runs, 3 seeds each, n = 400"
    assert CONVOLUTION in found.evidence[0]


@pytest.mark.parametrize(
    ("low", "high", "state"),
    [(-0.9, 0.5, "holds"), (-1.1, 0.5, "undecided"), (-3.0, -1.1, "fails")],
)
def test_not_worse_means_that_the_whole_interval_is_within_the_margin(
    low: float, high: float, state: str
) -> None:
    sample = Sample("model", {})
    gaps = dict.fromkeys(range(3), (low + high) / 2)
    compared = Comparison("n = 100", sample, sample, SPRINGS, gaps[0], low, high, gaps, "tie")
    assert not_worse(compared, 1.0).state == state
