"""How much the draw of ten training systems decides: a limit to agreement with Figure 4."""

from dataclasses import replace

import pandas as pd

from lietransformer.report.provenance import provenance
from lietransformer.report.runs import Sweep
from lietransformer.report.tables.table import Cell, Column, Row, Table, cell_of, legend

METRIC = "best/test/mse_geometric"
MODELS = ("LieTransformer-T2 small", "LieConv-T2 small")
_UNIT = 1e-3
_DECIMALS = 2


def build(sweep: Sweep) -> Table:
    """Test error of small models, each trained on several disjoint sets of systems."""
    runs = sweep.select("draws")
    draws = sorted({int(draw) for draw in runs["draw"].dropna()}) or [0]
    models = list(dict.fromkeys(runs["model"])) or list(MODELS)
    rows = tuple(
        Row(model, "", tuple(_cell(runs, model, draw) for draw in draws)) for model in models
    )
    return Table(
        "draws",
        "Springs: 5-step test error, times 1,000, after training on different draws of the systems",
        ("Training systems",),
        tuple(_column(draw) for draw in draws),
        rows,
        (
            "All seeds of Figure 4, the paper's as well as ours, share one draw of the training "
            "systems, so its quartiles do not show this spread, which limits how well two "
            "reproductions can agree.",
            *_ratios(runs),
            *legend(sweep, rows),
            *provenance(sweep, runs),
        ),
    )


def _column(draw: int) -> Column:
    heading = "the first" if draw == 0 else f"draw {draw}"
    return Column({"draw": str(draw)}, (heading,), (heading,), _DECIMALS)


def _cell(runs: pd.DataFrame, model: str, draw: int) -> Cell:
    chosen = runs[(runs["model"] == model) & (runs["draw"] == draw)].copy()
    if METRIC in chosen:
        chosen[METRIC] /= _UNIT
    return replace(cell_of(chosen, METRIC, paper=None), hours=None)


def _ratios(runs: pd.DataFrame) -> list[str]:
    """How far apart the draws are."""
    ratios = []
    finished = runs[runs["status"] == "finished"]
    for model, own in finished.groupby("model", sort=False) if METRIC in finished else ():
        by_draw = own.groupby("draw")[METRIC].median().dropna()
        if len(by_draw) > 1:
            ratios.append(f"{model} {by_draw.max() / by_draw.min():.1f}")
    return [f"Largest over smallest error: {', '.join(ratios)}."] if ratios else []
