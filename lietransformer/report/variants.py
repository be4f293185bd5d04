"""The six models of the comparison by group and size (Figures 7 and 8)."""

import pandas as pd

from lietransformer.report.runs import Sweep
from lietransformer.report.sizes import PAPER_PARAMETER_SIZE, nearest

ARCHITECTURES = ("LieTransformer", "LieConv")
VARIANTS = ("T2 small", "T2", "SE2 small")  # the paper has no large SE2 model


def comparison_size(sweep: Sweep) -> int:
    """The number of training examples: the paper's, or the nearest that is planned."""
    sizes = sweep.select("parameter_efficiency")["n_train"].dropna()
    return nearest(PAPER_PARAMETER_SIZE, {int(size) for size in sizes})


def variant_runs(sweep: Sweep, architecture: str, variant: str) -> pd.DataFrame:
    """Runs of a model of the comparison, such as ("LieConv", "T2 small")."""
    return sweep.select(
        "parameter_efficiency", model=f"{architecture}-{variant}", n_train=comparison_size(sweep)
    )
