"""The command `lietransformer invariance`."""

import argparse
import statistics
from pathlib import Path
from typing import Any

from lietransformer.files import require_writable_name
from lietransformer.settings_options import add_settings_options
from lietransformer.signals import undisturbed


def add_parser(commands: Any) -> None:
    """Declare the subcommand."""
    parser = commands.add_parser(
        "invariance",
        help="measure how far a model is from invariance (Figure 3)",
        description="Rotate examples and compare the logits of untrained LieTransformers on SE(2), "
        "for more and more lift samples (Figure 3). Without settings, as in the paper.",
    )
    add_settings_options(parser, _settings)
    parser.add_argument("--out", type=Path, required=True, help="JSON file to write")
    parser.add_argument("--threads", type=_threads, help="CPU threads (default: all cores)")
    parser.add_argument("--force", action="store_true", help="replace the file if it is there")
    parser.set_defaults(run=_measure)


def _settings() -> Any:
    from lietransformer.invariance.config import InvarianceConfig

    return InvarianceConfig


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
