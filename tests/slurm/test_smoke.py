"""The smallest tier on the cluster, by the command that users type, and what its jobs ask for."""

from pathlib import Path
from typing import get_args

import pytest
import yaml

from lietransformer.experiments.registry import TaskName
from lietransformer.sweep.config import Compute
from lietransformer.sweep.reading import resolve
from tests.slurm.project import ROOT, Job, Project

GPU = "gres:gpu:1"
# Minutes and MB of jobs that train nothing.
_OTHER_RULES = {"dataset": (30, 2000), "measure": (60, 4000)}


@pytest.mark.usefixtures("cluster")
def test_the_smoke_tier_from_beginning_to_end(tmp_path: Path) -> None:
    project = Project(tmp_path / "project")

    with project.driver("--config", "tier=smoke") as driver:
        project.finish(driver)

    for name in ("report.html", "claims.md", "tables/table1.md", "figures/figure4.png"):
        assert (project.folder / "results" / name).exists()
    jobs = project.jobs()
    assert {job.rule for job in jobs} == {"dataset", "measure", "train"}, "others run here"
    assert {job.state for job in jobs} == {"COMPLETED"}
    assert len({job.request["Comment"] for job in jobs}) == len(jobs), "each was submitted once"
    compute = _compute(project)
    for job in jobs:
        if job.rule == "train":
            limits = compute.limits[_task(job)]
            _assert_request(job, limits.runtime, limits.memory, compute.threads, GPU)
        else:
            runtime, memory = _OTHER_RULES[job.rule]
            _assert_request(job, runtime, memory, cpus=1, gpu=None)


def test_jobs_on_a_cluster_without_gpus(project: Project) -> None:
    """One switch, and nothing is asked for that the cluster does not have."""
    project.configure({"compute": {"device": "auto", "gpus": 0}})
    project.configure({"springs": {"data_efficiency": {"seeds": 1}, "training": {"epochs": 1}}})

    with project.driver("--until", "train") as driver:
        project.wait_until(driver, lambda: project.jobs("train"), "the job")
        (job,) = project.jobs("train")

    compute = _compute(project)
    limits = compute.limits["springs"]
    _assert_request(job, limits.runtime, limits.memory, compute.threads, gpu=None)
    assert job.request["Requeue"] == "1"
    assert job.request["Partition"] == "debug", "the default one, as none was given"


def test_account_and_partition_are_all_that_a_user_edits() -> None:
    """Everything else has a value that says why."""
    text = (ROOT / "slurm" / "config.yaml").read_text()
    profile = yaml.safe_load(text)

    to_edit = [line.split(":")[0].strip() for line in text.splitlines() if "# <--" in line]
    assert to_edit == ["slurm_account", "slurm_partition"]
    assert [profile["default-resources"][name] for name in to_edit] == ["", ""]
    own = yaml.safe_load((ROOT / "profiles" / "default" / "config.yaml").read_text())
    replaced = {key for key in own.keys() & profile.keys() if own[key] != profile[key]}
    assert not replaced, "what every machine's profile says wins over the cluster's"


def _compute(project: Project) -> Compute:
    """How the smoke tier is computed."""
    return resolve({"tier": "smoke"}, project.folder / "workflow" / "tiers").compute


def _task(job: Job) -> TaskName:
    wildcards = job.request["Comment"].removeprefix("rule_train_wildcards_")
    return next(task for task in get_args(TaskName) if wildcards.startswith(f"{task}_"))


def _assert_request(job: Job, runtime: int, memory: int, cpus: int, gpu: str | None) -> None:
    request = job.request
    assert request["TimeLimit"] == f"{runtime // 60:02}:{runtime % 60:02}:00"
    assert request["MinMemoryNode"] == f"{memory}M"
    assert request["CPUs/Task"] == str(cpus)
    assert request.get("TresPerJob") == gpu
