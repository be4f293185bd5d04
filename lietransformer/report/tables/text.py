"""Numbers as a table prints them."""

_MINUS = "−"


def fixed(value: float, decimals: int) -> str:
    """A number with `decimals` digits after the point, never minus zero."""
    text = f"{value:.{decimals}f}"
    return text.lstrip("-") if float(text) == 0 else text


def signed(value: float, decimals: int) -> str:
    """A difference: with its sign, unless it is zero as printed."""
    text = fixed(value, decimals)
    if float(text) == 0:
        return text
    return f"+{text}" if value > 0 else text.replace("-", _MINUS)


def with_spread(value: float, deviation: float | None, decimals: int) -> str:
    """Mean and, if it is known, standard deviation."""
    return fixed(value, decimals) + (
        "" if deviation is None else f" ± {fixed(deviation, decimals)}"
    )
