"""Mistakes of the user, and checks that report them."""

from typing import Any, get_args


def require_choice(name: str, value: object, choices: Any) -> None:
    """Refuse a value that is not one of a Literal's choices."""
    if value not in get_args(choices):
        raise ValueError(f"{name} must be one of {', '.join(get_args(choices))}, got {value!r}")


def require_at_least_one(name: str, value: int | None) -> None:
    """Refuse a count below 1; None stands for a default and passes."""
    if value is not None and value < 1:
        raise ValueError(f"{name} must be at least 1, got {value}")


class UserError(Exception):
    """A mistake that the user can fix: the command line prints its message, not a traceback."""
