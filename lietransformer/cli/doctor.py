"""The command `lietransformer doctor`."""

import argparse
from functools import partial
from typing import Any

from lietransformer.cli import sync as tracking
from lietransformer.cli.options import add_results_argument


def add_parser(commands: Any) -> None:
    """Declare the subcommand."""
    parser = commands.add_parser(
        "doctor",
        help="check this machine and the results, and say what to do about each problem",
        description="Check packages, GPU, compiler, disk, datasets, runs and the MLflow store, "
        "and say what to do about each problem. Safe while runs are in progress. "
        "The exit code is 1 if there is a problem.",
    )
    add_results_argument(parser)
    parser.add_argument(
        "--thorough",
        action="store_true",
        help="verify the hashes of datasets, which reads all of them",
    )
    tracking.add_option(parser)
    parser.add_argument(
        "--json", action="store_true", help="print JSON, with the names of all files and runs"
    )
    parser.set_defaults(run=_doctor)


def _doctor(options: argparse.Namespace) -> int:
    from lietransformer.doctor import findings, machine

    checks: dict[str, findings.Check] = {
        "Packages": machine.packages,
        "Machine": machine.hardware,
        "Storage": partial(machine.storage, options.results),
    }
    try:
        from lietransformer.doctor.results import Results

        results = Results(options.results, options.tracking, options.thorough)
        checks |= results.checks
    except (ImportError, OSError) as error:  # a package is missing or broken
        failure = findings.Finding("problem", f"not checked: {error}", "run `make setup`")
        checks["Results"] = lambda: [failure]
    report = {title: findings.run(check) for title, check in checks.items()}
    print(findings.as_json(report) if options.json else findings.as_text(report))
    return 1 if findings.counts(report)["problem"] else 0
