"""The workflow in a folder of its own, with a small sweep, and its jobs on the cluster."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from lietransformer.sweep.reading import merged
from tests.slurm.waiting import wait_until

ROOT = Path(__file__).parents[2]
Driver = subprocess.Popen[str]
# As a user has them: the workflow, the profile, and nothing else.
_PARTS = ("Snakefile", "workflow", "profiles", "slurm", "envs")
# The same profile, only less patient.
IMPATIENT = (
    *("--slurm-init-seconds-before-status-checks", "2"),
    *("--max-status-checks-per-second", "1"),
)

# Runs of seconds, whose state is saved all the time, and nothing else.
SPRINGS: dict[str, Any] = {
    "tier": "smoke",
    "constellations": {"models": []},
    "springs": {
        "training": {
            "batch_size": 5,
            "epochs": 800,
            "evaluations": 40,
            "test_examples": 3,
            "validation_examples": 3,
            "compile": False,
        },
        "by_model": {"Fully-connected (direct)": {"architecture": {"width": 8, "layers": 1}}},
        "data_efficiency": {"models": ["Fully-connected (direct)"], "n_train": [10], "seeds": 6},
        "parameter_efficiency": {"models": []},
        "ablations": {"kinds": []},
        "draws": {"draws": 0},
    },
    "qm9": {"models": []},
    "compute": {"device": "cpu", "seeds_per_job": 2, "checkpoint_every": 0.1},
    "tracking": "none",
}


@dataclass(frozen=True)
class Job:
    """A job that Slurm knows, also when it has ended."""

    number: int
    rule: str
    state: str
    request: dict[str, str]


class Project:
    """A copy of the workflow; a folder that exists already is used as it is.

    Args:
        folder: where to.
        config: content of config.yaml; by default the project's.
    """

    def __init__(self, folder: Path, config: dict[str, Any] | None = None) -> None:
        self.folder = folder
        self.config = folder / "config.yaml"
        # Another worker may be copying from an existing folder: never write into it.
        if folder.exists():
            return
        folder.mkdir(parents=True)
        for name in _PARTS:
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, folder / name)
            else:
                shutil.copy(ROOT / name, folder / name)
        if config is None:
            shutil.copy(ROOT / "config.yaml", self.config)
        else:
            self.config.write_text(json.dumps(config))

    def copy_without_runs(self, folder: Path) -> "Project":
        """The same sweep, for which the dataset is there and nothing is trained."""
        copy = Project(folder, json.loads(self.config.read_text()))
        shutil.copytree(self.folder / "results" / "data", folder / "results" / "data")
        return copy

    def configure(self, changes: dict[str, Any]) -> None:
        """Change the sweep."""
        self.config.write_text(json.dumps(merged(json.loads(self.config.read_text()), changes)))

    # ---- the driver

    def snakemake(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run it to its end."""
        return subprocess.run(
            ["snakemake", *arguments],
            cwd=self.folder,
            env=_environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )

    @contextmanager
    def driver(self, *arguments: str) -> Iterator[Driver]:
        """The command for clusters, at work inside the block; afterwards nothing of it remains."""
        with (self.folder / "driver.log").open("a") as output:
            process = subprocess.Popen(
                ["snakemake", "--cores", "all", "--profile", "slurm", *arguments],
                cwd=self.folder,
                env=_environment(),
                stdout=output,
                stderr=subprocess.STDOUT,
                text=True,
                start_new_session=True,
            )
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                for job in self.jobs():
                    subprocess.run(["scancel", str(job.number)], check=False, capture_output=True)

    def wait_until(self, driver: Driver, look: Callable[[], Any], what: str) -> None:
        """Look until there is something to see, while the driver is at work."""
        wait_until(lambda: look() or driver.poll() is not None, what)
        assert driver.poll() is None, self.said()

    def finish(self, driver: Driver) -> None:
        """Wait for the driver, which has to succeed."""
        wait_until(lambda: driver.poll() is not None, "snakemake to end")
        assert driver.returncode == 0, self.said()

    def said(self) -> str:
        """What the drivers have printed."""
        return (self.folder / "driver.log").read_text()

    # ---- its jobs

    def jobs(self, rule: str = "") -> list[Job]:
        """All jobs that were ever submitted from the folder, the oldest first."""
        shown = subprocess.run(
            ["scontrol", "show", "job", "--oneliner"], capture_output=True, text=True, check=False
        )
        jobs = []
        for line in shown.stdout.splitlines():
            request = dict(part.partition("=")[::2] for part in line.split() if "=" in part)
            if request.get("WorkDir") == str(self.folder):
                name = request["Comment"].removeprefix("rule_").partition("_wildcards_")[0]
                number, state = int(request["JobId"]), request["JobState"]
                jobs.append(Job(number=number, rule=name, state=state, request=request))
        return sorted((job for job in jobs if rule in ("", job.rule)), key=lambda job: job.number)

    def jobs_of(self, seeds: str) -> list[Job]:
        """The jobs that train some seeds."""
        return [job for job in self.jobs("train") if job.request["Comment"].endswith(f"_{seeds}")]

    # ---- its runs

    def run(self, seed: int) -> Path:
        """The folder of a run, if it is there."""
        found = list(self.folder.glob(f"results/runs/springs/*/*/seed-{seed}"))
        return found[0] if found else self.folder / "not there"

    def is_in_the_middle(self, seed: int) -> bool:
        """Whether a run has been evaluated and saved, and is not done."""
        run = self.run(seed)
        with suppress(FileNotFoundError):
            evaluated = (run / "metrics.jsonl").read_text().count("\n")
            saved = list((run.parent / ".resume" / run.name).glob("*"))
            return evaluated > 1 and len(saved) > 1 and not (run / "result.json").exists()
        return False

    def sessions(self, seed: int) -> int:
        """How many processes it took to train a run."""
        return int(json.loads((self.run(seed) / "result.json").read_text())["sessions"])

    def training_process(self, seeds: str) -> psutil.Process:
        """The process that trains some seeds, the oldest if there are more."""
        found = []
        for process in psutil.process_iter(["cmdline", "create_time"]):
            with suppress(psutil.Error):
                command = process.info["cmdline"] or []
                is_it = any(word.endswith(f"/seeds-{seeds}.json") for word in command)
                if is_it and "train" in command and process.cwd() == str(self.folder):
                    found.append(process)
        return min(found, key=lambda process: process.info["create_time"])


def _environment() -> dict[str, str]:
    """With the programs beside this Python, and nothing of an outer workflow or test."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM_", "PYTEST_"))}
    return {**kept, "PATH": path}
