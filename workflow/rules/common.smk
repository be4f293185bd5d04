# What the rules share.

import sys

from lietransformer.tracking.address import NO_TRACKING, is_server

# `lietransformer` is found beside the snakemake that runs, also where no environment is active.
shell.prefix(f'set -euo pipefail; export PATH="$PATH:{Path(sys.executable).parent}"; ')

# MLflow is a view on the runs. A file has a single writer, `track`; a server is also written to
# by the runs themselves.
TRACKING = SWEEP.tracking
LIVE_TRACKING = TRACKING if is_server(TRACKING) else NO_TRACKING

# How runs are computed. Not among the `params` of `train`: a change of those would start jobs again
# whose runs are done.
HOW = (
    f"--device {SWEEP.compute.device} --checkpoint-every {SWEEP.compute.checkpoint_every}"
    f" --tracking {LIVE_TRACKING} --wait"
)

# Whether runs may use a GPU is known where they run; the packages for one do for a CPU as well.
ENVIRONMENT = f"../../envs/{'cpu' if SWEEP.compute.device == 'cpu' else 'cuda'}.yaml"

TABLES = {"table1": ["constellations"], "table2": ["qm9"]}
FIGURES = {
    "figure2": [],
    "figure3": [],
    "figure4": ["data_efficiency"],
    "figure5": ["data_efficiency"],
    "figure6": ["data_efficiency"],
    "figure7": ["parameter_efficiency"],
    "figure8": ["parameter_efficiency"],
    "figure9": ["data_efficiency"],
    "figure10": ["data_efficiency"],
    "figure11": ["data_efficiency"],
    "complexity": [],
}
# Figures of what is measured without training.
MEASURED = {"figure2": "lifting", "figure3": "invariance", "complexity": "complexity"}
PARTS = {
    "constellations": ["constellations"],
    "springs": ["data_efficiency", "parameter_efficiency", "ablations"],
    "qm9": ["qm9"],
}


wildcard_constraints:
    task="constellations|springs|qm9",
    digest="[0-9a-f]{8}",
    table="|".join(TABLES),
    figure="|".join(FIGURES),
    measurement="|".join(PLAN.measurements),


def pack_of(wildcards):
    """The training job that makes a summary."""
    folder = RESULTS / "runs" / wildcards.task / wildcards.model / wildcards.variant
    return PLAN.packs[folder / f"seeds-{wildcards.seeds}.json"]


def tracking(*names):
    """Files that say that MLflow has something; none where nothing is tracked."""
    return [] if TRACKING == NO_TRACKING else [RESULTS / "tracking" / name for name in names]


def summaries(*parts):
    """The files of all training jobs that some parts of the sweep need."""
    return [pack.summary for pack in PLAN.packs_for(*parts)]


def closing_words(plan):
    """Where everything is."""
    store = f"make ui, or mlflow ui --backend-store-uri {TRACKING}"
    return "\n".join(
        [
            "",
            f"The sweep of the tier {plan.config.tier} is complete.",
            f"  report        {RESULTS / 'report.html'}",
            f"  verdicts      {RESULTS / 'claims.md'}",
            f"  tables        {RESULTS / 'tables'}",
            f"  figures       {RESULTS / 'figures'}",
            f"  runs          {RESULTS / 'runs'}",
            f"  MLflow        {NO_TRACKING if TRACKING == NO_TRACKING else store}",
        ]
    )
