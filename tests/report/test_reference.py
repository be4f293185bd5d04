from lietransformer.experiments.constellations import tables as table1
from lietransformer.experiments.qm9 import tables as table2
from lietransformer.experiments.registry import presets
from lietransformer.reference import (
    Accuracy,
    Band,
    data_efficiency,
    rollout_error,
)
from lietransformer.reference import table1 as published_table1
from lietransformer.reference import table2 as published_table2


def test_table1() -> None:
    published = published_table1()
    keys = {(model, *setting) for model in table1.MODELS for setting in table1.SETTINGS}
    assert published.keys() == keys
    assert published["LieTransformer-SE2", "none", "SE2"] == Accuracy(0.69, 0.02, 8)


def test_table2() -> None:
    rows = published_table2()
    assert len(rows) == 16
    assert all(row.errors.keys() == table2.TASKS.keys() for row in rows)
    assert rows[0].errors["G"] is None
    assert (rows[-1].model, rows[-1].augmentation) == ("LieTransformer-SE3", "SO3")
    assert rows[-1].errors["zpve"] == 3.67


def test_curves_are_of_models_that_this_package_has() -> None:
    names = {preset.model for preset in presets() if preset.task == "springs"}
    for curves in (data_efficiency(), rollout_error()):
        assert names.issuperset(curves)
    assert len(data_efficiency()["Graph network (Hamiltonian)"]) == 10
    assert data_efficiency()["LieTransformer-T2"][10] == Band(7.39e-4, 5.44e-4, 8.95e-4)
    assert rollout_error()["LieTransformer-T2"][99] == Band(7.46e-4, 4.05e-4, 1.44e-3)


def test_a_median_lies_within_its_quartiles() -> None:
    for curves in (data_efficiency(), rollout_error()):
        for curve in curves.values():
            for band in curve.values():
                assert band.lower_quartile <= band.median <= band.upper_quartile
