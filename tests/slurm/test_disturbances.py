"""Whatever happens to jobs, scheduler or driver: the same numbers, and no run trained twice."""

import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import psutil
import yaml

from tests.slurm.cluster import restart_controller
from tests.slurm.project import IMPATIENT, ROOT, SPRINGS, Driver, Project
from tests.slurm.waiting import wait_until
from tests.training.runs import numbers

SEEDS = range(SPRINGS["springs"]["data_efficiency"]["seeds"])
ONE_PACK = {"springs": {"data_efficiency": {"seeds": 2}}}


def test_jobs_cancelled_killed_and_requeued_while_the_scheduler_restarts(
    project: Project, undisturbed: Project
) -> None:
    """Each pack is struck while it trains its second seed; the first one is done by then."""
    with project.driver("--until", "train", *IMPATIENT) as driver:
        for seeds, strike in (
            ("0-1", lambda job, _: _command("scancel", job)),
            ("2-3", lambda _, process: process.kill()),
            ("4-5", lambda job, _: _command("scontrol", "requeue", job)),
        ):
            process = _held_in_the_middle(project, driver, seeds)
            strike(str(project.jobs_of(seeds)[-1].number), process)
        restart_controller()
        project.finish(driver)

    cancelled, killed, requeued = (project.jobs_of(seeds) for seeds in ("0-1", "2-3", "4-5"))
    assert [job.state for job in cancelled] == ["CANCELLED", "COMPLETED"]
    assert [job.state for job in killed] == ["FAILED", "COMPLETED"]
    assert [job.state for job in requeued] == ["COMPLETED"]
    assert requeued[0].request["Restarts"] == "1"
    for first in (0, 2, 4):
        assert project.sessions(first) == 1, "done before its job was struck, so left alone"
        assert project.sessions(first + 1) == 2, "went on where it was struck"
    _assert_same_numbers(project, undisturbed)


def test_a_job_over_its_time_limit_goes_on_in_the_next_one(
    project: Project, undisturbed: Project
) -> None:
    """The signal of the profile comes before the limit; training saves its state and ends.

    Slurm may signal a minute early, so that of two minutes one is certain. A machine that is so
    busy that training has not begun by then needs one job more.
    """
    limit = _seconds_before_the_limit() // 60 + 2
    project.configure({**ONE_PACK, "compute": {"limits": {"springs": {"runtime": limit}}}})
    with project.driver("--until", "train", *IMPATIENT) as driver:
        process = _held_in_the_middle(project, driver, "0-1")
        # Without the signal it would stay so until the limit, and then end without a word.
        project.wait_until(driver, lambda: _has_been_signalled(process), "the signal")
        with suppress(psutil.NoSuchProcess):
            process.resume()
        project.wait_until(driver, lambda: "stopped by SIGTERM" in _log(project), "the saved state")
        project.finish(driver)

    *signalled, last = project.jobs_of("0-1")
    assert {job.state for job in signalled} == {"FAILED"}
    assert last.state == "COMPLETED"
    for attempt, job in enumerate((*signalled, last), start=1):
        assert job.request["TimeLimit"] == f"00:{attempt * limit:02}:00", "more at each attempt"
    assert project.sessions(1) >= 2
    _assert_same_numbers(project, undisturbed, seeds=range(2))


def test_a_job_that_slurm_ends_at_its_limit_goes_on_in_the_next_one(
    project: Project, undisturbed: Project
) -> None:
    """No signal before: what was saved a moment ago is all there is."""
    project.configure(ONE_PACK)
    unwarned = ("--set-resources", "train:runtime=1", "train:slurm_extra=--nice=1")
    with project.driver("--until", "train", *IMPATIENT, *unwarned) as driver:
        _held_in_the_middle(project, driver, "0-1")
        project.finish(driver)

    first, *_, last = project.jobs_of("0-1")
    assert (first.state, last.state) == ("TIMEOUT", "COMPLETED")
    assert project.sessions(0) == 1
    assert project.sessions(1) >= 2
    _assert_same_numbers(project, undisturbed, seeds=range(2))


def test_a_killed_driver_leaves_its_jobs_to_the_next_one(
    project: Project, undisturbed: Project
) -> None:
    """Slurm's job goes on without snakemake; the new one's waits for it, and trains nothing."""
    project.configure(ONE_PACK)
    command = ("--until", "train", *IMPATIENT)
    with project.driver(*command) as driver:
        training = _held_in_the_middle(project, driver, "0-1")
        driver.kill()
        driver.wait()
        with project.driver(*command) as hasty:
            assert hasty.wait() != 0
        assert "--unlock" in project.said()
        assert project.snakemake("--unlock", "--cores", "1").returncode == 0
        with project.driver(*command) as next_driver:
            project.wait_until(
                next_driver, lambda: "waiting for another process" in _log(project), "the next job"
            )
            training.resume()
            project.finish(next_driver)

    assert [job.state for job in project.jobs_of("0-1")] == ["COMPLETED", "COMPLETED"]
    assert (project.sessions(0), project.sessions(1)) == (1, 1)
    _assert_same_numbers(project, undisturbed, seeds=range(2))


def test_a_submission_that_the_scheduler_refuses(project: Project) -> None:
    ended = project.snakemake(
        *("--cores", "all", "--profile", "slurm", "--until", "train", *IMPATIENT),
        *("--default-resources", "slurm_partition=moonbase"),
    )

    assert ended.returncode != 0
    assert "invalid partition specified: moonbase" in ended.stdout
    assert not project.jobs()


def _held_in_the_middle(project: Project, driver: Driver, seeds: str) -> psutil.Process:
    """The training process of a pack, suspended while it trains the last of its seeds.

    So it cannot end before it is struck. scancel and requeue wake it up before they ask it to end.
    """
    last = int(seeds[-1])
    project.wait_until(driver, lambda: project.is_in_the_middle(last), f"the middle of {last}")
    process = project.training_process(seeds)
    process.suspend()
    wait_until(lambda: process.status() == psutil.STATUS_STOPPED, "the process to stand still")
    assert project.is_in_the_middle(last)
    return process


def _command(*words: str) -> None:
    subprocess.run(words, check=True)


def _log(project: Project) -> str:
    """What training says. Snakemake removes the file before it tries a job again."""
    text = ""
    for path in project.folder.glob("results/logs/runs/**/*.log"):
        with suppress(FileNotFoundError):
            text += path.read_text()
    return text


def _seconds_before_the_limit() -> int:
    profile = yaml.safe_load((ROOT / "slurm" / "config.yaml").read_text())
    return int(profile["default-resources"]["slurm_extra"].rpartition("@")[2].strip("'"))


def _has_been_signalled(process: psutil.Process) -> bool:
    """Whether SIGTERM waits for a suspended process, or has woken it up: some versions do so."""
    try:
        status = Path(f"/proc/{process.pid}/status").read_text()
    except FileNotFoundError:
        return True
    words = dict(line.split(":", 1) for line in status.splitlines())
    is_waiting = int(words["ShdPnd"], 16) >> (signal.SIGTERM - 1) & 1
    return bool(is_waiting) or "T (stopped)" not in words["State"]


def _assert_same_numbers(project: Project, undisturbed: Project, *, seeds: "range" = SEEDS) -> None:
    for seed in seeds:
        assert numbers(project.run(seed)) == numbers(undisturbed.run(seed))
