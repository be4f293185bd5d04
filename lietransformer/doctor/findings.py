"""What a check has found: how bad it is, what it is, and what to do about it."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

Level = Literal["ok", "note", "warning", "problem"]
_SHOWN = 3


@dataclass(frozen=True)
class Finding:
    """One line of the report.

    Attributes:
        level: ok; a note, which is good to know; a warning of what may go wrong or mislead; a
            problem, which keeps something from working.
        what: the state of things, as a sentence without its end.
        remedy: what to do, likewise; None where there is nothing to do.
        items: all files or runs that it is about, of which the sentence may name only some.
    """

    level: Level
    what: str
    remedy: str | None = None
    items: tuple[str, ...] = ()


@dataclass(frozen=True)
class Section:
    """The findings of checks that belong together."""

    title: str
    findings: list[Finding]


def some(names: Collection[object]) -> str:
    """The first few names, and how many more there are."""
    shown = [str(name) for name in list(names)[:_SHOWN]]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def counted(number: int, one: str, many: str | None = None) -> str:
    """A number with its noun: `1 run`, `2 runs`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def size(number_of_bytes: int) -> str:
    """A size for people."""
    giga = number_of_bytes / 1e9
    return f"{giga:,.1f} GB" if giga >= 1 else f"{number_of_bytes / 1e6:,.1f} MB"
