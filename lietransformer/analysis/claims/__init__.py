"""The paper's claims, and what our runs say about each."""

from lietransformer.analysis.claims import (
    ablations,
    complexity,
    constellations,
    data_efficiency,
    invariance,
    parameter_efficiency,
    qm9,
)
from lietransformer.analysis.claims.verdict import NOT_DECIDED, Claim, Finding
from lietransformer.analysis.runs import Sweep

CLAIMS: tuple[Claim, ...] = (
    *constellations.CLAIMS,
    *invariance.CLAIMS,
    *qm9.CLAIMS,
    *data_efficiency.CLAIMS,
    *parameter_efficiency.CLAIMS,
    *ablations.CLAIMS,
    *complexity.CLAIMS,
)


# Trained for so few steps that an outcome is chance: it only shows that everything works.
_MEANINGLESS_TIER = "smoke"


def decide_all(sweep: Sweep) -> list[tuple[Claim, Finding]]:
    """Each claim with what the runs say about it."""
    decided = [(claim, claim.decide(sweep)) for claim in CLAIMS]
    if sweep.tier != _MEANINGLESS_TIER:
        return decided
    reason = f"Experiments of the tier {sweep.tier} are too small to decide anything."
    return [(claim, Finding(NOT_DECIDED, reason, own.evidence)) for claim, own in decided]
