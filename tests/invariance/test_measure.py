"""The measurement of Figure 3."""

import statistics
from itertools import chain

import pytest
import torch

from lietransformer.data.config import read_config
from lietransformer.errors import UserError
from lietransformer.invariance.config import InvarianceConfig
from lietransformer.invariance.measure import build, draw_example, measure

SMALL = InvarianceConfig(runs=8, largest=12, numbers=4)


def test_the_papers_numbers_of_lift_samples() -> None:
    numbers = InvarianceConfig().lift_samples()
    assert numbers[0] == 1
    assert numbers[-1] == 250
    assert numbers == sorted(set(numbers))


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"largest": 1}, [1]),
        ({"largest": 30, "numbers": 1}, [30]),
        ({"largest": 3, "numbers": 50}, [1, 2, 3]),
        ({"largest": 100, "numbers": 3}, [1, 10, 100]),
    ],
)
def test_lift_samples(settings: dict[str, int], expected: list[int]) -> None:
    assert InvarianceConfig.model_validate(settings).lift_samples() == expected


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("heads=3", "heads"),
        ("runs=0", "runs"),
        ("largest=10000", "largest"),
        ("scheme=exact", "scheme"),
        ("lifts=3", "unknown setting"),
        ("seed=true", "seed"),
    ],
)
def test_impossible_settings(override: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        read_config(InvarianceConfig, None, [override])


def test_an_example_is_one_of_each_pattern() -> None:
    measurement = measure(InvarianceConfig(runs=1, largest=1))
    example = measurement["example"]
    assert len(example["positions"]) == len(example["instance"]) == len(example["pattern"]) == 17
    counts = {name: example["pattern"].count(name) for name in example["pattern"]}
    assert counts == {"square": 4, "triangle": 3, "pentagon": 5, "L": 5}
    assert len(set(zip(example["instance"], example["pattern"], strict=True))) == 4
    assert example["positions"] == draw_example(InvarianceConfig(), 0).positions[0].tolist()


def test_errors_fall_with_the_lift_samples() -> None:
    measurement = measure(SMALL)
    medians = [statistics.median(errors) for errors in measurement["errors"]]
    assert [len(errors) for errors in measurement["errors"]] == [SMALL.runs] * len(medians)
    assert medians == sorted(medians, reverse=True)
    assert medians[-1] < medians[0] / 100
    assert all(error > 0 for errors in measurement["errors"] for error in errors)


def test_a_measurement_repeats_and_a_seed_changes_it() -> None:
    errors = measure(SMALL)["errors"]
    assert measure(SMALL)["errors"] == errors
    others = measure(SMALL.model_copy(update={"seed": 1}))["errors"]
    assert not set(chain(*errors)) & set(chain(*others))


def test_more_runs_and_numbers_leave_those_there_are() -> None:
    errors = measure(SMALL)["errors"]
    more = measure(InvarianceConfig(runs=9, largest=12, numbers=2))
    assert more["lift_samples"] == [1, 12]
    assert [row[:8] for row in more["errors"]] == [errors[0], errors[-1]]


def test_threads_do_not_change_errors() -> None:
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        errors = measure(SMALL)["errors"]
        torch.set_num_threads(2)
        # Sums of features over elements are cut among threads, so not to the last digit.
        for row, other in zip(errors, measure(SMALL)["errors"], strict=True):
            assert other == pytest.approx(row, rel=1e-6, abs=1e-14)
    finally:
        torch.set_num_threads(before)


def test_runs_differ_in_model_and_example() -> None:
    weights = [build(SMALL, run, 2).embedding.weight for run in (0, 0, 1)]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])
    assert torch.equal(weights[0], build(SMALL, 0, 5).embedding.weight)
    examples = [draw_example(SMALL, run).positions for run in (0, 1)]
    assert not torch.equal(*examples)


def test_building_leaves_the_global_random_numbers_alone() -> None:
    torch.manual_seed(0)
    expected = torch.rand(1)
    torch.manual_seed(0)
    build(SMALL, 0, 2)
    assert torch.equal(torch.rand(1), expected)


def test_the_model_is_the_papers() -> None:
    config = build(InvarianceConfig(), 0, 250).config
    assert (config.group, config.layers, config.width, config.heads) == ("SE(2)", 1, 8, 2)
    assert (config.norm, config.attention.normalisation) == ("none", "constant")
    assert config.attention.kernel_width == 2
    assert next(build(SMALL, 0, 2).parameters()).dtype == torch.float64
