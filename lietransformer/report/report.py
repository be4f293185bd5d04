"""The report: verdicts, tables, figures, runs and their verification on one page."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import get_args

import pandas as pd
from matplotlib import rc_context

from lietransformer.experiments.registry import FIGURES, TABLES
from lietransformer.experiments.springs.figures.figure4 import draw_overview
from lietransformer.report import page
from lietransformer.report.claims import decide_all
from lietransformer.report.claims.verdict import (
    INCONCLUSIVE,
    NOT_REPRODUCED,
    NOT_RUN,
    REDUCED,
    REPRODUCED,
    Claim,
    Finding,
    Verdict,
)
from lietransformer.report.figures import draw_figure
from lietransformer.report.figures.drawing import notes, png
from lietransformer.report.figures.style import STYLE
from lietransformer.report.output import write_text
from lietransformer.report.provenance import inventory, origins, tier
from lietransformer.report.runs import Sweep
from lietransformer.report.tables import html as html_table
from lietransformer.report.tables.table import Table
from lietransformer.report.verification import (
    DATASET_HEADINGS,
    RUN_HEADINGS,
    Verification,
    read_verification,
)

TITLE = "LieTransformer, reproduced"
_CLASSES = {
    REPRODUCED: "reproduced",
    REDUCED: "reduced",
    NOT_REPRODUCED: "refuted",
    INCONCLUSIVE: "inconclusive",
    NOT_RUN: "not-run",
}
_STATUSES = {"diverged": "diverged", "running": "begun", "missing": "not run"}
_NOT_VERIFIED = "Nothing was verified on this machine yet: <code>lietransformer verify</code>"


def write_report(sweep: Sweep, path: Path) -> None:
    """Write the page."""
    decided = decide_all(sweep)
    verification = read_verification(sweep.results, sweep.archive)
    tables = {name: entry.make(sweep) for name, entry in TABLES.items()}
    sections = [
        ("claims", "The paper's claims", _claims(sweep, decided)),
        ("verification", "Verified on this machine", _verification(verification)),
        ("tables", "Tables", "\n".join(_table(sweep, name, own) for name, own in tables.items())),
        ("figures", "Figures", "\n".join(_figure(sweep, name) for name in FIGURES)),
        ("runs", "Runs", _runs(sweep)),
    ]
    lead = _lead(sweep, decided, verification) + _first_screen(sweep, tables["table1"])
    write_text(path, page.page(TITLE, sections, lead))


def _lead(
    sweep: Sweep,
    decided: Sequence[tuple[Claim, Finding]],
    verification: Verification | None,
) -> str:
    """The verdicts, and what they rest on."""
    counts = Counter(finding.verdict for _, finding in decided)
    bar = page.stacked_bar(
        ((name, _CLASSES[name], counts[name]) for name in get_args(Verdict)), "claims"
    )
    runs = sweep.runs[sweep.runs["status"].isin(["finished", "diverged"])]
    published = int((runs["source"] == "published").sum())
    say = "run says" if len(runs) == 1 else "runs say"
    what = f"{len(runs)} {say} ({published} published, {len(runs) - published} of this machine)"
    warnings = [tier(sweep)] if sweep.is_reduced else []
    verified = page.banner(_NOT_VERIFIED)
    if verification is not None:
        text = f"{escape(verification.statement)} <a href='#verification'>Details</a>"
        verified = page.banner(text, _style(verification))
    return (
        "<p>Equivariant self-attention for Lie groups (Hutchinson et al., ICML 2021): what the "
        f"paper claims, and what {what}.</p>{bar}{verified}"
        + "".join(page.banner(escape(text)) for text in (*warnings, *sweep.warnings))
    )


def _style(verification: Verification) -> str:
    if verification.is_bad:
        return "bad"
    return "" if verification.is_empty or verification.is_of_another_archive else "good"


def _first_screen(sweep: Sweep, table1: Table) -> str:
    """Figure 4 beside Table 1."""
    runs = sweep.select("data_efficiency")
    with rc_context(STYLE):
        figure = draw_overview(sweep)
    description = "Figure 4: test error after 5 steps against the number of training examples"
    picture = page.picture(png(figure), description, figure.get_figwidth())
    return (
        '<div class="first">'
        f'<div><h2><a href="#figure4">Figure 4</a>: springs, test error</h2>'
        f"{picture}{page.notes(origins(runs))}</div>"
        '<div><h2><a href="#table1">Table 1</a>: constellations, test accuracy</h2>'
        f'<div class="wide">{html_table.render(replace(table1, below=None))}</div>'
        f"{page.notes(table1.notes[:2])}</div></div>"
    )


def _verification(verification: Verification | None) -> str:
    if verification is None:
        return f"<p>{_NOT_VERIFIED}</p>"
    lines = [
        verification.statement,
        f"Trained on {verification.machine}, commit {verification.commit}.",
    ]
    bad = (
        "differs",
        *verification.damages,
    )
    return (
        page.notes(lines)
        + page.plain_table(RUN_HEADINGS, verification.run_rows(), bad)
        + page.plain_table(DATASET_HEADINGS, verification.dataset_rows(), bad)
    )


def _claims(sweep: Sweep, decided: Sequence[tuple[Claim, Finding]]) -> str:
    return _how(sweep, "claims", "claims") + "\n".join(_claim(*own) for own in decided)


def _claim(claim: Claim, finding: Finding) -> str:
    evidence = "".join(f"<li>{escape(line)}</li>" for line in finding.evidence)
    return (
        f'<details id="claim-{claim.number}"><summary>'
        f'<span class="verdict {_CLASSES[finding.verdict]}">{escape(finding.verdict)}</span> '
        f"<b>{claim.number}.</b> {escape(claim.meaning)}</summary>"
        f"<p>{escape(finding.reason)}</p>"
        f"<p>Paper: {escape(claim.paper)}. Ours: {escape(finding.ours or 'none')}. "
        f"Rests on: {escape(finding.rests_on or 'nothing')}.</p>"
        f'<p class="notes">{escape(claim.place)}. Rule: {escape(claim.rule)}</p>'
        f'<ul class="notes">{evidence}</ul></details>'
    )


def _table(sweep: Sweep, name: str, table: Table) -> str:
    return (
        f'<article id="{name}"><h3>{escape(table.title)}</h3>'
        f'<div class="wide">{html_table.render(table)}</div>{page.notes(table.notes)}'
        f"{_how(sweep, name, f'tables --only {name}')}</article>"
    )


def _figure(sweep: Sweep, name: str) -> str:
    drawing = draw_figure(name, sweep)
    title = name.replace("figure", "Figure ") if name.startswith("figure") else "Not in the paper"
    picture = page.picture(
        png(drawing.figure), f"{title}. {drawing.caption}", drawing.figure.get_figwidth()
    )
    return (
        f'<figure id="{name}"><div class="wide">{picture}</div>'
        f"<figcaption><b>{title}.</b> {escape(drawing.caption)}"
        f"{page.notes(notes(sweep, drawing))}</figcaption>"
        f"{_how(sweep, name, f'figures --only {name}')}</figure>"
    )


def _how(sweep: Sweep, target: str, command: str) -> str:
    """How to make a part of the page again."""
    # With `only`, nothing is trained.
    option = " --config published=use" if sweep.published == "only" else ""
    return (
        f'<p class="notes">To train what is not published and make it again: '
        f"<code>snakemake --cores all {target}{option}</code>; from the runs that are there: "
        f"<code>lietransformer {command}</code>.</p>"
    )


def _runs(sweep: Sweep) -> str:
    runs = sweep.runs
    if runs.empty:
        return "<p>There are no runs.</p>"
    headings = ["model", "part", "variant", "published", "this machine", *_STATUSES.values()]
    machines = [f"Computed on: {machine}." for machine in sorted(runs["machine"].dropna().unique())]
    lines = [
        f"{len(runs)} runs: {inventory(runs)}.",
        f"{runs['core_hours'].sum():,.1f} core-hours (CPU time).",
        *origins(runs),
        *machines,
    ]
    return page.notes(lines) + page.plain_table([*headings, "core-hours"], _run_rows(runs))


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
        done = own.loc[own["status"] == "finished", "source"].value_counts()
        hours = own["core_hours"].sum()
        yield [
            str(model),
            ", ".join(part.replace("_", " ") for part in parts),
            ", ".join(part for part in variant if part),
            *(str(done.get(source, "")) for source in ("published", "local")),
            *(str(counts.get(status, "")) for status in _STATUSES),
            f"{hours:.1f}" if hours else "",
        ]
