"""Logging to an MLflow server during a run, without ever delaying it."""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from lietransformer.tracking.ingest import Ingestion
from lietransformer.tracking.store import open_store, reason
from lietransformer.training.run_folder import RunFolder

log = logging.getLogger(__name__)

_SECONDS_BETWEEN_UPDATES = 5.0
_SECONDS_AT_THE_END = 60.0


class LiveTracking:
    """A thread that brings the server to where the run folder is, again and again.

    The folder is the queue: what a server that was down has missed is still there when it
    is back, and what it has not got when the run ends is left for `lietransformer sync`.
    """

    def __init__(
        self,
        uri: str,
        folder: RunFolder,
        *,
        has_begun: Callable[[], bool] = lambda: True,
        seconds_between_updates: float = _SECONDS_BETWEEN_UPDATES,
        seconds_at_the_end: float = _SECONDS_AT_THE_END,
    ) -> None:
        self._uri = uri
        self._folder = folder
        self._has_begun = has_begun
        self._pause = seconds_between_updates
        self._patience = seconds_at_the_end
        self._over = threading.Event()
        self._ingestion: Ingestion | None = None
        self._has_warned = False

    @contextmanager
    def following(self) -> Iterator[None]:
        """Follow the run inside the block, and give the server some time at the end."""
        thread = threading.Thread(target=self._follow, daemon=True)
        thread.start()
        try:
            yield
        except BaseException:
            # A stopped run does not wait: what is missing is logged when it resumes.
            self._patience = 0.0
            raise
        finally:
            self._over.set()
            thread.join()
            self._catch_up()

    def _follow(self) -> None:
        while not self._over.wait(self._pause):
            self._try()

    def _catch_up(self) -> None:
        deadline = time.monotonic() + self._patience
        while not self._try():
            if time.monotonic() >= deadline:
                if self._folder.is_done:
                    log.warning(
                        "the tracking server %s is behind; bring it up to date with "
                        "`lietransformer sync %s --tracking %s`",
                        self._uri,
                        self._folder.path,
                        self._uri,
                    )
                return
            time.sleep(min(self._pause, 1.0))

    def _try(self) -> bool:
        """One update; whether it went well."""
        if not (self._has_begun() and self._folder.config_file.exists()):
            return True  # there is nothing yet, or it is another run's
        try:
            if self._ingestion is None:
                with open_store(self._uri) as client:
                    self._ingestion = Ingestion(client, self._folder)
            self._ingestion.update()
        except Exception as error:  # whatever it is, the run must not suffer from it
            if not self._has_warned:
                log.warning("tracking does not work now, will try again: %s", reason(error))
            self._has_warned = True
            self._ingestion = None  # the next one will ask how much the server has got
            return False
        if self._has_warned:
            log.info("tracking works again")
        self._has_warned = False
        return True
