"""The command `lietransformer data`."""

import argparse
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any, get_args

from lietransformer.cli.options import add_settings_options
from lietransformer.errors import UserError
from lietransformer.experiments.registry import TaskName, plan_of
from lietransformer.files import require_writable_name
from lietransformer.interruption import undisturbed

_PICTURES = (".png", ".pdf", ".svg")


def add_parser(commands: Any) -> None:
    """Declare the subcommand."""
    data = commands.add_parser("data", help="generate and inspect the datasets")
    kinds = data.add_subparsers(required=True, metavar="DATASET")
    for kind in get_args(TaskName):
        text = plan_of(kind).SUMMARY
        parser = kinds.add_parser(
            kind,
            help=text,
            description=f"Write the {kind} dataset: {text}.",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        add_settings_options(parser, partial(_settings, kind))
        parser.add_argument("--out", type=Path, required=True, help="HDF5 file to write")
        parser.add_argument("--force", action="store_true", help="replace the file if it is there")
        parser.set_defaults(run=_generate, kind=kind)

    inspect = kinds.add_parser("inspect", help="check a dataset and say what is in it")
    inspect.add_argument("file", type=Path, help="HDF5 file of any of the datasets")
    inspect.add_argument(
        "--plot", type=Path, metavar="PICTURE", help="also draw a page of examples (png, pdf, svg)"
    )
    inspect.set_defaults(run=_inspect)


def _settings(kind: str) -> Any:
    return plan_of(kind).Generator


def _generate(options: argparse.Namespace) -> int:
    with undisturbed():
        from lietransformer.data.config import read_config

        generate = import_module(f"lietransformer.experiments.{options.kind}.dataset").generate
    config = read_config(_settings(options.kind), options.config, options.set)
    require_writable_name(options.out, replace=options.force)
    started = time.monotonic()
    with _unwinding_when_terminated():
        generate(config, options.out)
    size = options.out.stat().st_size / 1e6
    print(f"{options.out}: {size:,.1f} MB in {time.monotonic() - started:.1f} s")
    return 0


def _inspect(options: argparse.Namespace) -> int:
    from lietransformer.data.inspection import describe
    from lietransformer.data.reader import DatasetFile

    if options.plot is not None and options.plot.suffix.lower() not in _PICTURES:
        raise UserError(
            f"--plot must be a file ending in {', '.join(_PICTURES)}, got {options.plot}."
        )
    file = DatasetFile(options.file)
    print(describe(file))
    if options.plot is not None:
        from lietransformer.data.inspection import draw_page

        draw_page(file, options.plot)
        print(f"\n{options.plot}: a page of examples")
    return 0


@contextmanager
def _unwinding_when_terminated() -> Iterator[None]:
    """Let SIGTERM, which schedulers send, unwind the stack, so that temporary files are removed."""

    def terminate(number: int, _: FrameType | None) -> None:
        sys.exit(128 + number)

    before = signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
