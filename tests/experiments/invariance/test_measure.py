"""The measurement of Figure 3."""

import statistics
from itertools import chain
from pathlib import Path

import pytest
import torch

from lietransformer.data.config import read_config
from lietransformer.data.reader import DatasetFile
from lietransformer.errors import UserError
from lietransformer.experiments.constellations import dataset as constellations
from lietransformer.experiments.constellations.plan import ConstellationsConfig
from lietransformer.experiments.symmetry.config import InvarianceConfig
from lietransformer.experiments.symmetry.measure import (
    build,
    draw_example,
    measure,
    training_example,
)

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
    example = draw_example(InvarianceConfig(), 0)
    assert example.mask.shape == (1, 17)
    assert example.mask.all()
    assert example.counts.tolist() == [[1, 1, 1, 1]]


def test_the_picture_is_an_example_of_the_training_set(tmp_path: Path) -> None:
    constellations.generate(ConstellationsConfig(), tmp_path / "data.h5")
    file = DatasetFile(tmp_path / "data.h5")
    example = training_example()
    index = example["training_index"]
    complete = (file.array("train/counts") > 0).all(axis=1)
    assert index == complete.argmax()
    mask = file.array("train/mask")[index]
    assert example["positions"] == file.array("train/positions")[index][mask].tolist()
    assert example["instance"] == file.array("train/instance")[index][mask].tolist()
    sizes = {name: len(vertices) for name, vertices in constellations.PATTERNS.items()}
    counts = {name: example["pattern"].count(name) // size for name, size in sizes.items()}
    assert list(counts.values()) == file.array("train/counts")[index].tolist()


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


@pytest.mark.slow
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
