"""Models of the paper with changed settings."""

from dataclasses import is_dataclass, replace
from typing import Any, get_type_hints

from pydantic import TypeAdapter, ValidationError

from lietransformer.experiments.preset import Preset
from lietransformer.groups import get_group

# What a task gives to a model, and cannot be changed for one.
_GIVEN_BY_THE_TASK = ("input_width", "output_width", "space_dimension", "points", "read_out")


def changed(preset: Preset, architecture: dict[str, Any]) -> Preset:
    """A model with changed settings; those that its task determines are refused."""
    for name in _GIVEN_BY_THE_TASK:
        if name in architecture:
            raise ValueError(f"architecture.{name}: follows from the task and cannot be changed")
    new_preset = replace(preset, config=_with(preset.config, architecture, "architecture"))
    if preset.group and new_preset.group != preset.group:
        space, new = (get_group(name).space_dimension for name in (preset.group, new_preset.group))
        if new != space:
            raise ValueError(
                f"architecture.group: {new_preset.group} acts on a space of {new} dimensions, and "
                f"{preset.task} are in {space}"
            )
    return new_preset


def _with(config: Any, changes: dict[str, Any], path: str) -> Any:
    """A model's settings with some of them changed, also within its parts."""
    kinds = get_type_hints(type(config))
    new = {}
    for name, value in changes.items():
        if name not in kinds:
            raise ValueError(f"{path}.{name}: expected one of {', '.join(kinds)}")
        old = getattr(config, name)
        if is_dataclass(old):
            if not isinstance(value, dict):
                raise ValueError(f"{path}.{name}: expected a mapping of settings, not {value!r}")
            new[name] = _with(old, value, f"{path}.{name}")
            continue
        try:
            new[name] = TypeAdapter(kinds[name]).validate_python(value, strict=True)
        except ValidationError as error:
            problem = error.errors()[0]["msg"]
            raise ValueError(f"{path}.{name}: {problem}, not {value!r}") from None
    return replace(config, **new)
