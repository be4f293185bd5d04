"""The command `lietransformer forecast`."""

import argparse
from pathlib import Path
from typing import Any

from lietransformer.cli.options import at_least_one
from lietransformer.errors import UserError

_CONFIG = Path("config.yaml")
_TIERS = Path("workflow", "tiers")


def add_parser(commands: Any) -> None:
    """Declare the subcommand."""
    parser = commands.add_parser(
        "forecast",
        help="say what the sweep will take: time, memory, disk",
        description="Train each model of the sweep for a few steps on this machine, and say how "
        "many jobs there are and what time, memory and disk they will take. Run it where "
        "`snakemake` is run, with the same --configfile and --config.",
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
        "--seconds",
        type=float,
        default=2.0,
        help="how long to time training steps of each model, at least three (default: 2)",
    )
    parser.add_argument(
        "--speed",
        type=Path,
        metavar="FILE",
        help="do not measure; take the speeds of this forecast.json, perhaps of another machine",
    )
    parser.add_argument(
        "--gflops",
        type=_rate,
        metavar="RATE",
        help="forecast for a machine of this speed: GFLOP/s of float32 matrix products in a job; "
        "on a GPU a lower bound, which leaves out the time of launching kernels",
    )
    parser.add_argument(
        "--out", type=Path, help="where to keep the forecast (default: forecast.json in results)"
    )
    parser.add_argument(
        "--prices",
        type=Path,
        metavar="FILE",
        help="with --gflops: also write the GPU-hours of one run of each configuration, published "
        "or not, to this file; a lower bound",
    )
    parser.add_argument(
        "--compare",
        action="store_true",
        help="measure nothing; put the forecast that was kept beside what finished runs took",
    )
    parser.set_defaults(run=_forecast)


def _rate(text: str) -> float:
    number = float(text)
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError("expected a number above 0")
    return number


def _forecast(options: argparse.Namespace) -> int:
    if options.prices is not None and options.gflops is None:
        raise UserError("--prices needs the speed of the GPU. Give it by --gflops, as in 15000.")
    kept = options.out or options.results / "forecast.json"
    if options.compare:
        from lietransformer.forecast.comparison import compare, read_forecast, text

        forecast = read_forecast(kept)
        print(text(compare(forecast, options.results), forecast))
        return 0

    from lietransformer.forecast.forecast import Forecast
    from lietransformer.forecast.measuring import Measurements, measure_all, subjects_of
    from lietransformer.processes import available_cores
    from lietransformer.settings import read_settings
    from lietransformer.sweep.plan import Plan
    from lietransformer.sweep.reading import merged, resolve
    from lietransformer.training.run_folder import write_json

    # As Snakemake does it: what is given within a key leaves the rest of the key as it is.
    given: dict[str, Any] = {}
    for path in (_CONFIG, *options.configfile):
        given = merged(given, read_settings(path))
    sweep = resolve(merged(given, read_settings(None, options.config)), _TIERS)
    if options.prices is not None:  # of every run, also of those that are published
        sweep = sweep.model_copy(update={"published": "ignore"})
    plan = Plan(sweep, options.results)
    if options.speed is None:
        measured = measure_all(plan, options.seconds)
    else:
        measured = Measurements.read(options.speed)
        measured.require(list(subjects_of(plan, measured.device)), options.speed)
    at_once = options.jobs or max(1, available_cores() // sweep.compute.threads)
    made = Forecast(plan, measured, jobs_at_once=at_once, gflops=options.gflops)
    write_json(kept, made.stored())
    if options.prices is not None:
        write_json(options.prices, made.prices())
    print(made.text())
    print(f"Kept in {kept}; `lietransformer forecast --compare` puts the runs beside it.")
    return 1 if made.total.unknown else 0
