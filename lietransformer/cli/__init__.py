"""The command `lietransformer`: one subcommand per job."""

import argparse
import json
import os
import signal
import sys
from collections.abc import Sequence

from lietransformer import __version__
from lietransformer.cli import archive as archive_command
from lietransformer.cli import complexity as complexity_command
from lietransformer.cli import data as data_command
from lietransformer.cli import doctor as doctor_command
from lietransformer.cli import forecast as forecast_command
from lietransformer.cli import invariance as invariance_command
from lietransformer.cli import lifting as lifting_command
from lietransformer.cli import report as analysis_command
from lietransformer.cli import sync as tracking_command
from lietransformer.cli import train as training_command
from lietransformer.errors import UserError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one subcommand; the exit code is 0 if it did what was asked."""
    try:
        options = _parser().parse_args(arguments)
        code = int(options.run(options))
        sys.stdout.flush()
        return code
    except UserError as error:
        print(f"lietransformer: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        # The reader of our output, such as `head`, has seen enough. Python would complain
        # when it flushes at exit, unless there is something to flush to.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except KeyboardInterrupt:
        return 128 + signal.SIGINT


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="lietransformer",
        description="Reproduction of LieTransformer: Equivariant Self-Attention for Lie Groups.",
    )
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    models = commands.add_parser("models", help="list the paper's models and their sizes")
    models.add_argument("--json", action="store_true", help="print JSON instead of a table")
    models.set_defaults(run=_models)

    data_command.add_parser(commands)
    training_command.add_parsers(commands)
    tracking_command.add_parser(commands)
    invariance_command.add_parser(commands)
    complexity_command.add_parser(commands)
    lifting_command.add_parser(commands)
    analysis_command.add_parsers(commands)
    archive_command.add_parsers(commands)
    forecast_command.add_parser(commands)
    doctor_command.add_parser(commands)

    quickstart = commands.add_parser(
        "quickstart", help="build a LieTransformer-SE(2), measure its invariance, train it"
    )
    quickstart.add_argument(
        "--seconds", type=float, default=60.0, help="how long to train (default: %(default)s)"
    )
    quickstart.add_argument("--seed", type=int, default=0, help="random seed (default: 0)")
    quickstart.set_defaults(run=_quickstart)
    return parser


# Subcommands import what they need when they run, so that `--help` answers at once.


def _models(options: argparse.Namespace) -> int:
    from lietransformer.experiments.registry import presets
    from lietransformer.reference import parameter_counts

    published = parameter_counts()
    rows: list[dict[str, str | int | None]] = []
    for preset in presets():
        try:
            parameters = preset.parameter_count
        except ImportError:  # an optional package is not installed
            parameters = None
        count = published.get((preset.task, preset.model))
        rows.append(
            {
                "task": preset.task,
                "model": preset.model,
                "group": preset.group,
                "size": preset.size,
                "parameters": parameters,
                "paper": count.paper if count else None,
                "exact": count.exact if count else None,
            }
        )
    if options.json:
        print(json.dumps(rows, indent=2))
    else:
        print(_table(rows))
    return 0


def _quickstart(options: argparse.Namespace) -> int:
    from lietransformer.cli.quickstart import run

    return 0 if run(seconds=options.seconds, seed=options.seed) else 1


def _table(rows: Sequence[dict[str, str | int | None]]) -> str:
    """Rows as aligned text: numbers to the right, a dash where there is nothing."""
    columns = list(rows[0])
    cells = [[_cell(row[column]) for column in columns] for row in rows]
    widths = [
        max(len(column), *(len(line[i]) for line in cells)) for i, column in enumerate(columns)
    ]
    is_number = [any(isinstance(row[column], int) for row in rows) for column in columns]
    lines = []
    for line in [columns, *cells]:
        aligned = (
            cell.rjust(width) if number else cell.ljust(width)
            for cell, width, number in zip(line, widths, is_number, strict=True)
        )
        lines.append("  ".join(aligned).rstrip())
    return "\n".join(lines)


def _cell(value: str | int | None) -> str:
    if value is None or value == "":
        return "–"
    return f"{value:,}" if isinstance(value, int) else value
