"""The command `lietransformer complexity`."""

from collections.abc import Iterator
from typing import Any

from lietransformer.cli.measurement import add_measurement


def add_parser(commands: Any) -> None:
    """Declare the subcommand."""
    add_measurement(
        commands,
        "complexity",
        summary="measure what LieSelfAttention and LieConv cost (appendix G)",
        description="Measure time and memory of one layer of LieSelfAttention and of LieConv, "
        "forward and backward, against the size of the set and of the neighbourhoods; and of a "
        "training step of whole models, also against lift samples, layers and batch. Nothing "
        "else should be running. With more threads than one, small sizes use fewer of them, and "
        "time grows too slowly.",
        settings=_settings,
        measure=_measure,
        table=_table,
    )


def _settings() -> Any:
    from lietransformer.experiments.cost.config import ComplexityConfig

    return ComplexityConfig


def _measure(config: Any) -> dict[str, Any]:
    from lietransformer.experiments.cost.measure import measure

    return measure(config)


def _table(measurement: dict[str, Any]) -> Iterator[str]:
    yield f"{'set':>6} {'neighbourhood':>13} {'ms':>9} {'MB':>9}  layer"
    for point in measurement["measurements"]:
        yield (
            f"{point['set_size']:6} {point['neighbourhood']:13} {1e3 * point['seconds']:9.1f}"
            f" {point['megabytes']:9.1f}  {point['layer']}"
        )
    yield "\n   set neighbourhood lifts layers batch        ms        MB  training step"
    for point in measurement["steps"]:
        yield (
            f"{point['set_size']:6} {point['neighbourhood']:13} {point['lift_samples']:5}"
            f" {point['layers']:6} {point['batch']:5} {1e3 * point['seconds']:9.1f}"
            f" {point['megabytes']:9.1f}  {point['model']}"
        )
    yield f"in {measurement['seconds']:.1f} s"
