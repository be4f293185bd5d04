"""Options that several commands have."""

import argparse
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic import BaseModel


def add_settings_options(
    parser: argparse.ArgumentParser, settings: Callable[[], type[BaseModel]]
) -> None:
    """Declare --config, --set and --settings.

    Args:
        parser: of the command.
        settings: the class of the settings; called when they are listed, and not before, because
            its module may take seconds to import.
    """
    parser.add_argument(
        "--config", type=Path, help="YAML file of settings; the others are the paper's"
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="one setting; wins over the file, can be repeated",
    )

    class ShowSettings(argparse.Action):
        """--settings: every key with its default and its meaning."""

        def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
            _print_settings(settings())
            parser.exit()

    parser.add_argument(
        "--settings", action=ShowSettings, nargs=0, help="list the settings, and stop"
    )


def _print_settings(settings: type[BaseModel], outer: str = "") -> None:
    for name, field in settings.model_fields.items():
        if isinstance(field.default, BaseModel):  # settings within settings
            _print_settings(type(field.default), f"{outer}{name}.")
            continue
        default = "null" if field.default is None else field.default
        print(f"{outer}{name}: {default}")
        print(textwrap.indent(textwrap.fill(field.description or "", 80), "    "))


def add_results_argument(parser: argparse.ArgumentParser) -> None:
    """Declare the folder that everything is in."""
    parser.add_argument(
        "results",
        type=Path,
        nargs="?",
        default=Path("results"),
        metavar="RESULTS",
        help="folder of all results (default: %(default)s)",
    )


def at_least_one(text: str) -> int:
    """The type of an option that counts something."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("expected at least 1")
    return number
