"""Claim 4: Figure 3."""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from lietransformer.experiments.symmetry.read import read_invariance
from lietransformer.report.claims.rules import HOLDS, Ruling, all_of
from lietransformer.report.claims.verdict import Claim, Evidence, Judgement, Needs
from lietransformer.report.runs import Sweep
from lietransformer.report.statistics import median_interval

Cells = Mapping[int, Sequence[float]]  # errors by number of lift samples
Interval = tuple[float, float]

_RUNS, _LARGEST = 100, 250  # the paper's
_MODEL = {"layers": 1, "width": 8, "heads": 2, "kernel_width": 2, "scheme": "evenly_spaced"}
_FEW_SAMPLES = 3
_FEWEST_COUNTS = 8  # of lift samples, between which "monotonically" says something
SMALL = 1e-6 * math.sqrt(10)  # "≈ 1e-6", to half an order of magnitude
_ROUNDING = 1e-13  # errors below it are rounding in float64


def _gather(sweep: Sweep) -> Evidence:
    measured = read_invariance(sweep)
    if measured is None or not measured.errors:
        return Evidence({})
    reductions = []
    if measured.runs < _RUNS:
        reductions.append(f"{measured.runs} runs instead of {_RUNS}")
    if len(measured.errors) < _FEWEST_COUNTS:
        counts = f"{len(measured.errors)} numbers of lift samples"
        reductions.append(f"{counts}, fewer than {_FEWEST_COUNTS}")
    if max(measured.errors) < _LARGEST:
        reductions.append(f"up to {max(measured.errors)} lift samples instead of {_LARGEST}")
    other = [
        f"{name.replace('_', ' ')} {measured.settings.get(name, 'unknown')} instead of {paper}"
        for name, paper in _MODEL.items()
        if measured.settings.get(name) != paper
    ]
    if other:
        reductions.append(f"other settings than the paper's: {', '.join(other)}")
    return Evidence(
        measured.errors,
        f"{measured.runs} runs at {len(measured.errors)} numbers of lift samples",
        tuple(reductions),
    )


def _falls(cells: Cells) -> Judgement:
    if not all(math.isfinite(error) for own in cells.values() for error in own):
        return Judgement(Ruling("undecided", "some errors are not finite"))
    errors = {
        count: [max(error, _ROUNDING) for error in own] for count, own in sorted(cells.items())
    }
    intervals = {count: median_interval(own) for count, own in errors.items()}
    known = {count: own for count, own in intervals.items() if own is not None}
    if len(known) < 2:
        return Judgement(Ruling("undecided", "too few runs for an interval of the median"))
    rises = [
        f"rises from {before} to {after} lift samples"
        for before, after in pairwise(known)
        if known[after][0] > known[before][1]
    ]
    falls = _below(known[max(known)], known[min(known)])
    monotonic = Ruling("fails", f"the error {rises[0]}") if rises else falls
    notes = [*rises, *(_line(count, errors[count], known[count]) for count in known)]
    if _FEW_SAMPLES not in known:
        text = f"not measured at {_FEW_SAMPLES} lift samples"
        ruling = all_of([monotonic, Ruling("undecided", text)])
        return Judgement(ruling, text, notes=tuple(notes))
    low, high = known[_FEW_SAMPLES]
    where = f"the error at {_FEW_SAMPLES} lift samples"
    small = Ruling("undecided", f"{where} is not known to be below {SMALL:.1e}")
    if high <= SMALL:
        small = HOLDS
    if low > SMALL:
        small = Ruling("fails", f"{where} is above {SMALL:.1e}")
    median = float(np.median(errors[_FEW_SAMPLES]))
    ours = f"{median:.2g} [{low:.2g}, {high:.2g}] at {_FEW_SAMPLES} lift samples"
    return Judgement(all_of([monotonic, small]), ours, notes=tuple(notes))


def _below(later: Interval, earlier: Interval) -> Ruling:
    if later[1] < earlier[0]:
        return HOLDS
    if later[0] > earlier[1]:
        return Ruling("fails", "the error rises with the number of lift samples")
    return Ruling("undecided", "the last error is not known to be below the first")


def _line(count: int, errors: Sequence[float], interval: Interval) -> str:
    median = float(np.median(errors))
    samples = f"{count} lift sample{'s' if count != 1 else ''}"
    return f"{samples}: median {median:.2g} [{interval[0]:.2g}, {interval[1]:.2g}]"


CLAIMS = (
    Claim(
        4,
        "The invariance error falls monotonically with the number of lift samples, and is about "
        "1e-6 or less at 3.",
        "§4.1, Figure 3 (left)",
        "≈ 1e-6 at 3 lift samples",
        "No median rises above the one before it, and the last is below the first: 95 % intervals "
        "of the median that do not overlap. At 3 lift samples the interval lies below "
        f"{SMALL:.1e}, half an order of magnitude above 1e-6. Fewer than {_FEWEST_COUNTS} "
        "numbers of lift samples are a reduction.",
        Needs("`lietransformer invariance`: 100 runs, up to 250 lift samples"),
        _gather,
        _falls,
    ),
)
