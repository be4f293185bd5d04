"""The command `lietransformer complexity`."""

import argparse
from pathlib import Path
from typing import Any

from lietransformer.files import require_writable_name
from lietransformer.settings_options import add_settings_options
from lietransformer.signals import undisturbed


def add_parser(commands: Any) -> None:
    """Declare the subcommand."""
    parser = commands.add_parser(
        "complexity",
        help="measure what LieSelfAttention and LieConv cost (appendix G)",
        description="Measure time and memory of one layer of LieSelfAttention and of LieConv, "
        "forward and backward, against the size of the set and of the neighbourhoods. Nothing "
        "else should be running.",
    )
    add_settings_options(parser, _settings)
    parser.add_argument("--out", type=Path, required=True, help="JSON file to write")
    parser.add_argument("--force", action="store_true", help="replace the file if it is there")
    parser.set_defaults(run=_measure)


def _settings() -> Any:
    from lietransformer.complexity.config import ComplexityConfig

    return ComplexityConfig


def _measure(options: argparse.Namespace) -> int:
    with undisturbed():
        import torch

        from lietransformer.complexity.measure import measure
        from lietransformer.data.config import read_config
        from lietransformer.training.run_folder import write_json

    config = read_config(_settings(), options.config, options.set)
    require_writable_name(options.out, replace=options.force)
    # One thread: with more, small sizes would use fewer of them, and time would grow too slowly.
    torch.set_num_threads(1)
    measurement = measure(config)
    write_json(options.out, measurement)
    print(f"{'set':>6} {'neighbourhood':>13} {'ms':>9} {'MB':>9}  layer")
    for point in measurement["measurements"]:
        print(
            f"{point['set_size']:6} {point['neighbourhood']:13} {1e3 * point['seconds']:9.1f}"
            f" {point['megabytes']:9.1f}  {point['layer']}"
        )
    print(f"{options.out}: in {measurement['seconds']:.1f} s")
    return 0
