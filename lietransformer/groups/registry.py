"""Groups by name: `get_group("SE(2)")`, `get_group("T(2)xC4")`, and those that users add."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from lietransformer.groups.base import Group
from lietransformer.groups.cyclic import Cyclic, TranslationCyclic
from lietransformer.groups.dihedral import Dihedral, TranslationDihedral
from lietransformer.groups.rotation_scaling import RotationScaling
from lietransformer.groups.se2 import SE2
from lietransformer.groups.se3 import SE3
from lietransformer.groups.so2 import SO2
from lietransformer.groups.so3 import SO3
from lietransformer.groups.translation import Translation
from lietransformer.groups.trivial import Trivial


@dataclass(frozen=True)
class _Family:
    """Groups of one name pattern, in which {n} stands for a positive whole number."""

    pattern: str
    build: Callable[..., Group]

    def parameters(self, name: str) -> tuple[int, ...] | None:
        regex = re.escape(self.pattern).replace(re.escape("{n}"), "([1-9][0-9]*)")
        match = re.fullmatch(regex, name)
        return None if match is None else tuple(int(number) for number in match.groups())


_FAMILIES: dict[str, _Family] = {}

# What the paper writes, in characters that are easier to type.
_SPELLINGS = str.maketrans({"×": "x", "⋊": "x", "⁺": "+", " ": None})


def register_group(pattern: str, build: Callable[..., Group]) -> None:
    """Make a group known by name.

    Args:
        pattern: its name; a {n} in it stands for a positive whole number, which is passed
            on to `build` ("T({n})", "T(2)xC{n}").
        build: the class, or any function that returns the group.
    """
    pattern = pattern.translate(_SPELLINGS)
    if pattern in _FAMILIES:
        raise ValueError(f"the group name {pattern!r} is registered already. Choose another name.")
    _FAMILIES[pattern] = _Family(pattern, build)


def group_names() -> list[str]:
    """The names that `get_group` knows, n standing for a positive whole number."""
    return sorted(pattern.replace("{n}", "n") for pattern in _FAMILIES)


def get_group(name: str) -> Group:
    """The group of that name; an unknown one is answered with the list of those that exist."""
    if not isinstance(name, str):
        raise TypeError(
            f"name must be a string such as 'SE(2)', got {name!r}. A group object has it as .name."
        )
    spelling = name.translate(_SPELLINGS)
    for family in _FAMILIES.values():
        parameters = family.parameters(spelling)
        if parameters is not None:
            return family.build(*parameters)
    raise ValueError(
        f"group must be one of {', '.join(group_names())}, got {name!r}. Write n as a positive "
        "whole number, or add a group with register_group."
    )


register_group("T({n})", Translation)
register_group("SO(2)", SO2)
register_group("SO(3)", SO3)
register_group("SE(2)", SE2)
register_group("SE(3)", SE3)
register_group("C{n}", Cyclic)
register_group("D{n}", Dihedral)
register_group("T(2)xC{n}", TranslationCyclic)
register_group("T(2)xD{n}", TranslationDihedral)
register_group("R+xSO(2)", RotationScaling)
register_group("Trivial({n})", Trivial)
