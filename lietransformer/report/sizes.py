"""Which numbers of training examples a figure of springs shows, and what the others cost."""

import math
from collections.abc import Collection, Iterable
from typing import Any

from lietransformer.experiments.springs.rollouts import CONVOLUTION, TRANSFORMER
from lietransformer.report.prices import not_run
from lietransformer.report.runs import Sweep, finished

PAPER_ROLLOUT_SIZE = 10_000  # Figure 5
PAPER_TRAJECTORY_SIZE = 400  # Figures 6 and 11
PAPER_PARAMETER_SIZE = 3_000  # Figures 7 and 8
SPRINGS_SEEDS, PARAMETER_SEEDS = 10, 5  # the paper's: Figures 4 to 6 and 9 to 11, Figures 7 and 8
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


def springs_configurations(
    models: Iterable[str], sizes: Iterable[int], ablation: str | None = None
) -> list[dict[str, Any]]:
    """The labels of models × sizes."""
    listed = list(sizes)
    return [
        {"task": "springs", "model": model, "n_train": size, "ablation": ablation}
        for model in models
        for size in listed
    ]


def sizes_not_run(sweep: Sweep, sizes: Collection[int], *models: str) -> list[str]:
    """What the paper shows and no finished run of ours, with its price, in words."""
    runs = sweep.select("data_efficiency")
    runs = runs[runs["model"].isin(models) & (runs["status"] != "missing")]
    begun = [size for size in sizes if (runs["n_train"] == size).any()]
    absent = [size for size in sizes if size not in begun]
    price = sweep.prices.total(springs_configurations(models, absent), SPRINGS_SEEDS)
    where = f"{models[0]} at n = " if len(models) == 1 else "n = "
    reasons = (("no run with numbers", begun), (not_run(price), absent))
    return [
        f"{where}{', '.join(f'{size:,}' for size in own)}, {why}" for why, own in reasons if own
    ]
