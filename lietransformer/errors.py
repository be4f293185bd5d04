"""One shape for every message about a user's mistake: expected, found, remedy."""


def explain(*, expected: str, found: str, remedy: str) -> str:
    """Say what was expected, what was found instead, and what to do about it."""
    return f"expected {expected}; found {found}. {remedy[:1].upper()}{remedy[1:]}."
