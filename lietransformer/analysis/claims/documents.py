"""claims.md and claims.json."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

from lietransformer.analysis.claims.verdict import Claim, Finding, Verdict
from lietransformer.analysis.output import write_text
from lietransformer.analysis.provenance import provenance
from lietransformer.analysis.runs import Sweep

SCHEMA_VERSION = 1


def write_claims(
    sweep: Sweep, decided: Sequence[tuple[Claim, Finding]], out: Path
) -> tuple[Path, Path]:
    """Both files."""
    markdown, structured = out / "claims.md", out / "claims.json"
    write_text(markdown, as_markdown(sweep, decided))
    write_text(structured, json.dumps(_as_json(sweep, decided), indent=2) + "\n")
    return markdown, structured


def count_verdicts(decided: Sequence[tuple[Claim, Finding]]) -> str:
    """How many claims have each verdict."""
    counts = Counter(finding.verdict for _, finding in decided)
    return ", ".join(f"{counts[verdict]} {verdict}" for verdict in get_args(Verdict))


def as_markdown(sweep: Sweep, decided: Sequence[tuple[Claim, Finding]]) -> str:
    """A table of verdicts, then each claim with its rule and its evidence."""
    lines = [
        "# The paper's claims",
        "",
        f"Of {len(decided)} claims: {count_verdicts(decided)}.",
        "",
        *(f"- {line}" for line in provenance(sweep, sweep.runs)),
        "",
        "| | claim | verdict |",
        "| ---: | --- | --- |",
        *(f"| {claim.number} | {claim.meaning} | {own.verdict} |" for claim, own in decided),
    ]
    for claim, finding in decided:
        lines += [
            "",
            f"## {claim.number}. {claim.meaning}",
            "",
            f"**{finding.verdict}.** {finding.reason}",
            "",
            f"- Where: {claim.place}",
            f"- Rule: {claim.rule}",
            "- Evidence:",
            *(f"    - {line}" for line in finding.evidence),
        ]
    return "\n".join([*lines, ""])


def _as_json(sweep: Sweep, decided: Sequence[tuple[Claim, Finding]]) -> dict[str, Any]:
    return {
        "schema_version": SCHEMA_VERSION,
        "tier": sweep.tier,
        "is_reduced": sweep.is_reduced,
        "commits": sweep.commits,
        "runs": [{"folder": run.folder, "status": run.status} for run in sweep.runs.itertuples()],
        "claims": [
            {
                "number": claim.number,
                "meaning": claim.meaning,
                "place": claim.place,
                "rule": claim.rule,
                "verdict": finding.verdict,
                "reason": finding.reason,
                "evidence": finding.evidence,
            }
            for claim, finding in decided
        ],
    }
