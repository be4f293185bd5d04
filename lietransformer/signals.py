"""Signals that wait for code which they must not interrupt."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def undisturbed() -> Iterator[None]:
    """What SIGINT and SIGTERM do inside the block, they do at its end.

    Python runs their handlers between any two of its instructions. Where those are called by a
    library written in C, an exception of a handler can be lost, and the process goes on as if
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
