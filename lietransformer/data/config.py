"""Settings of the generators and loaders. Imports no torch."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, field_validator

from lietransformer.settings import read_settings, validated

# The group of the random motion of training examples.
Augmentation = Literal["none", "T2", "SE2", "SO3"]


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
    """Settings from a YAML file and from `key=value` overrides; the rest are the paper's."""
    return validated(model, read_settings(path, overrides), path, overrides)
