"""Signals wait for code which they must not interrupt, and are not lost."""

import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from lietransformer.data.writer import create_dataset
from lietransformer.files import PatientFile
from lietransformer.interruption import undisturbed


@pytest.fixture(autouse=True)
def ordinary_handler() -> Iterator[None]:
    """Ctrl-C raises KeyboardInterrupt, also where tests were started in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_a_signal_waits_for_the_end_of_the_block() -> None:
    reached: list[str] = []

    def work() -> None:
        with undisturbed():
            signal.raise_signal(signal.SIGINT)
            reached.append("the end")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert reached == ["the end"]


def test_handlers_are_as_before() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with undisturbed():
        assert signal.getsignal(signal.SIGTERM) != before[1]
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_blocks_in_blocks() -> None:
    reached: list[str] = []

    def work() -> None:
        with undisturbed():
            with undisturbed():
                signal.raise_signal(signal.SIGINT)
            reached.append("the end of the outer one")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert reached


def test_two_signals_are_both_delivered() -> None:
    came: list[int] = []

    def terminate(number: int, _: object) -> None:
        came.append(number)

    def work() -> None:
        with undisturbed():
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGTERM)

    before = signal.signal(signal.SIGTERM, terminate)
    try:
        with pytest.raises(KeyboardInterrupt):
            work()
    finally:
        signal.signal(signal.SIGTERM, before)
    assert came == [signal.SIGTERM]


def test_handlers_are_restored_even_if_one_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    """A signal that comes while handlers are restored finds some of them in place already."""
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    original = signal.signal

    def interrupted(number: int, handler: object) -> object:
        result = original(number, handler)  # type: ignore[arg-type]
        if (number, handler) == (signal.SIGINT, before[0]):
            signal.raise_signal(signal.SIGINT)
        return result

    def work() -> None:
        with undisturbed():
            monkeypatch.setattr(signal, "signal", interrupted)

    with pytest.raises(KeyboardInterrupt):
        work()
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_other_threads_have_no_signals_to_wait_for() -> None:
    errors: list[BaseException] = []

    def work() -> None:
        try:
            with undisturbed():
                pass
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert not errors


# Where HDF5 calls the file that it writes to.
@pytest.mark.parametrize("method", ["write", "seek", "truncate"])
def test_none_is_lost_while_a_dataset_is_written(
    method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = getattr(PatientFile, method)
    sent: list[str] = []

    def interrupted(self: PatientFile, *arguments: object) -> object:
        if not sent:
            sent.append(method)
            signal.raise_signal(signal.SIGINT)
        return original(self, *arguments)

    def write() -> None:
        with create_dataset(tmp_path / "data.h5", kind="test", config={}, seed=0) as writer:
            writer.write("first", np.arange(10))
            monkeypatch.setattr(PatientFile, method, interrupted)
            writer.write("second", np.arange(100_000))

    with pytest.raises(KeyboardInterrupt):
        write()
    assert sent
    assert list(tmp_path.iterdir()) == []
