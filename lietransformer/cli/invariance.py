"""The command `lietransformer invariance`."""

import statistics
from collections.abc import Iterator
from typing import Any

from lietransformer.cli.measurement import add_measurement


def add_parser(commands: Any) -> None:
    """Declare the subcommand."""
    add_measurement(
        commands,
        "invariance",
        summary="measure how far a model is from invariance (Figure 3)",
        description="Rotate examples and compare the logits of untrained LieTransformers on SE(2), "
        "for more and more lift samples (Figure 3). Without settings, as in the paper.",
        settings=_settings,
        measure=_measure,
        table=_table,
    )


def _settings() -> Any:
    from lietransformer.experiments.symmetry.config import InvarianceConfig

    return InvarianceConfig


def _measure(config: Any) -> dict[str, Any]:
    from lietransformer.experiments.symmetry.measure import measure, training_example

    return {**measure(config), "example": training_example()}


def _table(measurement: dict[str, Any]) -> Iterator[str]:
    yield "lift samples  median error"
    for number, errors in zip(measurement["lift_samples"], measurement["errors"], strict=True):
        yield f"{number:12}  {statistics.median(errors):12.2e}"
    yield f"{measurement['settings']['runs']} runs in {measurement['seconds']:.1f} s"
