"""A real `mlflow server`, to be killed and started again."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

from mlflow import MlflowClient

_SECONDS_TO_WAIT = 300.0


class Server:
    """A server that has a folder and a port of its own, whenever it runs."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self.uri = f"http://127.0.0.1:{free_port()}"

    @property
    def client(self) -> MlflowClient:
        return MlflowClient(self.uri)

    def start(self) -> None:
        """Start it; it answers some seconds later."""
        with open(self._folder / "log", "ab") as log:
            self._process = subprocess.Popen(
                self._command(),
                stdout=log,
                stderr=log,
                cwd=self._folder,
                env=self._environment(),
                start_new_session=True,  # so that all of its processes can be killed at once
            )

    def _command(self) -> list[str]:
        return [
            str(Path(sys.executable).with_name("mlflow")),
            "server",
            *("--host", "127.0.0.1", "--port", self.uri.rpartition(":")[2], "--workers", "1"),
            *("--backend-store-uri", f"sqlite:///{self._folder}/mlflow.db"),
            *("--artifacts-destination", str(self._folder / "artifacts")),
        ]

    def _environment(self) -> dict[str, str]:
        quiet = {"MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
        return os.environ | quiet

    def wait(self) -> None:
        """Until it answers."""
        wait_until(self._answers)

    def kill(self) -> None:
        """As a power cut would."""
        assert self._process is not None
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def _answers(self) -> bool:
        assert self._process is not None
        log = self._folder / "log"
        assert self._process.poll() is None, log.read_text()
        try:
            with urllib.request.urlopen(f"{self.uri}/health", timeout=10) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False


def free_port() -> int:
    """A port on which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait for something that another process or thread brings about."""
    deadline = time.monotonic() + _SECONDS_TO_WAIT
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)
