"""Claim 17: how attention weights are normalised."""

from lietransformer.analysis.claims.samples import FEWEST_SEEDS, Sample, is_lower
from lietransformer.analysis.claims.verdict import Claim, Condition, Finding, all_hold
from lietransformer.analysis.runs import Sweep

_METRIC = "final/test/mse_geometric"
_MUCH = 2.0


def _softmax_is_worse(sweep: Sweep) -> Finding:
    ablations = sweep.select("ablations", ablation="softmax")
    if ablations.empty:
        return all_hold([Condition(None, "the ablation with softmax is not part of this sweep")])
    conditions = []
    for (model, size), runs in ablations.groupby(["model", "n_train"]):
        usual = sweep.select(task="springs", model=model, n_train=size, ablation=None)
        conditions.append(
            is_lower(
                Sample.of(f"{model} with constant", usual, _METRIC),
                Sample.of("with softmax", runs, _METRIC),
                f"n = {size:,}",
                factor=_MUCH,
            )
        )
    return all_hold(conditions)


CLAIMS = (
    Claim(
        17,
        "On springs, softmax normalisation is much worse than constant normalisation.",
        "Appendix I.3",
        f"The median 5-step error with constant normalisation is below 1/{_MUCH:g} of that with "
        f"softmax, for every model and size that was run both ways; {FEWEST_SEEDS} seeds at least.",
        _softmax_is_worse,
    ),
)
