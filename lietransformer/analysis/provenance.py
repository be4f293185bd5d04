"""Where numbers come from: the lines that stand below every table, figure and verdict."""

import pandas as pd

from lietransformer.analysis.runs import PAPER_TIER, Sweep

_MEANING = {
    "finished": "finished",
    "diverged": "diverged and left out",
    "running": "begun and not ended",
    "missing": "missing",
}


def provenance(sweep: Sweep, runs: pd.DataFrame) -> list[str]:
    """Which runs, tier and commits something was made from, a sentence each."""
    return [tier(sweep), f"Runs: {inventory(runs)}.", f"Commit: {commits(runs)}.", *sweep.warnings]


def tier(sweep: Sweep) -> str:
    """How these experiments compare with the paper's."""
    if sweep.tier is None:
        return "Tier: unknown; these may be smaller experiments than the paper's."
    if sweep.tier != PAPER_TIER:
        return f"Tier: {sweep.tier}. REDUCED: these are smaller experiments than the paper's."
    if sweep.is_changed:
        return "Tier: paper. CHANGED: some settings are not the paper's."
    return "Tier: paper, its full experiments."


def inventory(runs: pd.DataFrame) -> str:
    """How many runs there are of each status."""
    if runs.empty:
        return "none"
    counts = runs["status"].value_counts()
    return ", ".join(
        f"{counts[status]} {meaning}" for status, meaning in _MEANING.items() if status in counts
    )


def commits(runs: pd.DataFrame) -> str:
    """The commits that made the runs, shortened."""
    known = sorted({short_commit(str(commit)) for commit in runs["git_commit"].dropna()})
    return ", ".join(known) or "unknown"


def short_commit(commit: str) -> str:
    """The beginning of a commit's number, and whether there were changes since."""
    number, _, mark = commit.partition("-")
    return f"{number[:10]} with changes" if mark == "dirty" else number[:10]
