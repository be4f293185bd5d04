"""The commands `lietransformer train` and `lietransformer evaluate`."""

import argparse
import textwrap
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lietransformer.cli import sync as tracking

if TYPE_CHECKING:
    from lietransformer.interruption import Interruption


def add_parsers(commands: Any) -> None:
    """Declare the subcommands."""
    train = commands.add_parser(
        "train",
        help="train a model, or resume an interrupted run",
        description="Train a model of the paper. The same command resumes an interrupted run, "
        "which ends with the same numbers.",
    )
    train.add_argument("--config", type=Path, help="YAML file of settings")
    train.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="one setting; wins over the file, can be repeated",
    )
    train.add_argument(
        "--out", type=Path, required=True, help="folder of the run; with seeds, of all of them"
    )
    train.add_argument("--device", choices=("auto", "cpu", "cuda"), help="where to compute")
    train.add_argument(
        "--precision", choices=("float32", "float64", "tf32", "bf16"), help="of the arithmetic"
    )
    train.add_argument(
        "--checkpoint-every",
        type=_seconds,
        default=60.0,
        metavar="SECONDS",
        help="how much work may be lost at most if the process is killed (default: 60)",
    )
    train.add_argument("--threads", type=int, help="CPU threads (default: all cores)")
    train.add_argument(
        "--seeds-at-once",
        choices=("auto", "true", "false"),
        default="auto",
        help="train all seeds at once on one device; auto: on a GPU, models that leave it room",
    )
    tracking.add_option(train)
    train.add_argument(
        "--summary",
        type=Path,
        metavar="FILE",
        help="JSON file for the results of all seeds, written when the last one is done",
    )
    train.add_argument(
        "--wait",
        action="store_true",
        help="wait for another process that works on the run, instead of refusing to start",
    )
    train.add_argument("--force", action="store_true", help="start over, and lose what is there")
    train.add_argument(
        "--settings", action=_ShowSettings, nargs=0, help="list the settings, and stop"
    )
    train.set_defaults(run=_train)

    evaluate = commands.add_parser(
        "evaluate", help="test a trained model again, also on another dataset"
    )
    evaluate.add_argument("folder", type=Path, help="folder of a run")
    evaluate.add_argument("--data", type=Path, help="another dataset than the run's")
    evaluate.add_argument(
        "--out", type=Path, help="folder for evaluation.json and evaluation.h5 (default: the run's)"
    )
    evaluate.add_argument(
        "--device", choices=("auto", "cpu", "cuda"), help="where to compute (default: the run's)"
    )
    evaluate.add_argument("--threads", type=int, help="CPU threads (default: as many as the run's)")
    evaluate.add_argument("--json", action="store_true", help="print JSON instead of a table")
    evaluate.set_defaults(run=_evaluate)


def _seconds(text: str) -> float:
    seconds = float(text)
    if not seconds >= 0:
        raise ValueError  # argparse says what was expected and what was found
    return seconds


class _ShowSettings(argparse.Action):
    """--settings: every key with its meaning."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from lietransformer.training.config import RunConfig

        for name, field in RunConfig.model_fields.items():
            print(name)
            print(textwrap.indent(textwrap.fill(field.description or "", 80), "    "))
        print("seeds")
        print("    in place of seed: a list; one run for each, in folders seed-0, seed-1, …")
        parser.exit()


def _train(options: argparse.Namespace) -> int:
    from lietransformer.interruption import Interruption

    # Before torch is imported, which takes seconds: a signal that comes now is heard, too.
    interruption = Interruption()
    with interruption.listening():
        return _train_all(options, interruption)


def _train_all(options: argparse.Namespace, interruption: "Interruption") -> int:
    from lietransformer.files import require_writable_name
    from lietransformer.interruption import RESUME_EXIT_CODE, Interrupted
    from lietransformer.training.config import read_runs
    from lietransformer.training.display import logging_to_stderr, summary
    from lietransformer.training.loop import Run
    from lietransformer.training.multi_seed.engine import group_runs
    from lietransformer.training.run_folder import RunFolder, write_json

    configs, are_several = read_runs(options.config, [*options.set, *_flags(options)])
    tracking.require_usable_option(options.tracking)
    if options.summary is not None:
        require_writable_name(options.summary, replace=True)
    runs = [
        Run(
            config,
            RunFolder(options.out / f"seed-{config.seed}" if are_several else options.out),
            interruption=interruption,
            seconds_between_checkpoints=options.checkpoint_every,
            start_over=options.force,
            wait=options.wait,
        )
        for config in configs
    ]
    results = []
    with logging_to_stderr():
        for group in group_runs(runs, options.seeds_at_once):
            try:
                with ExitStack() as tracked:
                    for run in group.runs:
                        tracked.enter_context(tracking.tracked(options.tracking, run))
                    done = group.execute()
            except Interrupted as stopped:
                same = "the same command" + (" without --force" if options.force else "")
                where = ", ".join(str(run.folder.path) for run in group.runs)
                print(f"{where}: stopped by {stopped}; {same} resumes from here")
                return RESUME_EXIT_CODE
            for run, result in zip(group.runs, done, strict=True):
                print(summary(result))
                print(f"{run.folder.path}: {result['status']}\n")
            results += done
    if options.summary is not None:
        write_json(options.summary, results)
    return 0


def _flags(options: argparse.Namespace) -> list[str]:
    """Settings that have their own option."""
    given = {name: getattr(options, name) for name in ("device", "precision", "threads")}
    return [f"{name}={value}" for name, value in given.items() if value is not None]


def _evaluate(options: argparse.Namespace) -> int:
    from lietransformer.training.display import logging_to_stderr, table
    from lietransformer.training.evaluation import evaluate_run
    from lietransformer.training.run_folder import RunFolder, to_json

    with logging_to_stderr():
        evaluation = evaluate_run(
            RunFolder(options.folder),
            data=options.data,
            out=options.out,
            device=options.device,
            threads=options.threads,
        )
    print(to_json(evaluation) if options.json else table(evaluation["test"]))
    return 0
