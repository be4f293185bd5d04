"""The command `lietransformer doctor`."""

import argparse
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lietransformer.cli import sync as tracking
from lietransformer.cli.options import add_results_argument
from lietransformer.doctor.findings import Finding, Section

if TYPE_CHECKING:
    from lietransformer.doctor.listing import Listing
    from lietransformer.doctor.runs import ExaminedRun


def add_parser(commands: Any) -> None:
    """Declare the subcommand."""
    parser = commands.add_parser(
        "doctor",
        help="check this machine and the results, and say what to do about what is wrong",
        description="Check versions, GPU, compiler, disk, datasets, runs and the MLflow store, "
        "and say what to do about what is wrong. Changes nothing, also while runs are going on. "
        "The exit code is 1 if there is a problem.",
    )
    add_results_argument(parser)
    parser.add_argument(
        "--thorough",
        action="store_true",
        help="read all of every dataset, model and evaluation, and compare it with its hash",
    )
    tracking.add_option(parser)
    parser.add_argument(
        "--json", action="store_true", help="print JSON, with the names of all files and runs"
    )
    parser.set_defaults(run=_doctor)


def _doctor(options: argparse.Namespace) -> int:
    from lietransformer.doctor.report import as_json, as_text, has_problem

    examination = _Examination(options.results, options.tracking, thorough=options.thorough)
    sections = [_examined(title, check) for title, check in examination.checks()]
    print(as_json(sections, options.results) if options.json else as_text(sections))
    return 1 if has_problem(sections) else 0


def _examined(title: str, check: Callable[[], Iterable[Finding]]) -> Section:
    """The findings of a check. One that fails itself must not keep the others from speaking."""
    findings: list[Finding] = []
    try:
        for finding in check():
            findings.append(finding)  # one by one: what was found before a failure counts
    except ImportError as error:
        findings.append(
            Finding("problem", f"could not be checked: {error}", "run `make setup` to install it")
        )
    except Exception as error:
        findings.append(
            Finding(
                "problem",
                f"could not be checked: {type(error).__name__}: {error}",
                "mend what this names; if that is all right, the mistake is the doctor's: "
                "please report it",
            )
        )
    return Section(title, findings)


class _Examination:
    """All checks. What they need is imported when they run, so that one can fail alone."""

    def __init__(self, results: Path, tracking: str | None, *, thorough: bool) -> None:
        self._results = results
        self._tracking = tracking
        self._thorough = thorough

    def checks(self) -> Iterator[tuple[str, Callable[[], Iterable[Finding]]]]:
        yield "Packages", self._packages
        yield "Machine", self._machine
        yield "Tools", self._tools
        yield "Storage", self._storage
        if self._results.is_dir():
            yield "Datasets", self._datasets
            yield "Runs", self._runs
            yield "Archive", self._archive
            yield "Sweep", self._sweep
            yield "Leftovers", self._leftovers
        yield "MLflow", self._store

    @cached_property
    def _listing(self) -> "Listing":
        from lietransformer.doctor.listing import list_results

        return list_results(self._results)

    @cached_property
    def _examined_runs(self) -> list["ExaminedRun"]:
        from lietransformer.doctor.runs import examine

        return [examine(folder, thorough=self._thorough) for folder in self._listing.runs]

    def _packages(self) -> Iterable[Finding]:
        from lietransformer.doctor import versions

        return versions.check()

    def _machine(self) -> Iterable[Finding]:
        from lietransformer.doctor import hardware

        return hardware.check()

    def _tools(self) -> Iterable[Finding]:
        from lietransformer.doctor import tools

        return tools.check()

    def _storage(self) -> Iterable[Finding]:
        from lietransformer.doctor import storage

        return storage.check(self._results)

    def _datasets(self) -> Iterable[Finding]:
        from lietransformer.doctor import datasets

        return datasets.check(self._results, thorough=self._thorough)

    def _runs(self) -> Iterable[Finding]:
        from lietransformer.doctor import runs

        return runs.check(self._examined_runs, self._listing.unreadable)

    def _archive(self) -> Iterable[Finding]:
        from lietransformer.doctor import archive

        return archive.check(self._results)

    def _sweep(self) -> Iterable[Finding]:
        from lietransformer.doctor import sweep

        return sweep.check(self._results, self._listing, self._examined_runs)

    def _leftovers(self) -> Iterable[Finding]:
        from lietransformer.doctor import leftovers

        return leftovers.check(self._results, self._listing)

    def _store(self) -> Iterable[Finding]:
        from lietransformer.doctor import store

        uri = store.address_of(self._results, self._tracking)
        return store.check(self._results, uri, self._examined_runs)
