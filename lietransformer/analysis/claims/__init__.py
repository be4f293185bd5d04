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
from lietransformer.analysis.claims.verdict import Claim, Finding
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


def decide_all(sweep: Sweep) -> list[tuple[Claim, Finding]]:
    """Each claim with what the runs say about it."""
    return [(claim, claim.decide(sweep)) for claim in CLAIMS]
