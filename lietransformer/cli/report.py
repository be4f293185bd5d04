"""The commands `lietransformer tables`, `figures`, `claims`, `animation` and `report`."""

import argparse
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from lietransformer.cli.options import add_results_argument
from lietransformer.errors import UserError


def add_parsers(commands: Any) -> None:
    """Declare the subcommands."""
    tables = _add(commands, "tables", _tables, "write the paper's tables with our numbers")
    _add_only(tables, "table1")
    tables.add_argument("--out", type=Path, help="folder (default: RESULTS/tables)")

    figures = _add(commands, "figures", _figures, "draw the paper's figures from our runs")
    _add_only(figures, "figure4")
    figures.add_argument("--out", type=Path, help="folder (default: RESULTS/figures)")

    claims = _add(commands, "claims", _claims, "say which of the paper's claims our runs bear out")
    claims.add_argument("--out", type=Path, help="folder (default: RESULTS)")

    animation = _add(commands, "animation", _animation, "the trajectory of Figure 6 as it moves")
    animation.add_argument("--out", type=Path, help="GIF (default: RESULTS/figures/trajectory.gif)")

    report = _add(commands, "report", _report, "put tables, figures and claims on one page")
    report.add_argument("--out", type=Path, help="HTML file (default: RESULTS/report.html)")

    _add(commands, "places", _places, "say where everything is")


def _add(
    commands: Any, name: str, run: Callable[[argparse.Namespace], int], text: str
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=text,
        description=f"{text[:1].upper()}{text[1:]}. Reads local and published runs, also while "
        "some are running; what was not run says so.",
    )
    add_results_argument(parser)
    parser.set_defaults(run=run)
    return parser


def _add_only(parser: argparse.ArgumentParser, example: str) -> None:
    parser.add_argument(
        "--only", nargs="+", metavar="NAME", help=f"only these, for example {example}"
    )


def _chosen(options: argparse.Namespace, known: Collection[str]) -> list[str]:
    """The names given with --only, or all."""
    for name in options.only or ():
        if name not in known:
            raise UserError(f"--only must name some of {', '.join(known)}, got {name}.")
    return list(dict.fromkeys(options.only or known))


def _out(options: argparse.Namespace, default: str) -> Path:
    """Where to write; an archive of published runs is never written to."""
    from lietransformer.layout import Archive

    if options.out is None and Archive(options.results).exists:
        raise UserError(
            f"{options.results} is an archive of published runs, which is not written to. Give "
            f"--out, or the results folder {options.results.parent}."
        )
    return Path(options.out or options.results / default)


def _tables(options: argparse.Namespace) -> int:
    from lietransformer.experiments.registry import TABLES
    from lietransformer.report.runs import read_sweep
    from lietransformer.report.tables import write_tables

    names = _chosen(options, TABLES)
    sweep = read_sweep(options.results)
    for path in write_tables(sweep, names, _out(options, "tables")):
        print(path)
    return 0


def _figures(options: argparse.Namespace) -> int:
    from lietransformer.experiments.registry import FIGURES
    from lietransformer.report.figures import write_figures
    from lietransformer.report.runs import read_sweep

    names = _chosen(options, FIGURES)
    sweep = read_sweep(options.results)
    for path in write_figures(sweep, names, _out(options, "figures")):
        print(path)
    return 0


def _animation(options: argparse.Namespace) -> int:
    from lietransformer.experiments.springs.figures.animation import write_animation
    from lietransformer.report.runs import read_sweep

    path = _out(options, "figures/trajectory.gif")
    write_animation(read_sweep(options.results), path)
    print(path)
    return 0


def _places(options: argparse.Namespace) -> int:
    from lietransformer.cli.places import places

    print(places(options.results))
    return 0


def _claims(options: argparse.Namespace) -> int:
    from lietransformer.report.claims import decide_all
    from lietransformer.report.claims.documents import count_verdicts, write_claims
    from lietransformer.report.runs import read_sweep

    sweep = read_sweep(options.results)
    decided = decide_all(sweep)
    for path in write_claims(sweep, decided, _out(options, "")):
        print(path)
    print(count_verdicts(decided))
    return 0


def _report(options: argparse.Namespace) -> int:
    from lietransformer.report.report import write_report
    from lietransformer.report.runs import read_sweep

    path = _out(options, "report.html")
    write_report(read_sweep(options.results), path)
    print(path)
    return 0
