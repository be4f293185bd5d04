"""Which numbers of training examples a figure of springs shows."""

import math
from collections.abc import Collection

from lietransformer.analysis.rollouts import CONVOLUTION, TRANSFORMER
from lietransformer.analysis.runs import Sweep, finished

PAPER_ROLLOUT_SIZE = 10_000  # Figure 5
PAPER_TRAJECTORY_SIZE = 400  # Figures 6 and 11
PAPER_PARAMETER_SIZE = 3_000  # Figures 7 and 8
PAPER_SIZES = {
    "figure9": (100, 400, 1_000, 3_000, 10_000, 30_000),
    "figure10": (100, 400, 1_000),
}


def shared_sizes(sweep: Sweep, *, finished_only: bool = True) -> list[int]:
    """Sizes at which both LieTransformer-T2 and LieConv-T2 have a run, smallest first."""
    sizes = []
    for model in (TRANSFORMER, CONVOLUTION):
        runs = sweep.select("data_efficiency", model=model)
        runs = finished(runs) if finished_only else runs
        sizes.append({int(size) for size in runs["n_train"].dropna()})
    return sorted(set.intersection(*sizes))


def nearest(wanted: int, available: Collection[int]) -> int:
    """The size that is there and nearest by ratio; the wanted one if there is none."""
    return min(available, key=lambda size: abs(math.log(size / wanted)), default=wanted)


def shown_sizes(wanted: tuple[int, ...], available: Collection[int]) -> list[int]:
    """Those of the wanted sizes that are there, or else as many of the largest, or else all."""
    both = [size for size in wanted if size in available]
    return both or sorted(available)[-len(wanted) :] or list(wanted)


def not_planned(wanted: tuple[int, ...], planned: Collection[int]) -> list[str]:
    """What the paper shows and this sweep leaves out, in words."""
    sizes = [f"{size:,}" for size in wanted if size not in planned]
    return [f"n = {', '.join(sizes)} (not part of this sweep)"] if sizes else []
