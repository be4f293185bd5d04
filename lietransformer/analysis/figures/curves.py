"""Median and interquartile range over seeds, along something."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from lietransformer.analysis.figures.style import FAINT, Look
from lietransformer.analysis.runs import finished
from lietransformer.analysis.statistics import summarise


def draw_median(
    axis: Axes, values: Mapping[int, Sequence[float]], look: Look, *, marked: bool = True
) -> bool:
    """A line through the medians and a band over the middle half; whether there was any value.

    A single seed has no band, and is drawn without one.
    """
    summaries = {x: summarise(own) for x, own in sorted(values.items())}
    known = {x: own for x, own in summaries.items() if own.median is not None}
    if not known:
        return False
    # None becomes NaN, which is not drawn.
    lower, median, upper = np.array(
        [(own.lower_quartile, own.median, own.upper_quartile) for own in known.values()],
        dtype=float,
    ).T
    marker = look.marker if marked else ""
    axis.plot(list(known), median, color=look.colour, marker=marker, label=look.label)
    axis.fill_between(list(known), lower, upper, color=look.colour, alpha=0.2, linewidth=0)
    return True


def draw_published(axis: Axes, curve: Mapping[int, float], look: Look) -> None:
    """The paper's curve, faintly, behind ours."""
    axis.plot(
        list(curve),
        list(curve.values()),
        color=look.colour,
        alpha=FAINT,
        linestyle=(0, (4, 2)),
        linewidth=1.1,
        zorder=1,
    )


def over_seeds(runs: pd.DataFrame, *by: str) -> str:
    """Of how many seeds points are, for a caption: "over 10 seeds", "over 2 to 10 seeds"."""
    counts = finished(runs).groupby(list(by))["seed"].nunique()
    if counts.empty:
        return "over seeds"
    fewest, most = int(counts.min()), int(counts.max())
    if most == 1:
        return "over seeds (here one, without a spread)"
    return f"over {most} seeds" if fewest == most else f"over {fewest} to {most} seeds"


def not_finite(runs: pd.DataFrame, metrics: Sequence[str]) -> list[str]:
    """How many finished runs have no finite number to be drawn, in words."""
    done = finished(runs)
    known = [metric for metric in metrics if metric in done.columns]
    count = int(done[known].isna().any(axis=1).sum()) if known else 0
    return [f"{count} finished runs whose error is not finite"] if count else []


def by_step(errors: np.ndarray) -> dict[int, Sequence[float]]:
    """(runs, steps) as values by step; the first predicted step is 1."""
    return {step + 1: list(column) for step, column in enumerate(errors.T)}
