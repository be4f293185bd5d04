"""SIGTERM and Ctrl-C: stop where nothing is lost, and never inside of what must be finished."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
# EX_TEMPFAIL of sysexits.h: nothing is wrong, the same command resumes the run.
RESUME_EXIT_CODE = 75


@contextmanager
def undisturbed() -> Iterator[None]:
    """Delay SIGINT and SIGTERM until the end of the block.

    Python runs their handlers between any two of its instructions. Where those are called by a
    library written in C, an exception of a handler can be lost, and the process continues as if
    nothing had been asked. It was lost in the calls of HDF5 to the file that it writes to, and
    while numpy.random was imported.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # handlers run in the main thread only
        return
    waiting: list[int] = []

    def remember(number: int, _: FrameType | None) -> None:
        waiting.append(number)

    before: list[tuple[int, Any]] = []
    try:
        for number in _SIGNALS:
            before.append((number, signal.getsignal(number)))
            signal.signal(number, remember)
        yield
    finally:
        try:
            _restore(before)
        finally:
            _deliver(waiting)


# One after the other, even if the handler of one raises an exception.


def _restore(handlers: list[tuple[int, Any]]) -> None:
    if handlers:
        (number, handler), *others = handlers
        try:
            # None is a handler that was not installed from Python.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        finally:
            _restore(others)


def _deliver(numbers: list[int]) -> None:
    if numbers:
        first, *others = numbers
        try:
            signal.raise_signal(first)
        finally:
            _deliver(others)


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
