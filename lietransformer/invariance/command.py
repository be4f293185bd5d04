"""The command `lietransformer invariance`."""

import argparse
import statistics
import textwrap
from pathlib import Path
from typing import Any

from lietransformer.files import require_writable_name
from lietransformer.signals import undisturbed


def add_parser(commands: Any) -> None:
    """Declare the subcommand."""
    parser = commands.add_parser(
        "invariance",
        help="measure how far a model is from invariance (Figure 3)",
        description="Rotate examples and compare the logits of untrained LieTransformers on SE(2), "
        "for more and more lift samples (Figure 3). Without settings, as in the paper.",
    )
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
    parser.add_argument("--out", type=Path, required=True, help="JSON file to write")
    parser.add_argument("--threads", type=_threads, help="CPU threads (default: all cores)")
    parser.add_argument("--force", action="store_true", help="replace the file if it is there")
    parser.add_argument(
        "--settings", action=_ShowSettings, nargs=0, help="list the settings, and stop"
    )
    parser.set_defaults(run=_measure)


class _ShowSettings(argparse.Action):
    """--settings: every key with its default and its meaning."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from lietransformer.invariance.config import InvarianceConfig

        for name, field in InvarianceConfig.model_fields.items():
            print(f"{name}: {field.default}")
            print(textwrap.indent(textwrap.fill(field.description or "", 80), "    "))
        parser.exit()


def _threads(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("expected at least 1")
    return number


def _measure(options: argparse.Namespace) -> int:
    with undisturbed():
        import torch

        from lietransformer.data.config import read_config
        from lietransformer.invariance.config import InvarianceConfig
        from lietransformer.invariance.measure import measure
        from lietransformer.training.run_folder import write_json

    config = read_config(InvarianceConfig, options.config, options.set)
    require_writable_name(options.out, replace=options.force)
    if options.threads:
        torch.set_num_threads(options.threads)
    measurement = measure(config)
    write_json(options.out, measurement)
    print("lift samples  median error")
    for number, errors in zip(measurement["lift_samples"], measurement["errors"], strict=True):
        print(f"{number:12}  {statistics.median(errors):12.2e}")
    print(f"{options.out}: {config.runs} runs in {measurement['seconds']:.1f} s")
    return 0
