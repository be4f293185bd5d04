"""The command `lietransformer forecast`."""

import argparse
from pathlib import Path
from typing import Any

from lietransformer.cli.options import at_least_one
from lietransformer.errors import UserError

_CONFIG = Path("config.yaml")
_TIERS = Path("workflow", "tiers")
_PRICED = ("workstation", "paper")


def add_parser(commands: Any) -> None:
    """Declare the subcommand."""
    parser = commands.add_parser(
        "forecast",
        help="say what the sweep will take: time, memory, disk",
        description="Measure a few training steps of each model on this machine, and print the "
        "time, memory and disk that the sweep takes. Run it where `snakemake` is run, with the "
        "same --configfile and --config. Measurements are kept in forecast.json in the results "
        "until the commit changes; remove the file to measure again.",
    )
    parser.add_argument(
        "--configfile",
        type=Path,
        nargs="+",
        default=[],
        metavar="FILE",
        help="YAML files of settings that win over config.yaml",
    )
    parser.add_argument(
        "--config",
        nargs="+",
        action="extend",
        default=[],
        metavar="KEY=VALUE",
        help="settings of the sweep that win over the file, such as tier=paper or "
        "'compute={device: cpu}'",
    )
    parser.add_argument(
        "--results", type=Path, default=Path("results"), help="folder (default: %(default)s)"
    )
    parser.add_argument(
        "--jobs",
        type=at_least_one,
        metavar="N",
        help="jobs at once (default: what the cores allow)",
    )
    parser.add_argument(
        "--gflops",
        type=_rate,
        metavar="RATE",
        help="GPU-hours on a GPU of this speed: GFLOP/s of float32 matrix products; a lower bound, "
        "without the launching of kernels",
    )
    parser.add_argument(
        "--prices",
        type=Path,
        metavar="FILE",
        help="with --gflops: also write the GPU-hours of one run of each configuration of the "
        "tiers workstation and paper, published or not, to this file",
    )
    parser.add_argument(
        "--compare",
        action="store_true",
        help="also print what finished runs took beside their forecast",
    )
    parser.set_defaults(run=_forecast)


def _rate(text: str) -> float:
    if not 0 < float(text) < float("inf"):
        raise argparse.ArgumentTypeError("expected a number above 0")
    return float(text)


def _forecast(options: argparse.Namespace) -> int:
    if options.prices is not None and options.gflops is None:
        raise UserError("--prices needs the speed of the GPU. Give it by --gflops, as in 15000.")
    from lietransformer.forecast.forecast import Forecast
    from lietransformer.forecast.speed import measure_all
    from lietransformer.processes import available_cores
    from lietransformer.settings import read_settings
    from lietransformer.sweep.plan import Plan
    from lietransformer.sweep.reading import merged, resolve
    from lietransformer.training.run_folder import write_json

    def forecast(settings: dict[str, Any]) -> Forecast:
        sweep = resolve(settings, _TIERS)
        plan = Plan(sweep, options.results)
        speeds = measure_all(plan, options.results / "forecast.json")
        at_once = options.jobs or max(1, available_cores() // sweep.compute.threads)
        return Forecast(plan, speeds, at_once=at_once, gflops=options.gflops)

    # As Snakemake does it: what is given within a key leaves the rest of the key as it is.
    given: dict[str, Any] = {}
    for path in (_CONFIG, *options.configfile):
        given = merged(given, read_settings(path))
    given = merged(given, read_settings(None, options.config))
    made = forecast(given)
    if options.prices is not None:
        # Of all runs that a table or figure can show, also of those that are published.
        tier = made.plan.config.tier
        tiers = _PRICED if tier in _PRICED else (tier,)
        every = {**given, "published": "ignore"}
        prices = [forecast({**every, "tier": own}).prices() for own in tiers]
        hours = {name: own for each in prices for name, own in each["hours"].items()}
        write_json(options.prices, {**prices[-1], "hours": hours})
    print(made.text())
    if options.compare:
        print("", made.comparison(), sep="\n")
    return 0
