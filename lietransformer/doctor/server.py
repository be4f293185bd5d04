"""An MLflow store that is a server."""

import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from importlib.metadata import version
from typing import get_args

from mlflow import MlflowClient

from lietransformer.doctor.findings import Finding
from lietransformer.experiments.registry import TaskName
from lietransformer.tracking.folders import HASH_TAG, SYNCED_TAG
from lietransformer.tracking.store import reason

_PATIENCE = 5.0  # seconds
_RUNS_AT_ONCE = 1000


class Server:
    """A server, asked once.

    Attributes:
        findings: what is to be said of it.
        runs: for the hash of each run on it, the digest of the folder that it has; None if the
            server does not answer.
    """

    def __init__(self, uri: str) -> None:
        self.runs: dict[str, str | None] | None = None
        self.findings = list(self._ask(uri))

    def _ask(self, uri: str) -> Iterator[Finding]:
        try:
            with urllib.request.urlopen(f"{uri.rstrip('/')}/health", timeout=_PATIENCE) as answer:
                answer.read()
            self.runs = dict(_runs(MlflowClient(tracking_uri=uri)))
        except Exception as error:  # MLflow and HTTP have no common ancestor
            yield Finding(
                "problem",
                f"no MLflow server answers at {uri} ({reason(error)})",
                "start it, or check the address; runs do not need it meanwhile, and "
                "`lietransformer sync` brings it up to date",
            )
            return
        yield Finding("ok", f"{uri} answers and has {len(self.runs):,} runs")
        with suppress(OSError):
            url = f"{uri.rstrip('/')}/version"
            with urllib.request.urlopen(url, timeout=_PATIENCE) as answer:
                theirs, ours = answer.read(100).decode(errors="replace"), version("mlflow")
            if theirs != ours:
                yield Finding("note", f"the server has MLflow {theirs}, this machine {ours}")


def _runs(client: MlflowClient) -> Iterator[tuple[str, str | None]]:
    found = [client.get_experiment_by_name(task) for task in get_args(TaskName)]
    experiments = [str(each.experiment_id) for each in found if each is not None]
    token = None
    while experiments:
        page = client.search_runs(experiments, max_results=_RUNS_AT_ONCE, page_token=token)
        for run in page:
            if HASH_TAG in run.data.tags:
                yield run.data.tags[HASH_TAG], run.data.tags.get(SYNCED_TAG)
        token = page.token
        if not token:
            return
