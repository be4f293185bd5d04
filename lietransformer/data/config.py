"""Settings of the generators: typed, documented, built from YAML once."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from lietransformer.errors import UserError, explain


class GeneratorConfig(BaseModel):
    """What every generator has. Unknown keys are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    seed: int = Field(0, ge=0, lt=2**63, description="every random number follows from it")

    @field_validator("*", mode="before")
    @classmethod
    def _is_no_flag(cls, value: object) -> object:
        if isinstance(value, bool):  # which Python would take for 0 or 1
            raise ValueError("a number or a text was expected, not yes or no")
        return value


AnyConfig = TypeVar("AnyConfig", bound=GeneratorConfig)


def read_config(
    model: type[AnyConfig], path: Path | None = None, overrides: Sequence[str] = ()
) -> AnyConfig:
    """Settings from a YAML file and from `key=value` overrides; the rest are the paper's.

    Args:
        model: which generator's settings.
        path: a YAML file with a mapping of settings; None for none.
        overrides: `key=value`, the value written as in YAML; they win over the file.
    """
    settings = {} if path is None else _read_mapping(path)
    for override in overrides:
        key, equals, value = override.partition("=")
        if not equals:
            raise UserError(
                explain(
                    expected="--set KEY=VALUE",
                    found=f"--set {override}",
                    remedy="put = between the setting and its value",
                )
            )
        settings[key.strip()] = _parse(value, f"--set {override}")
    try:
        return model.model_validate(settings)
    except ValidationError as error:
        source = str(path or "") + (" and " if path and overrides else "")
        source += "--set" if overrides else ""
        raise UserError(_describe(error, model, source)) from error


def _read_mapping(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(
            explain(
                expected=f"settings in the YAML file {path}",
                found=getattr(error, "strerror", None) or "a file that is not text",
                remedy="check the name given to --config",
            )
        ) from error
    settings = _parse(text, str(path))
    if settings is None:  # an empty file, or one of comments only
        return {}
    if not isinstance(settings, dict):
        raise UserError(
            explain(
                expected=f"lines of the form `key: value` in {path}",
                found=f"a {type(settings).__name__}",
                remedy="write the settings as a mapping",
            )
        )
    return settings


def _parse(text: str, source: str) -> Any:
    try:
        return yaml.load(text, _Loader)
    except (yaml.YAMLError, RecursionError) as error:
        where = getattr(error, "problem_mark", None)
        line = "" if where is None else f" in line {where.line + 1}"
        problem = (getattr(error, "problem", None) or "unreadable text").removeprefix("found ")
        raise UserError(
            explain(expected=f"YAML in {source}", found=f"{problem}{line}", remedy="mend that line")
        ) from error


class _Loader(yaml.SafeLoader):  # type: ignore[misc]
    """As the safe one, but a key that is given twice is a mistake."""

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        mapping = super().construct_mapping(node, deep=deep)
        if len(mapping) != len(node.value):
            raise yaml.constructor.ConstructorError(
                None, None, "a key that is given twice", node.start_mark
            )
        return mapping


def _describe(error: ValidationError, model: type[GeneratorConfig], source: str) -> str:
    """One line for each wrong setting: its path, what was expected, what was found."""
    lines = []
    for problem in error.errors():
        key = ".".join(str(part) for part in problem["loc"])
        if problem["type"] == "extra_forbidden":
            known = ", ".join(model.model_fields)
            lines.append(f"{key}: expected one of {known}; found an unknown setting")
        elif key:
            lines.append(f"{key}: {_lower(problem['msg'])}; found {problem['input']!r}")
        else:
            lines.append(_lower(problem["msg"]))
    return f"in {source}: " + "; ".join(lines) + ". Mend the setting."


def _lower(message: str) -> str:
    message = message.removeprefix("Value error, ")
    return message[:1].lower() + message[1:]
