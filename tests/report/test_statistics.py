import math

import numpy as np
import pytest

from lietransformer.report.statistics import (
    Summary,
    bootstrap_interval,
    mean_interval,
    median_interval,
    sign_test,
    slope_interval,
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


def test_bootstrap_interval_is_that_of_theory() -> None:
    values = np.random.default_rng(1).normal(10, 2, 400)
    low, high = bootstrap_interval(values)
    half = 1.96 * 2 / math.sqrt(400)
    assert low == pytest.approx(values.mean() - half, abs=0.03)
    assert high == pytest.approx(values.mean() + half, abs=0.03)


def test_bootstrap_interval_repeats_and_takes_columns() -> None:
    values = np.random.default_rng(1).normal(size=(10, 4))
    values[:, 2] = 1.0  # no spread
    low, high = bootstrap_interval(values)
    again, _ = bootstrap_interval(values)
    assert (low == again).all()
    assert (low[2], high[2]) == (1.0, 1.0)
    assert (low[[0, 1, 3]] < values.mean(axis=0)[[0, 1, 3]]).all()


def test_student_interval() -> None:
    low, high = mean_interval([1.0, 2.0, 3.0]) or (0.0, 0.0)
    assert (low, high) == pytest.approx(
        (2 - 4.303 / math.sqrt(3), 2 + 4.303 / math.sqrt(3)), rel=1e-3
    )
    assert mean_interval([1.0]) is None
    assert mean_interval([1.0, math.inf]) is None


@pytest.mark.parametrize("count", range(6))
def test_few_values_have_no_interval_of_the_median(count: int) -> None:
    assert median_interval([1.0] * count) is None


def test_interval_of_the_median_covers_it() -> None:
    generator = np.random.default_rng(0)
    drawn = [median_interval(list(generator.normal(size=15))) for _ in range(1000)]
    missed = sum(not low <= 0 <= high for low, high in filter(None, drawn))
    assert 5 <= missed <= 55  # 3.5 %, the largest below 5 %


def test_sign_test() -> None:
    assert sign_test(17, 7) == pytest.approx(0.032, abs=1e-3)
    assert sign_test(9, 1) == pytest.approx(11 / 1024)
    assert sign_test(0, 0) == 1.0


def test_slope() -> None:
    slope, low, high = slope_interval([0.0, 1.0, 2.0, 3.0], [0.0, 2.1, 3.9, 6.0]) or (0, 0, 0)
    assert slope == pytest.approx(1.98)
    assert 1.7 < low < slope < high < 2.3
    assert slope_interval([0.0, 1.0], [0.0, 1.0]) is None
