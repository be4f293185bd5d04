"""Verification: generate the data and train published runs again, and compare. No torch here.

A run is trained to its end where time allows, otherwise as far as its share of the budget goes;
then the curves are compared up to the last evaluation that both have.
"""

import json
import math
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from lietransformer.archive.comparison import RunCheck, compare, epochs_of
from lietransformer.data.reader import DatasetFile
from lietransformer.errors import UserError
from lietransformer.layout import Archive, run_name
from lietransformer.processes import end_with

SCHEMA_VERSION = 1
DAMAGED = "damaged:"  # the beginning of a verdict
_MOST_SPREADS = 100  # shown
SHARE = 3  # a run that cannot end in time gets one third of the budget
_SHORTEST = 60.0  # seconds that starting one more run is worth
_SAVING = 120.0  # seconds that a run may take to save itself
_SAVED = 75  # exit code of a run that was stopped and has saved itself
_LIETRANSFORMER = (sys.executable, "-m", "lietransformer")


@dataclass(frozen=True)
class DataCheck:
    """A dataset generated here beside the one that published runs were trained on."""

    name: str
    expected: str
    found: str | None
    verdict: str  # identical, differs, not generated, or damaged: REASON


def choose(archive: Archive, names: Sequence[str], seed: int) -> list[str]:
    """Folders of runs in the order they are trained.

    Args:
        archive: of published runs.
        names: of runs, or of configurations for all their seeds; none: all, in an order drawn by
            the seed in which the models take turns.
        seed: of the order.
    """
    runs = archive.runs
    if not runs:
        raise UserError(f"There are no published runs in {archive.path}, so nothing to verify.")
    by_name = {f"{run_name(run)}/seed-{run['seed']}": folder for folder, run in runs.items()}
    if names:
        chosen: list[str] = []
        for name in names:
            wanted = name.strip("/")
            found = [f for known, f in by_name.items() if f"{known}/".startswith(f"{wanted}/")]
            found += [f for f in runs if f"{archive.path / f}" == wanted or f == wanted]
            if not found:
                raise UserError(f"{name} is not published. Published: {', '.join(by_name)}.")
            chosen += found
        return list(dict.fromkeys(chosen))
    order = sorted(runs)
    random.Random(seed).shuffle(order)
    turns: Counter[tuple[str, str]] = Counter()
    ranked = []
    for folder in order:
        model = (runs[folder]["task"], runs[folder]["model"])
        ranked.append((turns[model], folder))
        turns[model] += 1
    return [folder for _, folder in sorted(ranked, key=lambda pair: pair[0])]


class Trainer:
    """Trains published runs again, several at a time, within a budget.

    Args:
        archive: of published runs.
        results: folder with data/; the runs go to its folder verification/.
        budget: seconds that each core trains; None: until all runs are done.
        cores: runs at a time.
    """

    def __init__(self, archive: Archive, results: Path, budget: float | None, cores: int) -> None:
        self.archive = archive
        self.results = results
        self.budget = budget
        self.cores = cores
        self._lock = threading.Lock()
        self._waiting: list[str] = []
        self._checks: list[RunCheck] = []
        self._children: set[subprocess.Popen[bytes]] = set()
        self._stopped = False

    def train(self, folders: Iterable[str]) -> list[RunCheck]:
        """Train the runs and compare each."""
        self._waiting = list(folders)
        with ThreadPoolExecutor(self.cores) as pool:
            workers = [pool.submit(self._work) for _ in range(self.cores)]
            try:
                for worker in workers:
                    worker.result()
            except BaseException:
                self._stop()
                raise
        return self._checks

    def _stop(self) -> None:
        """End all children: the user has pressed Ctrl-C, or something has failed."""
        with self._lock:
            self._stopped = True
            self._waiting = []
            for child in self._children:
                child.terminate()

    def _work(self) -> None:
        end = math.inf if self.budget is None else time.monotonic() + self.budget
        shortest = 0.0
        while True:
            with self._lock:
                if not self._waiting or end - time.monotonic() < shortest:
                    return
                folder = self._waiting.pop(0)
            check = self._train_one(folder, end - time.monotonic())
            shortest = _SHORTEST
            with self._lock:
                if self._stopped:
                    return
                self._checks.append(check)

    def _train_one(self, folder: str, left: float) -> RunCheck:
        run, target = self.archive.runs[folder], self.results / "verification" / folder
        stored = json.loads((self.archive.path / folder / "config.json").read_text("utf-8"))
        settings = {**stored["config"], "data": str(self._data(run["dataset"]))}
        target.mkdir(parents=True, exist_ok=True)
        config = target.parent / f"{target.name}.settings.json"  # JSON is YAML
        config.write_text(json.dumps(settings), encoding="utf-8")
        command = [*_LIETRANSFORMER, "train", "--config", str(config), "--out", str(target)]
        command += ["--tracking", "none", "--force"]
        log = target.parent / f"{target.name}.log"
        started = time.monotonic()
        with open(log, "wb") as output:
            child = subprocess.Popen(
                command,
                stdout=output,
                stderr=subprocess.STDOUT,
                preexec_fn=partial(end_with, os.getpid()),  # noqa: PLW1509 (a system call alone)
            )
            with self._lock:
                self._children.add(child)
                if self._stopped:
                    child.terminate()
            try:
                self._wait(child, target, self._epochs(folder), left)
            finally:
                with self._lock:
                    self._children.discard(child)
        seconds = time.monotonic() - started
        if child.returncode not in (0, _SAVED):
            text = log.read_text("utf-8", errors="replace").strip()
            reason = f"training failed: {text.splitlines()[-1] if text else child.returncode}"
            return compare(self.archive, folder, target, seconds, failure=reason)
        return compare(self.archive, folder, target, seconds)

    def _wait(
        self, child: "subprocess.Popen[bytes]", target: Path, epochs: float, left: float
    ) -> None:
        """Until the run has ended; stop it when its share is over and it cannot end in time."""
        started = time.monotonic()
        share = left if self.budget is None else min(left, self.budget / SHARE)
        while child.poll() is None:
            spent = time.monotonic() - started
            if spent > share:
                done = epochs_of(target) / epochs
                if spent >= left or spent > done * left:  # at this pace it would end too late
                    child.send_signal(signal.SIGTERM)
                    try:
                        child.wait(_SAVING)
                    except subprocess.TimeoutExpired:
                        child.kill()
            try:
                child.wait(0.5)
            except subprocess.TimeoutExpired:
                continue

    def _epochs(self, folder: str) -> float:
        """Of the published run, which may have stopped early."""
        result = json.loads((self.archive.path / folder / "result.json").read_text("utf-8"))
        return float(result["epochs"])

    def _data(self, name: str) -> Path:
        return self.results / "data" / f"{name}.h5"


