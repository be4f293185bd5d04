"""A real Slurm on this machine: munge, slurmctld and slurmd, one node, two pretend GPUs.

The cluster belongs to the machine, not to a process: test processes that run at the same time
share it. The first one starts it, the last one stops it.
"""

import fcntl
import os
import pwd
import shutil
import signal
import socket
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.slurm.waiting import is_alive, wait_until

PROGRAMS = ("munged", "munge", "slurmctld", "slurmd", "sbatch", "srun", "squeue", "scontrol")
# Job steps do not inherit SLURM_CONF, so the files have to be where Slurm looks by itself.
CONFIGURATION = Path("/etc/slurm")
STATE = Path("/run/lietransformer-slurm")
MUNGE_FOLDER = Path("/run/munge")
GPUS = [STATE / f"gpu{index}" for index in range(2)]
CLUSTER = "lietransformer-tests"
PARTITION = "debug"
# More than the machine has: jobs are to queue for the tests' reasons only.
NODE = "CPUs=16 RealMemory=1000000"
_KEPT = ".kept-by-lietransformer-tests"


class NoCluster(Exception):
    """What stands in the way of a cluster on this machine."""


@contextmanager
def shared_cluster() -> Iterator[None]:
    """A cluster inside the block, started unless another process has done so."""
    _require_usable_machine()
    STATE.mkdir(exist_ok=True)
    with _alone():
        if not _users():
            _start()
        _user_file(os.getpid()).touch()
    try:
        yield
    finally:
        with _alone():
            _user_file(os.getpid()).unlink(missing_ok=True)
            if not _users():
                _stop()


def restart_controller() -> None:
    """Stop slurmctld, and start it again with the state it has saved."""
    _end_daemon("slurmctld")
    _run("slurmctld")
    wait_until(_answers, "slurmctld to answer")


def _require_usable_machine() -> None:
    if missing := [program for program in PROGRAMS if not _program(program)]:
        raise NoCluster(f"no {', '.join(missing)}: apt-get install slurm-wlm munge")
    if os.geteuid() != 0:
        raise NoCluster("slurmd and munged can be started by root only")
    if _answers() and CLUSTER not in (_ask("scontrol", "show", "config") or ""):
        raise NoCluster("this machine belongs to a Slurm cluster that is not ours")


def _program(name: str) -> str | None:
    return shutil.which(name, path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin")


def _run(*command: str) -> None:
    program = _program(command[0])
    assert program is not None
    ended = subprocess.run([program, *command[1:]], capture_output=True, text=True, check=False)
    if ended.returncode:
        raise NoCluster(f"{' '.join(command)}: {ended.stdout}{ended.stderr}")


@contextmanager
def _alone() -> Iterator[None]:
    with (STATE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _user_file(process: int) -> Path:
    return STATE / f"user-{process}"


def _users() -> list[int]:
    """The processes that use the cluster; one that has died no longer does."""
    users = [int(path.name.removeprefix("user-")) for path in STATE.glob("user-*")]
    for dead in (user for user in users if not is_alive(user)):
        _user_file(dead).unlink(missing_ok=True)
    return [user for user in users if is_alive(user)]


def _start() -> None:
    _stop()  # what an earlier test process left behind when it was killed
    _start_munge()
    for device in GPUS:
        if not device.exists():
            os.mknod(device, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    for folder in ("controller", "node"):
        (STATE / folder).mkdir()
    CONFIGURATION.mkdir(exist_ok=True)
    for name, text in (("slurm.conf", _slurm_conf()), ("gres.conf", _gres_conf())):
        path = CONFIGURATION / name
        if path.exists():
            path.rename(path.with_name(name + _KEPT))
        path.write_text(text)
    _run("slurmctld", "-c")
    _run("slurmd", "-N", socket.gethostname())
    wait_until(lambda: _node_state() == "idle", "the node to be idle")


def _stop() -> None:
    if (STATE / "slurmctld.pid").exists() and _answers():
        _run("scancel", "--signal=KILL", f"--partition={PARTITION}")
        _run("scancel", f"--partition={PARTITION}")
        wait_until(_no_job, "the cancelled jobs to end")
    for daemon in ("slurmd", "slurmctld"):
        _end_daemon(daemon)
    _end_daemon("munged")
    for name in ("slurm.conf", "gres.conf"):
        path = CONFIGURATION / name
        kept = path.with_name(name + _KEPT)
        if kept.exists():
            kept.rename(path)
        elif path.exists() and str(STATE) in path.read_text():
            path.unlink()
    for folder in ("controller", "node"):
        shutil.rmtree(STATE / folder, ignore_errors=True)
    for device in GPUS:
        device.unlink(missing_ok=True)


def _start_munge() -> None:
    """Munge signs what Slurm's programs say to each other; it runs as its own user."""
    if subprocess.run(["munge", "-n"], capture_output=True, check=False).returncode == 0:
        return
    owner = pwd.getpwnam("munge")
    MUNGE_FOLDER.mkdir(exist_ok=True)
    os.chown(MUNGE_FOLDER, owner.pw_uid, owner.pw_gid)
    MUNGE_FOLDER.chmod(0o755)
    munged = _program("munged")
    assert munged is not None
    subprocess.run([munged, "--force"], check=True, user="munge", group="munge", extra_groups=[])
    shutil.copy(MUNGE_FOLDER / "munged.pid", STATE / "munged.pid")


def _end_daemon(name: str) -> None:
    file = STATE / f"{name}.pid"
    with suppress(FileNotFoundError, ProcessLookupError, ValueError):
        process = int(file.read_text())
        if name in Path(f"/proc/{process}/comm").read_text():
            os.kill(process, signal.SIGTERM)
            wait_until(lambda: not is_alive(process), f"{name} to end")
    file.unlink(missing_ok=True)


def _ask(*command: str) -> str | None:
    """What a Slurm command prints; None if it fails."""
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    return None if ended.returncode else ended.stdout.strip()


def _answers() -> bool:
    return "is UP" in (_ask("scontrol", "ping") or "")


def _node_state() -> str | None:
    return _ask("sinfo", "--noheader", "--format=%T")


def _no_job() -> bool:
    return _ask("squeue", "--noheader") == ""


def _slurm_conf() -> str:
    host = socket.gethostname()
    return f"""\
# Written by the tests of lietransformer, and removed by them.
ClusterName={CLUSTER}
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
StateSaveLocation={STATE}/controller
SlurmdSpoolDir={STATE}/node
SlurmctldPidFile={STATE}/slurmctld.pid
SlurmdPidFile={STATE}/slurmd.pid
SlurmctldLogFile={STATE}/slurmctld.log
SlurmdLogFile={STATE}/slurmd.log
# Without systemd and control groups, as in a container.
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
# What a usual cluster has.
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
GresTypes=gpu
ReturnToService=2
SlurmdParameters=config_overrides
# A requeued job starts again when its credential has expired: not after two minutes, but now.
AuthInfo=cred_expire=5
# Tests look at what jobs had asked for after they have ended.
MinJobAge=3600
NodeName={host} NodeAddr=127.0.0.1 {NODE} Gres=gpu:{len(GPUS)} State=UNKNOWN
PartitionName={PARTITION} Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


def _gres_conf() -> str:
    devices = "\n".join(f"Name=gpu File={device}" for device in GPUS)
    return f"# Written by the tests of lietransformer ({STATE}), and removed by them.\n{devices}\n"
