"""The paper's claims, and what our runs say about each."""

from dataclasses import replace

from lietransformer.experiments.registry import claims
from lietransformer.report.claims.verdict import INCONCLUSIVE, NOT_RUN, Claim, Finding
from lietransformer.report.runs import Sweep

_SMOKE = "smoke"  # a tier that only shows that everything works


def decide_all(sweep: Sweep) -> list[tuple[Claim, Finding]]:
    """Each claim with what the runs say about it."""
    decided = [(claim, claim.decide(sweep)) for claim in claims()]
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
