"""The command `lietransformer lifting`."""

from collections.abc import Iterator
from typing import Any

from lietransformer.cli.measurement import add_measurement


def add_parser(commands: Any) -> None:
    """Declare the subcommand."""
    add_measurement(
        commands,
        "lifting",
        summary="lift a small point cloud to SE(2), to be drawn (Figure 2)",
        description="Lift a small point cloud to SE(2) and choose the neighbourhood of one "
        "element, with the code that models use. `lietransformer figures` draws it.",
        settings=_settings,
        measure=_example,
        table=_table,
    )


def _settings() -> Any:
    from lietransformer.experiments.symmetry.lifting_config import LiftingConfig

    return LiftingConfig


def _example(config: Any) -> dict[str, Any]:
    from lietransformer.experiments.symmetry.lifting import example

    return example(config)


def _table(made: dict[str, Any]) -> Iterator[str]:
    yield f"{len(made['points'])} points, {len(made['elements'])} elements"
