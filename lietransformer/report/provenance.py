"""Where numbers come from: the lines that stand below every table, figure and verdict."""

from collections.abc import Iterable

import pandas as pd

from lietransformer.report.runs import PAPER_TIER, Sweep

_MEANING = {
    "finished": "finished",
    "diverged": "diverged",
    "running": "begun and not ended",
    "missing": "not run",
}


def provenance(sweep: Sweep, runs: pd.DataFrame) -> list[str]:
    """Which runs, tier and commits something was made from, a sentence each."""
    return [tier(sweep), f"Runs: {inventory(runs)}.", *origins(runs), *sweep.warnings]


def tier(sweep: Sweep) -> str:
    """How these experiments compare with the paper's."""
    if sweep.tier is None:
        return "Tier: unknown; these may be smaller experiments than the paper's."
    if sweep.tier != PAPER_TIER:
        return f"Tier: {sweep.tier}. REDUCED: these are smaller experiments than the paper's."
    if sweep.is_changed:
        return "Tier: paper. CHANGED: some settings are not the paper's."
    return "Tier: paper, its full experiments."


def inventory(runs: pd.DataFrame, diverged: str = "diverged and left out") -> str:
    """How many runs there are of each status; tables and figures leave out those that diverged."""
    if runs.empty:
        return "none"
    counts = runs["status"].value_counts()
    meanings = _MEANING | {"diverged": diverged}
    return ", ".join(
        f"{counts[status]} {meaning}" for status, meaning in meanings.items() if status in counts
    )


def origins(runs: pd.DataFrame) -> list[str]:
    """How many runs are published, with commit and machine, and how many of this machine."""
    ended = runs[runs["status"].isin(["finished", "diverged"])]
    published = ended[ended["source"] == "published"]
    local = ended[ended["source"] == "local"]
    lines = []
    if len(published):
        lines.append(
            f"Published runs: {len(published)}, commit {commits(published)}, {machines(published)}."
        )
    if len(local):
        lines.append(f"Runs of this machine: {len(local)}, commit {commits(local)}.")
    return lines


def commits(runs: pd.DataFrame) -> str:
    """The commits that made the runs, shortened."""
    known = sorted({short_commit(str(commit)) for commit in runs["git_commit"].dropna()})
    return ", ".join(known) or "unknown"


def machines(runs: pd.DataFrame) -> str:
    """What computed the runs."""
    return _listed(runs["machine"].dropna().unique()) or "machine unknown"


def _listed(names: Iterable[str]) -> str:
    return "; ".join(sorted(names))


def short_commit(commit: str) -> str:
    """The beginning of a commit's number, and whether there were changes since."""
    number, _, mark = commit.partition("-")
    return f"{number[:10]} with changes" if mark == "dirty" else number[:10]
