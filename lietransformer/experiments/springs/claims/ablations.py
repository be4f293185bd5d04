"""Claims 17 and 25: softmax normalisation, and the logarithm in the lift."""

import math
from collections.abc import Callable, Mapping

from lietransformer.report.claims.protocol import collect, springs_needs
from lietransformer.report.claims.rules import (
    HOLDS,
    OPPOSITE,
    Ruling,
    all_of,
    every,
    too_few_seeds,
)
from lietransformer.report.claims.samples import (
    FEW_SEEDS,
    SPRINGS,
    Comparison,
    Sample,
    compare,
)
from lietransformer.report.claims.verdict import Claim, Evidence, Judgement, Needs
from lietransformer.report.runs import Sweep
from lietransformer.report.sizes import PAPER_PARAMETER_SIZE, PARAMETER_SEEDS

Cells = Mapping[tuple[str, int, bool], Sample]  # model, training systems, whether ablated

_METRIC = "final/test/mse_geometric"
MUCH = 2.0
UNSTABLE = 10.0  # a run this many times worse than its pair counts as one that diverged


def _gather(ablation: str, usual: str, changed: str) -> Callable[[Sweep], Evidence]:
    def gather(sweep: Sweep) -> Evidence:
        chosen = {}
        ablated = sweep.select("ablations", ablation=ablation)
        for (model, size), runs in ablated.groupby(["model", "n_train"]):
            plain = sweep.select("ablations", model=model, n_train=size, ablation=None)
            chosen[model, int(size), True] = (changed, runs, _METRIC)
            chosen[model, int(size), False] = (usual, plain, _METRIC)
        largest = max((size for _, size, _ in chosen), default=PAPER_PARAMETER_SIZE)
        reductions = (
            [f"n = {largest:,} instead of {PAPER_PARAMETER_SIZE:,}"]
            if largest < PAPER_PARAMETER_SIZE
            else []
        )
        return collect(sweep, chosen, SPRINGS, PARAMETER_SEEDS, reductions)

    return gather


def _compared(cells: Cells) -> tuple[Comparison, ...]:
    return compare(
        SPRINGS,
        [
            (f"{model}, n = {size:,}", cells[model, size, False], cells[model, size, True])
            for model, size, is_ablated in cells
            if is_ablated and (model, size, False) in cells
        ],
    )


def _much_better(cells: Cells) -> Judgement:
    """The usual setting beats the ablated one, by a factor."""
    compared = _compared(cells)
    ruling = all_of([every(compared), *map(_by_far, compared)])
    return Judgement(ruling, "; ".join(own.named for own in compared), compared)


def _by_far(comparison: Comparison) -> Ruling:
    """Whether the ratio is large; fails if it is known to be small."""
    if not comparison.is_enough:
        return too_few_seeds(comparison)
    if comparison.gap >= math.log(MUCH):
        return HOLDS
    if comparison.outcome == "loss":
        return Ruling("fails", OPPOSITE)
    is_better = "better, but by" if comparison.outcome == "win" else "a ratio of"
    less = Ruling("undecided", f"{is_better} less than a factor of {MUCH:g}")
    return Ruling("fails", less.reason) if comparison.high < math.log(MUCH) else less


def _more_stable(cells: Cells) -> Judgement:
    """The usual setting trains where the ablated one does not, or is much better."""
    compared = _compared(cells)
    rulings = [
        HOLDS if _is_more_stable(own) else all_of([every([own]), _by_far(own)]) for own in compared
    ]
    ours = "; ".join(
        f"{own.named}, {_unstable(own)} of {len(own.second.values)} unstable" for own in compared
    )
    return Judgement(all_of(rulings), ours, compared)


def _unstable(comparison: Comparison) -> int:
    """How many of the ablated runs diverged or ended far above their pair."""
    lost = sum(math.isinf(value) for value in comparison.second.values.values())
    return lost + sum(math.log(UNSTABLE) <= gap < math.inf for gap in comparison.gaps)


def _is_more_stable(comparison: Comparison) -> bool:
    """Most ablated runs are unstable and none of the usual ones; of few pairs, all agree."""
    usual, gaps = comparison.first.values.values(), comparison.gaps
    if not comparison.is_enough or any(map(math.isinf, usual)):
        return False
    lowest = 0.0 if len(gaps) < FEW_SEEDS else -math.log(UNSTABLE)
    return min(gaps) > lowest and _unstable(comparison) > len(gaps) / 2


def _needs(model: str, ablation: str, what: str) -> Needs:
    sizes = [PAPER_PARAMETER_SIZE]
    return springs_needs([model], sizes, PARAMETER_SEEDS, what, (None, ablation))


_RULE = (
    f"is at least {MUCH:g} × as large on (geometric) average, and separated. Not reproduced if the "
    f"factor is known to be below {MUCH:g}"
)

CLAIMS = (
    Claim(
        17,
        "On springs, softmax normalisation is much worse than constant normalisation.",
        "Appendix I.3",
        "“a significant drop”, no number",
        f"The 5-step error with softmax {_RULE}.",
        _needs("LieTransformer-T2", "softmax", "constant and softmax normalisation"),
        _gather("softmax", "constant", "softmax"),
        _much_better,
    ),
    Claim(
        25,
        "The canonical lift trains where the log lift is unstable.",
        "Appendix F",
        "“more numerically stable”, no number",
        f"A run is unstable if it diverges or ends with {UNSTABLE:g} × the error of its pair. More "
        "than half of the log-lift runs are and none of the canonical ones (with fewer than "
        f"{FEW_SEEDS} seeds, every log-lift run is also worse than its pair); or the 5-step error "
        f"with the log lift {_RULE}.",
        _needs("LieTransformer-SE2 small", "log_lift", "SE2 model, canonical and log lift"),
        _gather("log_lift", "canonical lift", "log lift"),
        _more_stable,
    ),
)
