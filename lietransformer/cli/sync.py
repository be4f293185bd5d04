"""The command `lietransformer sync`, and the tracking of `lietransformer train`."""

import argparse
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lietransformer.errors import UserError
from lietransformer.tracking.address import NO_TRACKING, is_server, require_usable, tracking_uri

log = logging.getLogger(__name__)


def add_parser(commands: Any) -> None:
    """Declare the subcommand."""
    sync = commands.add_parser(
        "sync",
        help="bring finished runs into MLflow",
        description="Bring all finished runs below some folders into an MLflow store. Runs "
        "that are there already are left alone.",
    )
    sync.add_argument(
        "folders",
        type=Path,
        nargs="*",
        help="run folders, or folders of them; none: only prepare the store",
    )
    sync.add_argument(
        "--summary",
        action="store_true",
        help="bring what folders of results amount to, their tables, figures, verdicts and "
        "report, as one run, instead of their runs",
    )
    add_option(sync)
    sync.set_defaults(run=_sync)


def add_option(parser: argparse.ArgumentParser) -> None:
    """Declare --tracking; `none` means that a run is not tracked."""
    parser.add_argument(
        "--tracking",
        metavar="URI",
        help="MLflow store: sqlite:///FILE, http://HOST:PORT, or none (default: "
        "$MLFLOW_TRACKING_URI, or else sqlite:///results/mlflow.db)",
    )


def require_usable_option(given: str | None) -> None:
    """Refuse an unusable store before anything is computed."""
    if given != NO_TRACKING:
        require_usable(tracking_uri(given))


def _sync(options: argparse.Namespace) -> int:
    if options.tracking == NO_TRACKING:
        print("Nothing is tracked.")
        return 0
    uri = tracking_uri(options.tracking)
    for folder in options.folders:
        if not folder.is_dir():
            raise UserError(f"no folder of runs at {folder}. Check the name.")
    return (_sync_summaries if options.summary else _sync_runs)(uri, options.folders)


def _sync_summaries(uri: str, folders: list[Path]) -> int:
    from lietransformer.tracking.summary import add_summary

    with _store(uri) as client:
        for folder in folders:
            is_new = add_summary(client, folder)
            print(f"{uri}: {folder} {'summarised' if is_new else 'has not changed'}")
    return 0


def _sync_runs(uri: str, roots: list[Path]) -> int:
    from lietransformer.tracking.folders import run_folders

    folders = [run for root in roots for run in run_folders(root)]
    finished = [run for run in folders if run.is_done]
    changed = sync(uri, finished)
    unfinished = len(folders) - len(finished)
    print(
        f"{uri}: {changed} of {len(finished)} finished runs brought up to date"
        + (f"; {unfinished} not finished yet" if unfinished else "")
    )
    return 0


def sync(uri: str, folders: list[Any]) -> int:
    """Bring run folders into a store; return how many were not up to date."""
    from lietransformer.tracking.ingest import Ingestion

    changed, broken = 0, []
    with _store(uri) as client:
        for folder in folders:
            try:
                changed += Ingestion(client, folder).update()
            except UserError as error:  # affects this folder only
                broken.append(str(error))
    if broken:
        raise UserError(f"{changed} runs were brought up to date, but not all: {' '.join(broken)}")
    return changed


@contextmanager
def _store(uri: str) -> Iterator[Any]:
    """A client of the store, whose failures become messages to the user."""
    from lietransformer.tracking.store import open_store, reason

    try:
        with open_store(uri) as client:
            yield client
    except UserError:
        raise
    except Exception as error:  # MLflow, SQLAlchemy and HTTP have no common ancestor
        raise UserError(
            f"cannot use the MLflow store {uri}: {reason(error)}. Check the address and that the "
            "server is running, then sync again: nothing is lost."
        ) from error


@contextmanager
def tracked(given: str | None, run: Any) -> Iterator[None]:
    """Track a run inside the block: live on a server, at its end in a file.

    Tracking is only a view: the run continues whatever happens to it.
    """
    if given == NO_TRACKING:
        yield
        return
    uri = tracking_uri(given)
    if is_server(uri):
        from lietransformer.tracking.live import LiveTracking

        with LiveTracking(uri, run.folder, has_begun=lambda: run.has_begun).following():
            yield
    else:
        yield
        try:
            sync(uri, [run.folder])
        except UserError as error:
            log.warning("the run is complete but not in MLflow: %s", error)
