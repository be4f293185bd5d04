"""From config.yaml, the tier it names and the command line to the settings of a sweep."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

import yaml

from lietransformer.errors import UserError
from lietransformer.settings import read_settings, validated
from lietransformer.sweep.config import SweepConfig, Tier


def resolve(given: Mapping[str, Any], tiers: Path) -> SweepConfig:
    """The tier's settings, with those on top that are given.

    Args:
        given: what config.yaml and the command line say, in part or in whole. A key such as
            `springs__data_efficiency__seeds` stands for keys within keys.
        tiers: folder of the tiers.
    """
    changes = _nested({key: _as_typed(value) for key, value in given.items()})
    tier = changes.get("tier", SweepConfig.model_fields["tier"].default)
    if tier not in get_args(Tier):
        raise UserError(
            f"tier must be one of {', '.join(get_args(Tier))}, got {tier!r}. Fix `tier` in "
            "config.yaml, or pass --config tier=workstation."
        )
    settings = merged(read_settings(tiers / f"{tier}.yaml"), changes)
    return validated(SweepConfig, settings, Path("config.yaml"))


def is_changed(sweep: SweepConfig, tiers: Path) -> bool:
    """Whether a sweep differs from its tier in more than how its runs are obtained."""
    how = {"compute", "tracking", "published", "verification"}
    tier = resolve({"tier": sweep.tier}, tiers)
    return sweep.model_dump(exclude=how) != tier.model_dump(exclude=how)


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Merge one mapping over another: nested mappings are merged, other values replaced."""
    result = dict(below)
    for key, value in above.items():
        old = result.get(key)
        both = isinstance(old, Mapping) and isinstance(value, Mapping)
        result[key] = merged(old, value) if both else value  # type: ignore[arg-type]
    return result


def _as_typed(value: Any) -> Any:
    """Parse numbers, booleans and nulls that are written as text, at any depth."""
    # Snakemake's command line leaves nested values, and `null`, as text.
    if isinstance(value, Mapping):
        return {key: _as_typed(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_as_typed(inner) for inner in value]
    if not isinstance(value, str):
        return value
    try:
        read = yaml.safe_load(value)
    except (yaml.YAMLError, ValueError):  # ValueError: it looks like a date
        return value
    return read if read is None or isinstance(read, bool | int | float) else value


def _nested(given: Mapping[str, Any]) -> dict[str, Any]:
    """Expand keys with __ into nested keys, which win over those without."""
    # Snakemake's command line allows no dots in keys.
    result = {key: value for key, value in given.items() if "__" not in key}
    for key, value in given.items():
        if "__" in key:
            for name in reversed(key.split("__")):
                value = {name: value}  # noqa: PLW2901
            result = merged(result, value)
    return result
