"""From speeds to a forecast: every job of a sweep, its time, memory and disk."""

import heapq
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from lietransformer.experiments.symmetry.config import InvarianceConfig
from lietransformer.forecast.datasets import (
    DatasetSpeed,
    examples,
    expected_bytes,
    generator_settings,
)
from lietransformer.forecast.speed import Speed, Subject
from lietransformer.forecast.workload import Workload, workload
from lietransformer.settings import validated
from lietransformer.sweep.jobs import Configuration, Pack
from lietransformer.sweep.plan import Plan
from lietransformer.training.config import RunConfig

# A line of system.jsonl every ten seconds, a line of metrics.jsonl for each evaluation.
_BYTES_PER_SECOND, _BYTES_PER_EVALUATION = 25, 350
# Weights that a run keeps in memory beside those it trains: the best, the last good, the final.
_COPIES_OF_WEIGHTS = 3
_BYTES_PER_NUMBER = {"float64": 8}


@dataclass(frozen=True)
class Job:
    """One job of the workflow.

    Attributes:
        name: the file that it makes, within the results.
        part: of the sweep; a job that several parts need is counted with the first.
        trains: model and task; empty for what is no training.
        seeds: of its runs.
        run_seconds: of each of its runs: training, evaluation, test.
        seconds: of the whole job; None where nothing is known.
        may_stop_early: whether that is the most it can take.
        memory_gb: the most that it needs.
        disk_bytes: of what it leaves.
        is_done: whether its file is there.
    """

    name: str
    part: str
    trains: str
    seeds: tuple[int, ...]
    run_seconds: dict[str, float]
    seconds: float | None
    may_stop_early: bool
    memory_gb: float | None
    disk_bytes: float | None
    is_done: bool


def subject_of(
    plan: Plan, configuration: Configuration, device: str
) -> tuple[Subject, RunConfig, Workload]:
    """What is measured for a configuration, and what its runs do."""
    compute = plan.config.compute
    given = {"device": device, "threads": compute.threads, "seed": configuration.seeds[0]}
    run = validated(RunConfig, {**configuration.settings, **given})
    work = workload(run, generator_settings(plan.datasets[configuration.task]))
    return Subject.of(run, work), run, work


def training_jobs(
    plan: Plan,
    speeds: Mapping[Subject, Speed | None],
    datasets: Mapping[str, DatasetSpeed],
    device: str,
) -> Iterator[Job]:
    """All packs of runs."""
    sizes = {
        task: expected_bytes(generator_settings(dataset), datasets[task])
        for task, dataset in plan.datasets.items()
        if task in datasets
    }
    known = {each.folder: subject_of(plan, each, device) for each in plan.trained}
    for pack in plan.packs.values():
        subject, run, work = known[pack.configuration.folder]
        yield _training_job(plan, pack, run, work, speeds[subject], sizes.get(run.task, 0.0))


def _training_job(
    plan: Plan, pack: Pack, run: RunConfig, work: Workload, speed: Speed | None, data: float
) -> Job:
    configuration = pack.configuration
    times: dict[str, float] = {}
    seconds = memory = disk = None
    if speed is not None:
        times = {
            "training": work.steps * speed.step,
            "evaluation": work.validations * work.validated * speed.validation,
            "test": work.weights * work.tested * work.test_cost * speed.test,
        }
        count = len(pack.seeds)
        seconds = speed.preparation + count * sum(times.values())
        weights = speed.parameters * _BYTES_PER_NUMBER.get(run.precision, 4)
        # The whole file is read once, to see that it is sound, and stays mapped.
        more = max(0.0, data - speed.data_bytes) + _COPIES_OF_WEIGHTS * weights
        memory = speed.memory_gb + more / 1e9
        kept = work.weights * (weights + work.tested * work.test_cost * speed.test_bytes)
        lines = work.validations * _BYTES_PER_EVALUATION + seconds / count * _BYTES_PER_SECOND
        disk = count * (kept + lines)
    return Job(
        name=pack.summary.relative_to(plan.results).as_posix(),
        part=next(iter(configuration.parts)),
        trains=f"{configuration.settings['model']} on {configuration.task}",
        seeds=pack.seeds,
        run_seconds=times,
        seconds=seconds,
        may_stop_early=work.may_stop_early,
        memory_gb=memory,
        disk_bytes=disk,
        is_done=pack.summary.exists(),
    )


