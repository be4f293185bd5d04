"""The paper's claims, and what our runs say about each."""

from dataclasses import replace

from lietransformer.analysis.claims import (
    ablations,
    complexity,
    constellations,
    data_efficiency,
    invariance,
    long_rollouts,
    parameter_efficiency,
    qm9,
)
from lietransformer.analysis.claims.verdict import INCONCLUSIVE, NOT_RUN, Claim, Finding
from lietransformer.analysis.runs import Sweep

CLAIMS: tuple[Claim, ...] = tuple(
    sorted(
        (
            *constellations.CLAIMS,
            *invariance.CLAIMS,
            *qm9.CLAIMS,
            *data_efficiency.CLAIMS,
            *long_rollouts.CLAIMS,
            *parameter_efficiency.CLAIMS,
            *ablations.CLAIMS,
            *complexity.CLAIMS,
        ),
        key=lambda claim: claim.number,
    )
)

_SMOKE = "smoke"  # a tier that only shows that everything works


def decide_all(sweep: Sweep) -> list[tuple[Claim, Finding]]:
    """Each claim with what the runs say about it."""
    decided = [(claim, claim.decide(sweep)) for claim in CLAIMS]
    if sweep.tier != _SMOKE:
        return decided
    reason = "Runs of the smoke tier are too short to decide anything."
    return [
        (
            claim,
            finding
            if finding.verdict == NOT_RUN
            else replace(finding, verdict=INCONCLUSIVE, reason=reason),
        )
        for claim, finding in decided
    ]
