# What the rules share.

import shlex
import sys

from lietransformer.experiments.registry import FIGURES, PARTS, TABLES
from lietransformer.layout import MANIFEST
from lietransformer.tracking.address import NO_TRACKING, is_server

# `lietransformer` is found beside the snakemake that runs, also where no environment is active.
shell.prefix(f'set -euo pipefail; export PATH="$PATH:{Path(sys.executable).parent}"; ')

# MLflow is a view on the runs. A file has a single writer, `track`; a server is also written to
# by the runs themselves.
TRACKING = SWEEP.tracking
LIVE_TRACKING = TRACKING if is_server(TRACKING) else NO_TRACKING

# How runs are computed. Not among the `params` of `train`: a change of those would start jobs again
# whose runs are done. So it becomes part of the shell command as it is, in which Snakemake looks for
# braces.
HOW = (
    f"--device {SWEEP.compute.device} --checkpoint-every {SWEEP.compute.checkpoint_every}"
    f" --seeds-at-once {str(SWEEP.compute.seeds_at_once).lower()}"
    f" --tracking {shlex.quote(LIVE_TRACKING)} --wait"
)
HOW = HOW.replace("{", "{{").replace("}", "}}")

# Whether runs may use a GPU is known where they run; the packages for one do for a CPU as well.
ENVIRONMENT = f"../../envs/{'cpu' if SWEEP.compute.device == 'cpu' else 'cuda'}.yaml"

CLAIMS = [RESULTS / "claims.md", RESULTS / "claims.json"]


wildcard_constraints:
    task="constellations|springs|qm9",
    # With the hash of their settings: what is asked for under another one is not made.
    dataset="|".join(data.path.stem for data in PLAN.datasets.values()),
    measurement="|".join(path.stem for path in PLAN.measurements.values()),
    table="|".join(TABLES),
    figure="|".join(FIGURES),


def pack_of(wildcards):
    """The training job that makes a summary."""
    folder = RESULTS / "runs" / wildcards.task / wildcards.model / wildcards.variant
    return PLAN.packs[folder / f"seeds-{wildcards.seeds}.json"]


def kind_of(wildcards):
    """Which dataset a file is: it has that name, and a hash of the settings."""
    return wildcards.dataset.rpartition("-")[0]


def command_of(wildcards):
    """The command of a measurement: its file has that name, and a hash of the settings."""
    return wildcards.measurement.rpartition("-")[0]


def tracking(*tasks):
    """Files that say that MLflow has the runs of tasks; none where nothing is tracked."""
    return (
        []
        if TRACKING == NO_TRACKING
        else [RESULTS / "tracking" / task for task in tasks]
    )


def runs_of(*parts):
    """Files that change with the runs of parts of the sweep, trained here or published."""
    archive = [PLAN.archive.path / MANIFEST] if PLAN.has_published(*parts) else []
    return [pack.summary for pack in PLAN.packs_for(*parts)] + archive


def folders_of(task):
    """The runs of a task for MLflow: those of this machine and, if they are used, published ones."""
    is_used = SWEEP.published != "ignore" and PLAN.has_published(*PARTS[task])
    published = [PLAN.archive.path / "runs" / task] if is_used else []
    return [RESULTS / "runs" / task] + published


def verification(name):
    """A file of the verification; none where no published run is trained again."""
    return [RESULTS / name] if PLAN.verifies else []


def measured_for(figure):
    """The measurement that a figure shows; none for those of runs."""
    name = FIGURES[figure].measurement
    return [] if name is None else [PLAN.measurements[name]]


def files_of_table(name):
    return [RESULTS / "tables" / f"{name}.{kind}" for kind in ("md", "csv", "tex")]


def files_of_figure(name):
    return [RESULTS / "figures" / f"{name}.{kind}" for kind in ("pdf", "png")]