def dataset_jobs(plan: Plan, speeds: Mapping[str, DatasetSpeed]) -> list[Job]:
    """The datasets that are needed."""
    jobs = []
    for dataset in plan.needed_datasets:
        settings, speed = generator_settings(dataset), speeds.get(dataset.kind)
        seconds = size = None
        if speed is not None:
            seconds = speed.seconds * examples(settings)
            size = expected_bytes(settings, speed)
        name = dataset.path.relative_to(plan.results).as_posix()
        done = dataset.path.exists()
        jobs.append(Job(name, "datasets", "", (), {}, seconds, False, None, size, done))
    return jobs


def verification_jobs(plan: Plan) -> list[Job]:
    """Published runs that are trained again: the budget is the most that it takes."""
    if not plan.verifies:
        return []
    name, seconds = "verification.json", plan.config.verification.seconds
    done = (plan.results / name).exists()
    return [Job(name, "verification", "", (), {}, seconds, True, None, None, done)]


def invariance_jobs(plan: Plan, seconds_of_a_run: float | None) -> list[Job]:
    """The measurement of Figure 3, unless it is published."""
    if not plan.measures("invariance"):
        return []
    runs = InvarianceConfig.model_validate(plan.config.invariance).runs
    seconds = None if seconds_of_a_run is None else seconds_of_a_run * runs
    path = plan.measurements["invariance"]
    name = path.relative_to(plan.results).as_posix()
    done = path.exists()
    return [Job(name, "figure 3", "", (), {}, seconds, False, None, None, done)]


@dataclass(frozen=True)
class Row:
    """Jobs added up.

    Attributes:
        name: of what they belong to.
        jobs: how many there are.
        runs: how many trainings.
        done: how many jobs are done.
        unknown: how many jobs nothing is known of.
        seconds: of all jobs, one after the other.
        left: of those that are not done.
        longest: the longest job.
        memory_gb: the most that a job needs.
        disk_bytes: of all.
        may_stop_early: whether times are the most that jobs can take.
    """

    name: str
    jobs: int
    runs: int
    done: int
    unknown: int
    seconds: float
    left: float
    longest: float
    memory_gb: float
    disk_bytes: float
    may_stop_early: bool


def added_up(name: str, jobs: Iterable[Job]) -> Row:
    """Totals of some jobs."""
    jobs = list(jobs)
    return Row(
        name=name,
        jobs=len(jobs),
        runs=sum(len(job.seeds) for job in jobs),
        done=sum(job.is_done for job in jobs),
        unknown=sum(job.seconds is None for job in jobs),
        seconds=math.fsum(job.seconds or 0 for job in jobs),
        left=math.fsum(job.seconds or 0 for job in jobs if not job.is_done),
        longest=max((job.seconds or 0.0 for job in jobs), default=0.0),
        memory_gb=max((job.memory_gb or 0.0 for job in jobs), default=0.0),
        disk_bytes=math.fsum(job.disk_bytes or 0 for job in jobs),
        may_stop_early=any(job.may_stop_early for job in jobs),
    )


def rows(jobs: Sequence[Job], by: Literal["part", "trains"]) -> list[Row]:
    """Totals by part of the sweep or by what is trained, in the order of the sweep."""
    names = dict.fromkeys(getattr(job, by) for job in jobs)
    return [added_up(name, (job for job in jobs if getattr(job, by) == name)) for name in names]


def wall_seconds(jobs: Iterable[Job], at_once: int) -> float:
    """How long it takes if so many jobs run at a time, each starting when one has ended.

    Datasets come first; the jobs that are done take no time.
    """
    waiting = [job for job in jobs if not job.is_done and job.seconds is not None]
    total = 0.0
    for stage in (True, False):
        ends = [0.0] * at_once
        for job in waiting:
            if (job.part == "datasets") == stage:
                heapq.heapreplace(ends, ends[0] + (job.seconds or 0))
        total += max(ends)
    return total
