"""The outcome of a sweep in MLflow: its tables, figures, verdicts and report, as one run."""

import hashlib
import time
from collections import Counter
from pathlib import Path
from typing import get_args

from mlflow import MlflowClient
from mlflow.entities import Metric, Run

from lietransformer.errors import UserError, explain
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
    """Bring what a results folder amounts to into MLflow; whether there was anything to do.

    What has changed since the last time makes a new run, so that the history is kept.
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
    # Last: what was killed before this does not look finished, and is replaced the next time.
    client.set_terminated(run_id, "FINISHED")
    return True


def _last(client: MlflowClient, tier: str) -> Run | None:
    """The newest finished summary of a tier. What was left half-done is removed."""
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
    """What there is to show, complete."""
    found: list[Path] = []
    for pattern in _PATTERNS:
        own = sorted(file for file in results.glob(pattern) if file.suffix != PART_SUFFIX)
        if not own:
            raise UserError(
                explain(
                    expected=f"the outcome of a sweep in {results}",
                    found=f"no {pattern}",
                    remedy="make it with `lietransformer tables`, `figures`, `claims` and `report`",
                )
            )
        found += own
    return found


def _digest(results: Path, files: list[Path]) -> str:
    """Of names and content."""
    content = hashlib.sha256()
    for file in files:
        name = file.relative_to(results).as_posix()
        content.update(f"{name} {hashlib.sha256(file.read_bytes()).hexdigest()}\n".encode())
    return content.hexdigest()


def _metrics(sweep: Sweep) -> list[Metric]:
    """How many claims have each verdict, and what became of the runs."""
    claims = (read_json(sweep.results / "claims.json") or {}).get("claims", [])
    verdicts = Counter(claim["verdict"] for claim in claims)
    statuses = Counter(sweep.runs["status"])
    values = {name: verdicts[verdict] for verdict, name in _VERDICTS.items()}
    values |= {f"runs/{status}": statuses[status] for status in get_args(Status)}
    now = round(time.time() * 1000)
    return [Metric(name, float(value), now, 0) for name, value in values.items()]
