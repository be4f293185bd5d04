"""Models start at the scale that they were compared with the authors' release at."""

import pytest

from lietransformer.experiments.preset import Preset
from tests.models.initial_statistics import own_presets, read_table, statistics_of


def describe(preset: Preset) -> str:
    return f"{preset.task} {preset.model}"


@pytest.mark.parametrize("preset", own_presets(), ids=describe)
def test_no_scale_has_moved_by_a_tenth(preset: Preset) -> None:
    expected = read_table()[preset.task, preset.model]
    assert statistics_of(preset) == pytest.approx(expected, rel=0.1)


def test_the_table_has_every_model() -> None:
    assert read_table().keys() == {(preset.task, preset.model) for preset in own_presets()}
