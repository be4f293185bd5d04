"""The command `lietransformer lifting`."""

import argparse
from pathlib import Path
from typing import Any

from lietransformer.files import require_writable_name
from lietransformer.settings_options import add_settings_options
from lietransformer.signals import undisturbed


def add_parser(commands: Any) -> None:
    """Declare the subcommand."""
    parser = commands.add_parser(
        "lifting",
        help="lift a small point cloud to SE(2), to be drawn (Figure 2)",
        description="Lift a small point cloud to SE(2) and choose the neighbourhood of one "
        "element, with the code that models use. `lietransformer figures` draws it.",
    )
    add_settings_options(parser, _settings)
    parser.add_argument("--out", type=Path, required=True, help="JSON file to write")
    parser.add_argument("--force", action="store_true", help="replace the file if it is there")
    parser.set_defaults(run=_lift)


def _settings() -> Any:
    from lietransformer.lifting.config import LiftingConfig

    return LiftingConfig


def _lift(options: argparse.Namespace) -> int:
    with undisturbed():
        from lietransformer.data.config import read_config
        from lietransformer.lifting.example import example
        from lietransformer.training.run_folder import write_json

    config = read_config(_settings(), options.config, options.set)
    require_writable_name(options.out, replace=options.force)
    made = example(config)
    write_json(options.out, made)
    print(f"{options.out}: {len(made['points'])} points, {len(made['elements'])} elements")
    return 0
