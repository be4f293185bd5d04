"""Claims 10 and 11: Figure 4."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from lietransformer.experiments.springs.rollouts import CONVOLUTION, TRANSFORMER
from lietransformer.report.claims.protocol import collect, springs_needs
from lietransformer.report.claims.rules import (
    HOLDS,
    NOT_RUN,
    Ruling,
    all_of,
    equivalent,
    every,
    most,
    tally,
)
from lietransformer.report.claims.samples import (
    FEWEST_SEEDS,
    SPRINGS,
    Comparison,
    Sample,
    compare,
    over_all,
)
from lietransformer.report.claims.verdict import Claim, Evidence, Judgement
from lietransformer.report.runs import Sweep
from lietransformer.report.sizes import SPRINGS_SEEDS

Cells = Mapping[tuple[str, int], Sample]  # model, training systems

BASELINES = ("Graph network (Hamiltonian)", "Fully-connected (Hamiltonian)")
PAPER_SIZES = (10, 25, 50, 100, 400, 1_000, 3_000, 10_000, 30_000, 96_000)
LARGEST = PAPER_SIZES[-1]
SIMILAR = math.log(10) / 2  # half an order of magnitude, on an axis of seven
FEWEST_SIZES = 3
_METRIC = "best/test/mse_geometric"
_TENFOLD = math.log(10)


def _gather(*models: str) -> Callable[[Sweep], Evidence]:
    def gather(sweep: Sweep) -> Evidence:
        runs = sweep.select("data_efficiency")
        chosen = {
            (model, int(size)): (model, own, _METRIC)
            for (model, size), own in runs.groupby(["model", "n_train"])
            if model in models
        }
        return collect(sweep, chosen, SPRINGS, SPRINGS_SEEDS)

    return gather


def shared_sizes(cells: Cells, *models: str) -> list[int]:
    """Sizes at which all these models were run."""
    sizes = {size for _, size in cells}
    return sorted(size for size in sizes if all((model, size) in cells for model in models))


def missing_sizes(sizes: list[int], paper: tuple[int, ...] = PAPER_SIZES) -> tuple[str, ...]:
    """What is left out of the paper's sizes, in words."""
    run = len(set(sizes) & set(paper))
    return () if run == len(paper) else (f"{run} of the paper's {len(paper)} training set sizes",)


def enough(sizes: list[int]) -> Ruling:
    """A claim about sizes takes several of them."""
    if not sizes:
        return NOT_RUN
    if len(sizes) >= FEWEST_SIZES:
        return HOLDS
    return Ruling(
        "undecided", f"{'one size' if len(sizes) == 1 else 'two sizes'}; three are needed"
    )


def in_words(compared: Sequence[Comparison]) -> str:
    """How many sizes are better, by how much each, and all of them together."""
    known = [own for own in compared if own.outcome is not None]
    ratios = ", ".join(f"{own.where}: {own.estimate}" for own in known)
    together = f"; over all sizes, by seed: {over_all(known).interval}" if known else ""
    return f"{tally(compared)} ({ratios}){together}"


def _beats_baselines(cells: Cells) -> Judgement:
    sizes = shared_sizes(cells, TRANSFORMER, *BASELINES)
    pairs = [
        (f"n = {size:,}", cells[TRANSFORMER, size], cells[model, size])
        for size in sizes
        for model in BASELINES
    ]
    compared = compare(SPRINGS, pairs)
    by_ten = compare(SPRINGS, pairs, at_least=_TENFOLD)
    count = f"tenfold in {sum(own.gap >= 0 for own in by_ten)} of {len(by_ten)} comparisons"
    tenfold = most(by_ten)
    if by_ten and all(own.is_enough for own in by_ten):
        tenfold = replace(tenfold, reason=count)
    ratios = sorted(own.gap for own in compared if math.isfinite(own.gap))
    ours = tally(compared)
    if ratios:
        ours += f"; ×{SPRINGS.show(ratios[0])} to ×{SPRINGS.show(ratios[-1])}"
    ruling = all_of([enough(sizes), every(compared), tenfold])
    return Judgement(ruling, f"{ours}; {count}", compared, missing_sizes(sizes))


def _beats_convolution(cells: Cells) -> Judgement:
    sizes = shared_sizes(cells, TRANSFORMER, CONVOLUTION)
    compared = compare(
        SPRINGS,
        [(f"n = {size:,}", cells[TRANSFORMER, size], cells[CONVOLUTION, size]) for size in sizes],
    )
    rulings = [enough(sizes), most(compared)]
    reductions = list(missing_sizes(sizes))
    if LARGEST in sizes:
        rulings.append(equivalent(compared[-1], SIMILAR))
    else:
        reductions.append(f"n = {LARGEST:,}, where the paper's errors are similar, was not run")
    return Judgement(all_of(rulings), in_words(compared), compared, tuple(reductions))


CLAIMS = (
    Claim(
        10,
        "LieTransformer beats the models without invariance at every size, typically by one to "
        "three orders of magnitude.",
        "§4.3, Figure 4",
        "20 of 20, by ×5 to ×1,700",
        "Its 5-step error is lower than that of the graph network and of the fully-connected "
        "network at every size, one near-tie in ten forgiven. In more than half of the comparisons "
        "it is at most a tenth. "
        f"{FEWEST_SIZES} sizes and {FEWEST_SEEDS} seeds at least.",
        springs_needs((TRANSFORMER, *BASELINES), PAPER_SIZES, SPRINGS_SEEDS, "3 models × 10 sizes"),
        _gather(TRANSFORMER, *BASELINES),
        _beats_baselines,
    ),
    Claim(
        11,
        "LieTransformer beats LieConv at most sizes; at the largest the errors are similar.",
        "§4.3, Figure 4",
        "better at 8 of 10 sizes (×0.57 to ×6.5)",
        "Its 5-step error is lower at more than half of the sizes, each separated or all together "
        "by the means over the sizes of each seed. "
        f"At n = {LARGEST:,} the interval of the ratio lies within half an order of "
        f"magnitude. {FEWEST_SIZES} sizes and {FEWEST_SEEDS} seeds at least.",
        springs_needs(
            (TRANSFORMER, CONVOLUTION), PAPER_SIZES, SPRINGS_SEEDS, "2 models × 10 sizes"
        ),
        _gather(TRANSFORMER, CONVOLUTION),
        _beats_convolution,
    ),
)
