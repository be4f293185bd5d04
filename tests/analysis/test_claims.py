"""Each verdict follows from runs: invented ones turn it one way, the other way, and neither."""

import json
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
from tests.analysis.claim_cases import CASES, molecules, springs
from tests.analysis.synthetic import Results


def verdict(results: Results, number: int) -> str:
    (claim,) = (claim for claim in CLAIMS if claim.number == number)
    return claim.decide(read_sweep(results.write())).verdict


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
