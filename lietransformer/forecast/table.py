"""Forecasts for reading. Nothing here needs torch."""

from collections.abc import Sequence

_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"))


def duration(seconds: float) -> str:
    """Time in a unit that leaves a number one can read."""
    for size, unit in _UNITS:
        if seconds >= size:
            return f"{seconds / size:,.1f} {unit}"
    return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"


def hours(seconds: float) -> str:
    """Time in hours, with as many digits as mean something."""
    value = seconds / 3600
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 1 else f"{value:.2f}"


def size(number: float) -> str:
    """Bytes in a unit that leaves a number one can read."""
    for power, unit in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB")):
        if number >= power:
            return f"{number / power:,.1f} {unit}"
    return f"{number / 1e3:.1f} kB"


def aligned(lines: Sequence[Sequence[str]]) -> str:
    """Cells in columns, the first to the left and all others to the right."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    rows = []
    for first, *others in lines:
        cells = [first.ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True)]
        rows.append("  ".join(cells).rstrip())
    return "\n".join(rows)
