"""The commands `lietransformer publish` and `lietransformer verify`."""

import argparse
import json
import signal
import sys
from pathlib import Path
from typing import Any

from lietransformer.cli.options import add_results_argument, at_least_one
from lietransformer.errors import UserError
from lietransformer.processes import available_cores
from lietransformer.settings import in_seconds


def add_parsers(commands: Any) -> None:
    """Declare the subcommands."""
    publish = commands.add_parser(
        "publish",
        help="add finished runs to the archive of published runs",
        description="Add the finished runs of a results folder to the archive results/published, "
        "from which tables and figures are made. Only runs at the paper's protocol, by committed "
        "code and on the dataset of the sweep are taken. Repeating it changes nothing.",
    )
    add_results_argument(publish)
    publish.add_argument("--archive", type=Path, help="the archive (default: results/published)")
    publish.add_argument(
        "--check",
        action="store_true",
        help="publish nothing; compare every file of the archive with the manifest",
    )
    publish.set_defaults(run=_publish)

    verify = commands.add_parser(
        "verify",
        help="train published runs again and compare",
        description="Generate the datasets of published runs and train a sample of the runs again. "
        "Numbers are equal to the bit on the same kind of CPU with the same versions; elsewhere "
        "they are compared with the spread over seeds. The exit code is 1 if a run differs, "
        "or if no named run was trained far enough to be compared.",
    )
    verify.add_argument(
        "runs",
        nargs="*",
        metavar="RUN",
        help="such as springs/LieTransformer-T2/n10/seed-0; none: drawn by --seed",
    )
    verify.add_argument(
        "--budget",
        type=_duration,
        metavar="TIME",
        help="how long each core trains, such as 90s, 15m or 2h, or 0 for none (default: 15m; for "
        "named runs: until they are done)",
    )
    verify.add_argument("--seed", type=int, default=0, help="draws the runs (default: 0)")
    verify.add_argument("--cores", type=at_least_one, help="runs at a time (default: all cores)")
    verify.add_argument(
        "--results", type=Path, default=Path("results"), help="folder (default: %(default)s)"
    )
    verify.add_argument(
        "--archive", type=Path, help="the archive (default: published in the results)"
    )
    verify.add_argument(
        "--out", type=Path, help="where to keep the outcome (default: verification.json in results)"
    )
    verify.add_argument(
        "--report-only", action="store_true", help="exit with 0 also if a run differs"
    )
    verify.add_argument(
        "--show", type=Path, metavar="FILE", help="train nothing; print an outcome that was kept"
    )
    verify.set_defaults(run=_verify)


def _duration(given: str) -> float:
    try:
        return in_seconds(given)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"expected {error}") from error


def _publish(options: argparse.Namespace) -> int:
    from lietransformer.layout import FOLDER, Archive

    path = options.archive or Path("results", FOLDER)
    if options.check:
        from lietransformer.archive.checking import check

        problems = check(Archive(path))
        for problem in problems:
            print(problem)
        runs = 0 if problems else len(Archive(path).runs)
        print(f"Problems: {len(problems)}" if problems else f"{path}: {runs} runs, all intact")
        return 1 if problems else 0

    from lietransformer.archive.publish import publish, summary

    for line in summary(publish(options.results, path), Archive(path)):
        print(line)
    return 0


def _verify(options: argparse.Namespace) -> int:
    from lietransformer.archive import verify

    if options.show is not None:
        try:
            content = json.loads(options.show.read_text(encoding="utf-8"))
            lines = list(verify.text(content))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UserError(
                f"{options.show} is not the outcome of a verification. Write one with "
                "`lietransformer verify`."
            ) from error
    else:
        content = _verified(options)
        lines = list(verify.text(content))
    for line in lines:
        print(line)
    is_asked = bool(options.runs) and options.budget != 0 and options.show is None
    is_bad = verify.has_failed(content) or (is_asked and not verify.has_compared(content))
    return 1 if is_bad and not options.report_only else 0


def _verified(options: argparse.Namespace) -> dict[str, Any]:
    from lietransformer.archive import verify
    from lietransformer.layout import FOLDER, Archive

    # Stopped by a scheduler, it stops the runs that it has started.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    archive = Archive(options.archive or options.results / FOLDER)
    archive.require_intact()
    state = archive.state
    budget = options.budget
    if budget is None and not options.runs:
        budget = 15 * 60.0
    chosen = [] if budget == 0 else verify.choose(archive, options.runs, options.seed)
    needed = {archive.runs[folder]["dataset"] for folder in chosen}
    datasets = verify.check_datasets(archive, options.results, needed)
    usable = {check.name for check in datasets if check.verdict == "identical"}
    chosen = [folder for folder in chosen if archive.runs[folder]["dataset"] in usable]
    cores = options.cores or available_cores()
    trainer = verify.Trainer(archive, options.results, budget, cores)
    runs = trainer.train(chosen)

    # Only now: these import torch, and training has its own processes.
    import torch

    from lietransformer.machine import describe_machine, git_commit
    from lietransformer.training.run_folder import write_json

    machine = describe_machine(torch.device("cpu"))
    content = verify.outcome(
        datasets,
        runs,
        budget=budget,
        seed=options.seed,
        commit=git_commit(),
        machine=machine,
        manifest=state,
    )
    write_json(options.out or options.results / "verification.json", content)
    return content
