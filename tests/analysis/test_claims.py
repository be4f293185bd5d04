"""Each verdict follows from runs: invented ones turn it one way, the other way, and neither."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from lietransformer.analysis.claims import CLAIMS, decide_all
from lietransformer.analysis.claims.documents import write_claims
from lietransformer.analysis.claims.verdict import (
    NOT_DECIDED,
    NOT_REPRODUCED,
    REPRODUCED,
    Condition,
    all_hold,
    at_least,
)
from lietransformer.analysis.runs import read_sweep
from lietransformer.analysis.tables.table2 import TASKS
from tests.analysis.synthetic import (
    Results,
    accuracies,
    for_both_weights,
    mae,
    rollout_arrays,
    springs_errors,
)

Build = Callable[[Results], None]
SEEDS = range(3)


def verdict(results: Results, number: int) -> str:
    (claim,) = (claim for claim in CLAIMS if claim.number == number)
    return claim.decide(read_sweep(results.write())).verdict


# ---- builders of runs


def constellations(set_transformer: float, t2: tuple[float, ...], se2: tuple[float, ...]) -> Build:
    """Accuracies of the LieTransformers on the three test sets."""

    def build(results: Results) -> None:
        models = {
            "SetTransformer": (set_transformer,) * 3,
            "LieTransformer-T2": t2,
            "LieTransformer-SE2": se2,
        }
        for model, values in models.items():
            for augmentation in ("none", "T2", "SE2"):
                for seed in SEEDS:
                    results.add(
                        ["constellations"],
                        "constellations",
                        model,
                        augmentation=augmentation,
                        seed=seed,
                        test=accuracies(*values),
                    )

    return build


def invariance(*errors: float) -> Build:
    def build(results: Results) -> None:
        results.add_invariance(
            {
                2**k: [error * (1 + run / 1000) for run in range(20)]
                for k, error in enumerate(errors)
            }
        )

    return build


def molecules(errors: Mapping[str, float]) -> Build:
    """The same error on every task, by model; "+" stands for augmentation."""

    def build(results: Results) -> None:
        for architecture in ("LieTransformer", "LieConv"):
            for name in ("T3", "T3+", "SE3", "SE3+"):
                error = errors.get(f"{architecture}-{name}", errors.get(name, 1.0))
                for task in TASKS:
                    results.add(
                        ["qm9"],
                        "qm9",
                        f"{architecture}-{name.rstrip('+')}",
                        target=task,
                        augmentation="SO3" if name.endswith("+") else "none",
                        # Far below anything quoted, so that the architectures decide.
                        test=mae(error * 1e-3),
                    )

    return build


def springs(size_factors: Mapping[str, float], sizes: tuple[int, ...] = (10, 100, 1000)) -> Build:
    """5-step errors by model."""

    def build(results: Results) -> None:
        for model, error in size_factors.items():
            for size in sizes:
                for seed in SEEDS:
                    results.add(
                        ["data_efficiency"],
                        "springs",
                        model,
                        n_train=size,
                        seed=seed,
                        test=springs_errors(error / size),
                    )

    return build


def rollouts(transformer: float, convolution: float, *, bent: bool = False) -> Build:
    """Errors at the last of 100 steps, trained on 10,000 examples."""

    def build(results: Results) -> None:
        for model, level in (("LieTransformer-T2", transformer), ("LieConv-T2", convolution)):
            steep = bent and model == "LieTransformer-T2"
            for seed in SEEDS:
                results.add(
                    ["data_efficiency"],
                    "springs",
                    model,
                    n_train=10_000,
                    seed=seed,
                    test=for_both_weights(test_long={"mse_last": level}),
                    arrays=rollout_arrays(
                        level, seed=seed, shape=(lambda t: t**0.1) if steep else lambda t: t**2
                    ),
                )

    return build


GOOD_VARIANTS = {
    "LieTransformer-T2 small": 3.0,
    "LieTransformer-T2": 2.0,
    "LieTransformer-SE2 small": 1.0,
    "LieTransformer-SE2": 1.5,
    "LieConv-T2 small": 4.0,
    "LieConv-T2": 5.0,
    "LieConv-SE2 small": 3.0,
    "LieConv-SE2": 3.5,
}


def variants(**changes: float) -> Build:
    """5-step errors of the models of Figure 7; names without signs."""

    def build(results: Results) -> None:
        for model, usual in GOOD_VARIANTS.items():
            error = changes.get(model.replace("-", "_").replace(" ", "_"), usual)
            for seed in SEEDS:
                results.add(
                    ["parameter_efficiency"],
                    "springs",
                    model,
                    n_train=3000,
                    seed=seed,
                    test=springs_errors(error),
                )

    return build


def softmax(error: float) -> Build:
    def build(results: Results) -> None:
        for seed in SEEDS:
            common: Any = {"n_train": 100, "seed": seed}
            results.add(
                ["data_efficiency"],
                "springs",
                "LieTransformer-T2",
                test=springs_errors(1.0),
                **common,
            )
            results.add(
                ["ablations"],
                "springs",
                "LieTransformer-T2",
                ablation="softmax",
                test=springs_errors(error),
                **common,
            )

    return build


def complexity(power: float) -> Build:
    def build(results: Results) -> None:
        measurements = [
            {
                "layer": layer,
                "set_size": size,
                "neighbourhood": neighbourhood,
                "seconds": size**power * neighbourhood,
                "megabytes": size * neighbourhood,
            }
            for layer in ("LieSelfAttention", "LieConv")
            for size in (100, 200, 400)
            for neighbourhood in (10, 20, 40)
        ]
        content = {"schema_version": 1, "measurements": measurements}
        results.add_measurement("complexity", content)

    return build


INVARIANT = ((0.75, 0.75, 0.60), (0.71, 0.71, 0.69))
NON_INVARIANT = {"Graph network (Hamiltonian)": 30.0, "Fully-connected (Hamiltonian)": 100.0}

# For each claim, runs that bear it out and runs that do not.
CASES: dict[int, tuple[Build, Build]] = {
    1: (
        constellations(0.5, *INVARIANT),
        constellations(0.5, (0.75, 0.74, 0.6), (0.71, 0.71, 0.69)),
    ),
    2: (constellations(0.5, *INVARIANT), constellations(0.65, *INVARIANT)),
    3: (
        constellations(0.5, *INVARIANT),
        constellations(0.5, (0.75, 0.75, 0.60), (0.71, 0.71, 0.60)),
    ),
    4: (invariance(1e-2, 1e-3, 1e-4), invariance(1e-2, 1e-4, 1e-3)),
    5: (molecules({"SE3": 0.8}), molecules({"SE3": 0.8, "LieConv-SE3": 1.2})),
    6: (molecules({"SE3+": 1.05}), molecules({"SE3+": 1.05, "LieTransformer-SE3+": 0.8})),
    7: (molecules({"T3+": 0.6}), molecules({"T3+": 0.6, "LieConv-T3+": 0.95})),
    8: (molecules({"LieTransformer-T3+": 0.5}), molecules({"LieConv-T3+": 0.5})),
    9: (molecules({"LieTransformer-SE3": 0.5}), molecules({"LieConv-SE3": 0.5})),
    10: (
        springs({"LieTransformer-T2": 1.0, **NON_INVARIANT}),
        springs({"LieTransformer-T2": 20.0, **NON_INVARIANT}),
    ),
    11: (
        springs({"LieTransformer-T2": 1.0, "LieConv-T2": 2.0}, sizes=(10, 100, 96_000)),
        springs({"LieTransformer-T2": 2.0, "LieConv-T2": 1.0}, sizes=(10, 100, 96_000)),
    ),
    12: (rollouts(8e-4, 3e-3), rollouts(2e-3, 3e-3)),
    13: (rollouts(8e-4, 3e-3), rollouts(8e-4, 3e-3, bent=True)),
    14: (variants(), variants(LieConv_SE2=1.2)),
    15: (variants(), variants(LieTransformer_T2=0.9)),
    16: (variants(), variants(LieConv_T2=3.9)),
    17: (softmax(5.0), softmax(1.5)),
    18: (complexity(1.0), complexity(2.0)),
}


def test_every_claim_has_cases() -> None:
    assert [claim.number for claim in CLAIMS] == list(range(1, 19)) == sorted(CASES)


@pytest.mark.parametrize("number", CASES)
def test_runs_can_bear_a_claim_out(tmp_path: Path, number: int) -> None:
    results = Results(tmp_path)
    CASES[number][0](results)
    assert verdict(results, number) == REPRODUCED


@pytest.mark.parametrize("number", CASES)
def test_runs_can_refute_a_claim(tmp_path: Path, number: int) -> None:
    results = Results(tmp_path)
    CASES[number][1](results)
    assert verdict(results, number) == NOT_REPRODUCED


@pytest.mark.parametrize("largest", [{"LieConv-T2": 5.0}, {"LieConv-T2": 0.2}])
def test_errors_that_differ_much_at_the_largest_size_refute_claim_11(
    tmp_path: Path, largest: dict[str, float]
) -> None:
    """In favour of either."""
    results = Results(tmp_path)
    springs({"LieTransformer-T2": 1.0, "LieConv-T2": 2.0}, sizes=(10, 100, 1000))(results)
    assert verdict(results, 11) == NOT_DECIDED
    springs({"LieTransformer-T2": 1.0, **largest}, sizes=(96_000,))(results)
    assert verdict(results, 11) == NOT_REPRODUCED


@pytest.mark.parametrize(
    ("number", "model", "expected", "how"),
    [
        (2, "LieTransformer-SE2", NOT_DECIDED, "diverged"),  # a mean of accuracies
        (2, "LieTransformer-SE2", NOT_DECIDED, "not finite"),
        (3, "LieTransformer-SE2", NOT_DECIDED, "diverged"),
        (3, "LieTransformer-SE2", NOT_DECIDED, "not finite"),
        (5, "LieTransformer-SE3", NOT_DECIDED, "diverged"),
        (5, "LieTransformer-SE3", NOT_DECIDED, "not finite"),
        (10, "LieTransformer-T2", NOT_REPRODUCED, "diverged"),  # a median of errors
        (10, "LieTransformer-T2", NOT_REPRODUCED, "not finite"),
        (11, "LieTransformer-T2", NOT_REPRODUCED, "diverged"),
        (11, "LieTransformer-T2", NOT_REPRODUCED, "not finite"),
        (12, "LieTransformer-T2", NOT_REPRODUCED, "diverged"),
        (12, "LieTransformer-T2", NOT_REPRODUCED, "not finite"),
        (13, "LieTransformer-T2", NOT_REPRODUCED, "diverged"),  # reads roll-outs, not numbers
    ],
)
def test_a_model_is_not_judged_by_its_good_days(
    tmp_path: Path, number: int, model: str, expected: str, how: str
) -> None:
    """Two of three runs end without a number."""
    results = Results(tmp_path)
    CASES[number][0](results)
    for run in results.runs:
        if run["model"] == model and (run["seed"] != 1 or run["task"] == "qm9"):
            path = tmp_path / run["folder"] / "result.json"
            result = json.loads(path.read_text())
            if how == "diverged":
                result["status"] = "diverged"
            result["test"] = _without_numbers(result["test"])
            path.write_text(json.dumps(result))
    assert verdict(results, number) == expected


def _without_numbers(test: Any) -> Any:
    return {k: _without_numbers(v) for k, v in test.items()} if isinstance(test, dict) else None


def test_nothing_is_decided_without_runs(tmp_path: Path) -> None:
    for tier in (None, "paper"):
        results = Results(tmp_path / str(tier), tier=tier)
        verdicts = {finding.verdict for _, finding in decide_all(read_sweep(results.write()))}
        assert verdicts == {NOT_DECIDED}


def test_nothing_is_decided_by_experiments_that_only_show_that_everything_works(
    tmp_path: Path,
) -> None:
    results = Results(tmp_path, tier="smoke")
    CASES[1][0](results)
    decided = decide_all(read_sweep(results.write()))
    assert {finding.verdict for _, finding in decided} == {NOT_DECIDED}
    assert "holds" in decided[0][1].evidence[0]


@pytest.mark.parametrize("number", sorted(set(CASES) - {4, 18}))
def test_nothing_is_decided_by_runs_that_are_not_finished(tmp_path: Path, number: int) -> None:
    results = Results(tmp_path)
    CASES[number][0](results)
    for file in tmp_path.rglob("result.json"):
        file.unlink()
    assert verdict(results, number) == NOT_DECIDED


@pytest.mark.parametrize("number", [2, 3, 10, 11, 12, 13, 14, 15, 16, 17])
def test_two_seeds_do_not_decide(tmp_path: Path, number: int) -> None:
    results = Results(tmp_path)
    CASES[number][0](results)
    for file in tmp_path.rglob("seed-2/result.json"):
        file.unlink()
    assert verdict(results, number) == NOT_DECIDED


def test_missing_tasks_matter_only_if_they_could_change_the_verdict(tmp_path: Path) -> None:
    results = Results(tmp_path)
    molecules({"SE3": 0.8})(results)
    for task in list(TASKS)[:5]:
        for file in tmp_path.rglob(f"{task}-*/seed-0/result.json"):
            file.unlink()
    assert verdict(results, 5) == REPRODUCED
    for file in tmp_path.rglob(f"{list(TASKS)[5]}-*/seed-0/result.json"):
        file.unlink()
    assert verdict(results, 5) == NOT_DECIDED


def test_counting_what_is_not_known() -> None:
    yes, no, unknown = (Condition(holds, "") for holds in (True, False, None))
    assert at_least(2, [yes, yes, unknown], "").holds is True
    assert at_least(2, [yes, unknown, no], "").holds is None
    assert at_least(2, [yes, no, no], "").holds is False
    assert at_least(1, [], "").holds is None
    assert all_hold([]).verdict == NOT_DECIDED
    assert all_hold([yes, unknown, no]).verdict == NOT_REPRODUCED


def test_documents(tmp_path: Path) -> None:
    results = Results(tmp_path, tier="laptop")
    CASES[1][0](results)
    sweep = read_sweep(results.write())
    markdown, structured = write_claims(sweep, decide_all(sweep), tmp_path / "out")
    text = markdown.read_text()
    assert "Of 18 claims: 3 reproduced, 0 not reproduced, 15 not decided by these runs." in text
    assert "REDUCED" in text
    assert "accuracy changes by 0.0000 at most (runs: 3)" in text
    content = json.loads(structured.read_text())
    assert content["is_reduced"] is True
    assert [claim["number"] for claim in content["claims"]] == list(range(1, 19))
    assert content["claims"][0]["verdict"] == REPRODUCED
    assert all(claim["rule"] and claim["evidence"] for claim in content["claims"])
