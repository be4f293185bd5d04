"""Median and interquartile range over seeds, along something."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from lietransformer.reference import Band
from lietransformer.report.figures.style import (
    COMPARISON,
    OUR_BAND,
    PAPER_LINE,
    Look,
    paper_band,
)
from lietransformer.report.provenance import commits, machines
from lietransformer.report.runs import Sweep, finished
from lietransformer.report.statistics import summarise


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
    axis.fill_between(list(known), lower, upper, color=look.colour, **OUR_BAND)
    return True


def draw_comparison(
    axis: Axes, values: Mapping[int, Sequence[float]], look: Look, *, marked: bool = True
) -> None:
    """The medians of published runs beside ours: dotted, with hollow markers."""
    medians = {x: summarise(own).median for x, own in sorted(values.items())}
    known = {x: median for x, median in medians.items() if median is not None}
    marker = look.marker if marked else ""
    axis.plot(list(known), list(known.values()), color=look.colour, marker=marker, **COMPARISON)


def draw_paper(axis: Axes, curve: Mapping[int, Band], look: Look) -> None:
    """The paper's medians, dashed, and its interquartile band, hatched, behind ours."""
    lower = [band.lower_quartile for band in curve.values()]
    upper = [band.upper_quartile for band in curve.values()]
    medians = [band.median for band in curve.values()]
    axis.fill_between(list(curve), lower, upper, zorder=1, **paper_band(look.colour))
    axis.plot(list(curve), medians, color=look.colour, zorder=1, **PAPER_LINE)


def comparison_note(sweep: Sweep) -> str:
    """A sentence for the caption, where published runs stand beside local ones."""
    if sweep.comparison is None:
        return ""
    done = finished(sweep.comparison.runs)
    where = f"commit {commits(done)}, {machines(done)}"
    return f" Dotted, hollow: medians of the published runs ({where})."


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
