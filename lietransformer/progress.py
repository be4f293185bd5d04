"""Progress bars: on a terminal, for what takes a while, and nowhere else."""

from typing import Any

from tqdm import tqdm


def progress(*, total: int | None, description: str, unit: str) -> "tqdm[Any]":
    """A bar that appears after a second, and only on a terminal; update it with `update(n)`.

    A total of None stands for one that is not known.
    """
    return tqdm(
        total=total,
        desc=description,
        unit=unit,
        unit_scale=True,
        delay=1.0,
        disable=None,
        dynamic_ncols=True,
        leave=False,
    )
