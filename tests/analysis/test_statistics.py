import math

import numpy as np
import pytest

from lietransformer.analysis.statistics import (
    PairedComparison,
    Summary,
    bootstrap_interval,
    compare_pairs,
    summarise,
)


def test_nothing_is_known_without_values() -> None:
    assert summarise([]) == Summary(0)
    assert summarise([math.nan, math.inf]) == Summary(0)


def test_one_value_has_no_spread() -> None:
    assert summarise([3.0]) == Summary(1, mean=3.0, median=3.0)


def test_two_values() -> None:
    summary = summarise([1.0, 3.0])
    assert (summary.count, summary.mean, summary.median) == (2, 2.0, 2.0)
    assert summary.deviation == pytest.approx(math.sqrt(2))
    assert (summary.lower_quartile, summary.upper_quartile) == (1.5, 2.5)


def test_many_values() -> None:
    summary = summarise([5.0, 1.0, 2.0, 4.0, 3.0, math.nan])
    assert summary.count == 5
    assert (summary.lower_quartile, summary.median, summary.upper_quartile) == (2, 3, 4)
    assert summary.deviation == pytest.approx(np.std([1, 2, 3, 4, 5], ddof=1))


@pytest.mark.parametrize("count", range(5))
def test_few_values_have_no_interval(count: int) -> None:
    assert bootstrap_interval([1.0] * count, "median") is None


def test_interval_of_the_mean_is_that_of_theory() -> None:
    values = np.random.default_rng(1).normal(10, 2, 400)
    low, high = bootstrap_interval(list(values), "mean") or (0, 0)
    half = 1.96 * 2 / math.sqrt(400)
    assert low == pytest.approx(values.mean() - half, abs=0.03)
    assert high == pytest.approx(values.mean() + half, abs=0.03)


def test_interval_is_the_same_every_time() -> None:
    values = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0]
    assert bootstrap_interval(values, "median") == bootstrap_interval(values, "median")


def test_pairs_are_those_of_shared_seeds() -> None:
    compared = compare_pairs({0: 1.0, 1: 2.0, 2: 9.0}, {0: 2.0, 1: 8.0, 3: 1.0})
    assert compared == PairedComparison(pairs=2, lower=2, median_ratio=0.375, chance=0.5)


def test_sign_test() -> None:
    first = dict.fromkeys(range(10), 1.0)
    second = {**dict.fromkeys(range(9), 2.0), 9: 0.5}
    assert compare_pairs(first, second).chance == pytest.approx(2 * 11 / 1024)
    assert compare_pairs(first, first).chance is None
    assert compare_pairs({}, first).median_ratio is None
