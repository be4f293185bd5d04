"""Groups by name, and a group that the package does not ship."""

import pytest
import torch

from lietransformer.groups import get_group, group_names, register_group
from lietransformer.groups.registry import _FAMILIES
from lietransformer.models import LieTransformer
from lietransformer.testing import assert_group_laws, assert_invariant
from tests.cases import ALL_GROUPS, PRECISIONS, random_cloud, small_config
from tests.groups.scaling import Scaling


@pytest.mark.parametrize("name", ALL_GROUPS)
def test_a_group_has_the_name_it_is_found_by(name: str) -> None:
    assert get_group(name).name == name


def test_the_papers_spelling_is_understood() -> None:
    assert get_group("T(2) ⋊ C4").name == "T(2)xC4"
    assert get_group("R⁺×SO(2)").name == "R+xSO(2)"


@pytest.mark.parametrize(
    "name", ["SU(2)", "T(0)", "T()", "C", "C0", "SE(4)", "T(2)xC4x", "t(2)", "T(1٣)", ""]
)
def test_an_unknown_name_is_answered_with_the_known_ones(name: str) -> None:
    with pytest.raises(ValueError, match="group must be one of") as error:
        get_group(name)
    assert all(known in str(error.value) for known in group_names())
    assert repr(name) in str(error.value)


@pytest.mark.usefixtures("without_shape_checks")
def test_a_name_is_a_string() -> None:
    with pytest.raises(TypeError, match="name must be a string"):
        get_group(get_group("SE(2)"))  # type: ignore[arg-type]


def test_a_name_can_be_taken_once() -> None:
    with pytest.raises(ValueError, match="registered already"):
        register_group("SE(2)", lambda: get_group("SE(2)"))


def test_registered_names_may_be_spelt_as_in_the_paper(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lietransformer.groups.registry._FAMILIES", dict(_FAMILIES))
    register_group("R⁺ × SO(3)", lambda: get_group("SO(3)"))
    assert get_group("R⁺×SO(3)") is not None
    assert get_group("R+xSO(3)") is not None


@pytest.mark.parametrize("dtype", PRECISIONS)
def test_a_user_can_add_a_group(dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lietransformer.groups.registry._FAMILIES", dict(_FAMILIES))
    register_group("R+({n})", Scaling)
    assert "R+(n)" in group_names()
    group = get_group("R+(3)")
    assert_group_laws(group, dtype=dtype)
    cloud = random_cloud("R+(3)", dtype=dtype)
    model = LieTransformer(small_config("R+(3)")).to(dtype)
    assert_invariant(model, group, cloud)
    with pytest.raises(AssertionError, match="not invariant"):
        assert_invariant(model, get_group("T(3)"), cloud)
