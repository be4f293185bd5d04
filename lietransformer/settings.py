"""Settings: typed, documented, built once from YAML and from the command line."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from lietransformer.errors import UserError

AnySettings = TypeVar("AnySettings", bound=BaseModel)
_SECONDS = {"s": 1, "m": 60, "h": 3600}


def in_seconds(text: str) -> float:
    """A time such as 90s, 15m or 2h, or 0, as a number."""
    if text == "0":
        return 0.0
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smh])", text)
    if found is None:
        raise ValueError("a time such as 90s, 15m or 2h, or 0")
    return float(found[1]) * _SECONDS[found[2]]


def read_settings(path: Path | None = None, overrides: Sequence[str] = ()) -> dict[str, Any]:
    """A mapping of settings, from a YAML file and from `key=value` overrides.

    Args:
        path: a YAML file with a mapping of settings, or None.
        overrides: `key=value`, the value written as in YAML; they win over the file. A key
            `outer.inner` stands for a key of a mapping within.
    """
    settings = {} if path is None else _read_mapping(path)
    for override in overrides:
        key, equals, value = override.partition("=")
        if not equals:
            raise UserError(
                f"a setting must be given as KEY=VALUE, got {override}. Put = between the setting "
                "and its value."
            )
        *outer, last = key.strip().split(".")
        mapping = settings
        for name in outer:
            inner = mapping.get(name) or {}
            if not isinstance(inner, dict):
                raise UserError(
                    f"{name} must be a mapping of settings for {key.strip()} to be set, got "
                    f"{inner!r}. Set {name} itself instead."
                )
            mapping[name] = mapping = dict(inner)
        mapping[last] = _parse(value, override)
    return settings


def validated(
    model: type[AnySettings],
    settings: dict[str, Any],
    path: Path | None = None,
    overrides: Sequence[str] = (),
) -> AnySettings:
    """The settings as a typed object; a mistake is reported with its path and its source."""
    try:
        return model.model_validate(settings)
    except ValidationError as error:
        source = str(path or "") + (" and " if path and overrides else "")
        source += "--set" if overrides else ""
        raise UserError(_describe(error, model, source or "the settings")) from error


def _read_mapping(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(
            f"cannot read settings from the YAML file {path}: "
            f"{getattr(error, 'strerror', None) or 'it is not text'}. Check its name."
        ) from error
    settings = _parse(text, str(path))
    if settings is None:  # an empty file, or one of comments only
        return {}
    if not isinstance(settings, dict):
        raise UserError(
            f"{path} must have lines of the form `key: value`, got a {type(settings).__name__}. "
            "Write the settings as a mapping."
        )
    return settings


def _parse(text: str, source: str) -> Any:
    try:
        return yaml.load(text, _Loader)
    except (yaml.YAMLError, RecursionError) as error:
        where = getattr(error, "problem_mark", None)
        line = "" if where is None else f" in line {where.line + 1}"
        problem = (getattr(error, "problem", None) or "unreadable text").removeprefix("found ")
        raise UserError(f"{source} is not valid YAML: {problem}{line}. Fix that line.") from error


class _Loader(yaml.SafeLoader):  # type: ignore[misc]
    """A safe loader that refuses duplicate keys."""

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        mapping = super().construct_mapping(node, deep=deep)
        if len(mapping) != len(node.value):
            raise yaml.constructor.ConstructorError(
                None, None, "a key that is given twice", node.start_mark
            )
        return mapping


def _describe(error: ValidationError, model: type[BaseModel], source: str) -> str:
    """One line for each wrong setting: its path, what was expected, what was found."""
    lines = []
    for problem in error.errors():
        key = ".".join(str(part) for part in problem["loc"])
        if problem["type"] == "extra_forbidden":
            known = ", ".join(_model_at(model, problem["loc"][:-1]).model_fields)
            lines.append(f"{key}: expected one of {known}; found an unknown setting")
        elif key:
            lines.append(f"{key}: {_lower(problem['msg'])}; found {problem['input']!r}")
        else:
            lines.append(_lower(problem["msg"]))
    return f"in {source}: " + "; ".join(lines) + ". Fix this setting."


def _model_at(model: type[BaseModel], path: tuple[int | str, ...]) -> type[BaseModel]:
    """The model of the settings within settings that a path leads to."""
    for name in path:
        field = model.model_fields.get(str(name))
        inner = None if field is None else field.annotation
        if not (isinstance(inner, type) and issubclass(inner, BaseModel)):
            break
        model = inner
    return model


def _lower(message: str) -> str:
    message = message.removeprefix("Value error, ").removesuffix(".")
    return message[:1].lower() + message[1:]
