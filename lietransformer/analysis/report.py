"""The report: verdicts, tables, figures and runs on one page."""

from collections import Counter
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import get_args

import pandas as pd

from lietransformer.analysis import page
from lietransformer.analysis.claims import decide_all
from lietransformer.analysis.claims.verdict import (
    NOT_DECIDED,
    NOT_REPRODUCED,
    REPRODUCED,
    Claim,
    Finding,
    Verdict,
)
from lietransformer.analysis.figures import FIGURES, draw_figure
from lietransformer.analysis.figures.drawing import notes, png
from lietransformer.analysis.output import write_text
from lietransformer.analysis.provenance import commits, inventory, tier
from lietransformer.analysis.runs import Sweep
from lietransformer.analysis.tables import TABLES
from lietransformer.analysis.tables import html as html_table

TITLE = "LieTransformer, reproduced"
_CLASSES = {REPRODUCED: "reproduced", NOT_REPRODUCED: "refuted", NOT_DECIDED: "undecided"}
_STATUSES = {
    "finished": "finished",
    "diverged": "diverged",
    "running": "begun",
    "missing": "missing",
}


def write_report(sweep: Sweep, path: Path) -> None:
    """Write the page."""
    decided = decide_all(sweep)
    sections = [
        ("claims", "The paper's claims", _claims(decided)),
        ("tables", "Tables", "\n".join(_table(sweep, name) for name in TABLES)),
        ("figures", "Figures", "\n".join(_figure(sweep, name) for name in FIGURES)),
        ("runs", "Runs", _runs(sweep)),
    ]
    write_text(path, page.page(TITLE, sections, _lead(sweep, decided)))


def _lead(sweep: Sweep, decided: Sequence[tuple[Claim, Finding]]) -> str:
    """What a reader wants to know first."""
    counts = Counter(finding.verdict for _, finding in decided)
    boxes = "".join(
        f"<div><b>{counts[verdict]}</b>{escape(verdict)}</div>" for verdict in get_args(Verdict)
    )
    reduced = f'<p class="banner">{escape(tier(sweep))}</p>' if sweep.is_reduced else ""
    warnings = "".join(f'<p class="banner">{escape(text)}</p>' for text in sweep.warnings)
    return (
        "<p>Equivariant self-attention for Lie groups (Hutchinson et al., ICML 2021): what the "
        f"paper claims, and what our {len(sweep.runs)} runs say about it.</p>"
        f'{reduced}{warnings}<div class="counts">{boxes}</div>'
    )


def _claims(decided: Sequence[tuple[Claim, Finding]]) -> str:
    return _how("claims", "claims") + "\n".join(_claim(*own) for own in decided)


def _claim(claim: Claim, finding: Finding) -> str:
    evidence = "".join(f"<li>{escape(line)}</li>" for line in finding.evidence)
    return (
        f'<details id="claim-{claim.number}"><summary>'
        f'<span class="verdict {_CLASSES[finding.verdict]}">{escape(finding.verdict)}</span> '
        f"<b>{claim.number}.</b> {escape(claim.meaning)}</summary>"
        f"<p>{escape(finding.reason)}</p>"
        f'<p class="notes">{escape(claim.place)}. Rule: {escape(claim.rule)}</p>'
        f'<ul class="notes">{evidence}</ul></details>'
    )


def _table(sweep: Sweep, name: str) -> str:
    table = TABLES[name](sweep)
    return (
        f'<article id="{name}"><h3>{escape(table.title)}</h3>'
        f'<div class="wide">{html_table.render(table)}</div>{page.notes(table.notes)}'
        f"{_how(name, f'tables --only {name}')}</article>"
    )


def _figure(sweep: Sweep, name: str) -> str:
    drawing = draw_figure(name, sweep)
    title = name.replace("figure", "Figure ") if name.startswith("figure") else "Not in the paper"
    picture = page.picture(
        png(drawing), f"{title}. {drawing.caption}", drawing.figure.get_figwidth()
    )
    return (
        f'<figure id="{name}"><div class="wide">{picture}</div>'
        f"<figcaption><b>{title}.</b> {escape(drawing.caption)}"
        f"{page.notes(notes(sweep, drawing))}</figcaption>"
        f"{_how(name, f'figures --only {name}')}</figure>"
    )


def _how(target: str, command: str) -> str:
    """How to make a part of the page again."""
    return (
        f'<p class="notes">To run what it needs and make it again: '
        f"<code>snakemake --cores all {target}</code>; from the runs that are there: "
        f"<code>lietransformer {command}</code>.</p>"
    )


def _runs(sweep: Sweep) -> str:
    runs = sweep.runs
    if runs.empty:
        return "<p>There are no runs.</p>"
    headings = ["model", "part", "variant", *_STATUSES.values(), "hours"]
    machines = [f"Computed on: {machine}." for machine in sorted(runs["machine"].dropna().unique())]
    lines = [
        f"{len(runs)} runs: {inventory(runs)}.",
        f"{runs['hours'].sum():,.1f} hours of computing.",
        f"Commit: {commits(runs)}.",
        *machines,
    ]
    return page.notes(lines) + page.plain_table(headings, _run_rows(runs))


def _run_rows(runs: pd.DataFrame) -> Iterator[list[str]]:
    """A row for each configuration."""
    labels = ["task", "model", "n_train", "target", "augmentation", "ablation"]
    for key, own in runs.groupby(labels, dropna=False, sort=False):
        _, model, size, target, augmentation, ablation = (
            None if pd.isna(label) else label for label in key
        )
        variant = [
            f"n = {size:,}" if size else None,
            target,
            f"augmented by {augmentation}" if augmentation not in (None, "none") else None,
            ablation,
        ]
        parts = dict.fromkeys(part for parts in own["parts"] for part in parts)
        counts = own["status"].value_counts()
        hours = own["hours"].sum()
        yield [
            str(model),
            ", ".join(part.replace("_", " ") for part in parts),
            ", ".join(part for part in variant if part),
            *(str(counts.get(status, "")) for status in _STATUSES),
            f"{hours:.1f}" if hours else "",
        ]
