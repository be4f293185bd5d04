"""Waiting for something to be so, instead of for a time."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

# Only how often is looked, and when a test that hangs gives up: nothing depends on either.
_SECONDS_BETWEEN_LOOKS = 0.1
_SECONDS_TO_GIVE_UP = 900


def wait_until(look: Callable[[], T], what: str) -> T:
    """Look until there is something to see, and return it."""
    end = time.monotonic() + _SECONDS_TO_GIVE_UP
    while not (seen := look()):
        assert time.monotonic() < end, f"waited {_SECONDS_TO_GIVE_UP} s for {what}"
        time.sleep(_SECONDS_BETWEEN_LOOKS)
    return seen


def is_alive(process: int) -> bool:
    """Whether a process runs; one that has ended, and that nobody has asked about, does not."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"
