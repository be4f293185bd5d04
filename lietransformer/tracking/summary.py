"""The outcome of a sweep in MLflow: its tables, figures, verdicts and report, as one run."""

import hashlib
import time
from collections import Counter
from pathlib import Path
from typing import get_args

from mlflow import MlflowClient
from mlflow.entities import Metric, Run

from lietransformer.errors import UserError
from lietransformer.files import PART_SUFFIX, read_json
from lietransformer.report.claims.verdict import Verdict
from lietransformer.report.provenance import commits
from lietransformer.report.runs import Status, Sweep, read_sweep
from lietransformer.tracking.store import SUMMARY

DIGEST_TAG = "lietransformer.digest"

_VERDICTS = {verdict: f"claims/{verdict.replace(' ', '_')}" for verdict in get_args(Verdict)}
# What a summary shows, none of it optional.
_PATTERNS = ("report.html", "claims.md", "claims.json", "tables/*.*", "figures/*.*")


def add_summary(client: MlflowClient, results: Path) -> bool:
    """Log the outcome of a results folder to MLflow; return whether it was new.

    A changed outcome makes a new run, so that the history is kept.
    """
    sweep = read_sweep(results)
    metrics = _metrics(sweep)
    files = _files(results)
    digest = _digest(results, files)
    tier = sweep.tier or "unknown"
    last = _last(client, tier)
    if last is not None and last.data.tags[DIGEST_TAG] == digest:
        return False
    run = client.create_run(
        _experiment_id(client),
        run_name=f"tier {tier}",
        tags={
            "tier": tier,
            "commit": commits(sweep.runs),
            "files": ", ".join(file.relative_to(results).as_posix() for file in files),
            DIGEST_TAG: digest,
        },
    )
    run_id = run.info.run_id
    client.log_batch(run_id, metrics=metrics)
    for file in files:
        folder = file.parent.relative_to(results).as_posix()
        client.log_artifact(run_id, str(file), None if folder == "." else folder)
    # Last, so that a summary killed before looks unfinished and is replaced next time.
    client.set_terminated(run_id, "FINISHED")
    return True


def _last(client: MlflowClient, tier: str) -> Run | None:
    """The newest finished summary of a tier; unfinished ones are deleted."""
    finished = []
    for run in client.search_runs(
        [_experiment_id(client)],
        f"tags.tier = '{tier}'",
        order_by=["attributes.start_time DESC"],
    ):
        if run.info.status == "FINISHED":
            finished.append(run)
        else:
            client.delete_run(run.info.run_id)
    return finished[0] if finished else None


def _experiment_id(client: MlflowClient) -> str:
    experiment = client.get_experiment_by_name(SUMMARY)
    assert experiment is not None  # made when the store was opened
    return str(experiment.experiment_id)


def _files(results: Path) -> list[Path]:
    """The files of the outcome; an error if some are missing."""
    found: list[Path] = []
    for pattern in _PATTERNS:
        own = sorted(file for file in results.glob(pattern) if file.suffix != PART_SUFFIX)
        if not own:
            raise UserError(
                f"{results} has no {pattern}, so its sweep cannot be summarised. Make it with "
                "`lietransformer tables`, `figures`, `claims` and `report`."
            )
        found += own
    return found


def _digest(results: Path, files: list[Path]) -> str:
    """A hash of the names and contents of files."""
    content = hashlib.sha256()
    for file in files:
        name = file.relative_to(results).as_posix()
        content.update(f"{name} {hashlib.sha256(file.read_bytes()).hexdigest()}\n".encode())
    return content.hexdigest()


def _metrics(sweep: Sweep) -> list[Metric]:
    """The number of claims with each verdict and of runs with each status."""
    claims = (read_json(sweep.results / "claims.json") or {}).get("claims", [])
    verdicts = Counter(claim["verdict"] for claim in claims)
    statuses = Counter(sweep.runs["status"])
    values = {name: verdicts[verdict] for verdict, name in _VERDICTS.items()}
    values |= {f"runs/{status}": statuses[status] for status in get_args(Status)}
    now = round(time.time() * 1000)
    return [Metric(name, float(value), now, 0) for name, value in values.items()]
