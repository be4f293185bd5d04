"""Being asked to stop: SIGTERM, which schedulers send, and Ctrl-C."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

# EX_TEMPFAIL of sysexits.h: nothing is wrong, the same command again will go on.
RESUME_EXIT_CODE = 75


class Interrupted(Exception):
    """The run was asked to stop and has been saved; it can be resumed."""


class Interruption:
    """Remembers that a signal came, so that the run stops where nothing is lost."""

    def __init__(self) -> None:
        self.signal: int | None = None

    def check(self) -> None:
        """Raise `Interrupted` if a signal has come."""
        if self.signal is not None:
            raise Interrupted(signal.Signals(self.signal).name)

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Take signals inside the block. A second Ctrl-C stops at once."""

        def remember(number: int, _: FrameType | None) -> None:
            if self.signal is not None and number == signal.SIGINT:
                raise KeyboardInterrupt
            self.signal = number

        before = {n: signal.signal(n, remember) for n in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