def check_datasets(archive: Archive, results: Path, needed: Iterable[str]) -> list[DataCheck]:
    """Generate the datasets that are needed and not there; compare all that are there.

    Args:
        archive: with the content hashes of the data that runs were trained on.
        results: with the folder data/.
        needed: names of datasets to generate where they are missing.
    """
    checks = []
    needed = set(needed)
    for name, known in archive.manifest["datasets"].items():
        path, expected = results / "data" / f"{name}.h5", known["content_hash"]
        if not path.exists() and name in needed:
            _generate(known, path)
        if not path.exists():
            checks.append(DataCheck(name, expected, None, "not generated"))
            continue
        try:
            found = DatasetFile(path, kind=known["kind"]).content_hash
        except UserError as error:
            checks.append(DataCheck(name, expected, None, f"{DAMAGED} {error}"))
            continue
        verdict = "identical" if found == expected else "differs"
        checks.append(DataCheck(name, expected, found, verdict))
    return checks


def _generate(dataset: dict[str, Any], path: Path) -> None:
    settings = [f"{name}={json.dumps(value)}" for name, value in dataset["settings"].items()]
    options = [word for setting in settings for word in ("--set", setting)]
    command = [*_LIETRANSFORMER, "data", dataset["kind"], *options, "--out", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise UserError(f"{path} could not be generated: {done.stderr.strip()}")


def outcome(
    datasets: Sequence[DataCheck],
    runs: Sequence[RunCheck],
    *,
    budget: float | None,
    seed: int,
    commit: str | None,
    machine: dict[str, Any],
    manifest: str | None,
) -> dict[str, Any]:
    """What is kept of a verification."""
    return {
        "schema_version": SCHEMA_VERSION,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "git_commit": commit,
        "machine": machine,
        "manifest_sha256": manifest,  # of the archive that was verified
        "budget_seconds": budget,
        "seed": seed,
        "datasets": [asdict(check) for check in datasets],
        "runs": [asdict(check) for check in runs],
    }


def has_failed(content: dict[str, Any]) -> bool:
    """Whether data or runs did not come back."""
    verdicts = [check["verdict"] for check in (*content["datasets"], *content["runs"])]
    return any(verdict == "differs" or str(verdict).startswith(DAMAGED) for verdict in verdicts)


def has_compared(content: dict[str, Any]) -> bool:
    """Whether any run was trained far enough to be compared."""
    return any(check["verdict"] != "not compared" for check in content["runs"])


def _spreads(far: float) -> str:
    return f"{far:+.2f} spreads" if abs(far) <= _MOST_SPREADS else f"> {_MOST_SPREADS} spreads"


def text(content: dict[str, Any]) -> Iterator[str]:
    """The outcome for the terminal, line by line."""
    for data in content["datasets"]:
        yield f"{data['verdict']:13} {data['name']}"
    for check in sorted(content["runs"], key=lambda own: own["verdict"] != "differs"):
        extent = (
            "whole run"
            if check["is_complete"]
            else f"{check['trained_epochs']:,.0f} of {check['epochs']:,.0f} epochs"
        )
        numbers = " ".join(
            f"{name} {'–' if value is None else f'{value:.4g}'}"
            for name, value in (("published", check["published"]), ("here", check["here"]))
        )
        far = check["difference_in_spreads"]
        is_shown = far is not None and check["verdict"] != "identical"
        distance = f" ({_spreads(far)} over {check['spread_of']})" if is_shown else ""
        why = f": {check['reason']}" if check["reason"] else ""
        yield (
            f"{check['verdict']:13} {check['run']}, {extent}, {check['metric']}: {numbers}"
            f"{distance}{why}"
        )
    verdicts = Counter(check["verdict"] for check in content["runs"])
    counts = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items())
    yield f"Trained again: {counts or 'no run'}."
    if not has_compared(content):
        yield "WARNING: nothing was verified: no run was trained far enough to be compared."
