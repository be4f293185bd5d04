"""Commands that compute something without training and write it to a JSON file."""

import argparse
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from lietransformer.cli.options import add_settings_options, at_least_one
from lietransformer.files import require_writable_name
from lietransformer.interruption import undisturbed


def add_measurement(
    commands: Any,
    name: str,
    *,
    summary: str,
    description: str,
    settings: Callable[[], type[Any]],
    measure: Callable[[Any], dict[str, Any]],
    table: Callable[[dict[str, Any]], Iterable[str]],
) -> None:
    """Declare the subcommand.

    Args:
        commands: where to.
        name: of the command.
        summary: what it does, in a few words.
        description: the same in sentences.
        settings: the class of its settings.
        measure: computes what is written. All three import what they need when they are called.
        table: what is printed of it, line by line.
    """
    parser = commands.add_parser(name, help=summary, description=description)
    add_settings_options(parser, settings)
    parser.add_argument("--out", type=Path, required=True, help="JSON file to write")
    parser.add_argument("--threads", type=at_least_one, default=1, help="CPU threads (default: 1)")
    parser.add_argument("--force", action="store_true", help="replace the file if it is there")

    def run(options: argparse.Namespace) -> int:
        with undisturbed():
            import torch

            from lietransformer.data.config import read_config
            from lietransformer.training.run_folder import write_json

            config = read_config(settings(), options.config, options.set)
        require_writable_name(options.out, replace=options.force)
        torch.set_num_threads(options.threads)
        content = measure(config)
        write_json(options.out, content)
        for line in (*table(content), str(options.out)):
            print(line)
        return 0

    parser.set_defaults(run=run)
