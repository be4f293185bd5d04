# What the rules share.

import shlex
import sys

from lietransformer.experiments.registry import FIGURES, PARTS, TABLES
from lietransformer.layout import MANIFEST
from lietransformer.tracking.address import NO_TRACKING, is_server

# Find `lietransformer` beside the running snakemake, even if no environment is active.
shell.prefix(f'set -euo pipefail; export PATH="$PATH:{Path(sys.executable).parent}"; ')

# MLflow is a view on the runs. A SQLite store has a single writer, `track`; to a server, runs also
# log live.
TRACKING = SWEEP.tracking
LIVE_TRACKING = TRACKING if is_server(TRACKING) else NO_TRACKING

# How runs are computed. Not in the `params` of `train`, where a change would rerun finished jobs, but
# in its shell command; hence the escaped braces.
HOW = (
    f"--device {SWEEP.compute.device} --checkpoint-every {SWEEP.compute.checkpoint_every}"
    f" --seeds-at-once {str(SWEEP.compute.seeds_at_once).lower()}"
    f" --tracking {shlex.quote(LIVE_TRACKING)} --wait"
)
HOW = HOW.replace("{", "{{").replace("}", "}}")

# Whether there is a GPU is known on the node only; the CUDA packages run on a CPU as well.
ENVIRONMENT = f"../../envs/{'cpu' if SWEEP.compute.device == 'cpu' else 'cuda'}.yaml"

CLAIMS = [RESULTS / "claims.md", RESULTS / "claims.json"]


wildcard_constraints:
    task="constellations|springs|qm9",
    # Names contain the hash of the settings, so files of other settings have no rule.
    dataset="|".join(data.path.stem for data in PLAN.datasets.values()),
    measurement="|".join(path.stem for path in PLAN.measurements.values()),
    table="|".join(TABLES),
    figure="|".join(FIGURES),


def pack_of(wildcards):
    """The training job that writes a summary."""
    folder = RESULTS / "runs" / wildcards.task / wildcards.model / wildcards.variant
    return PLAN.packs[folder / f"seeds-{wildcards.seeds}.json"]


def kind_of(wildcards):
    """The kind of a dataset, from a file name KIND-HASH."""
    return wildcards.dataset.rpartition("-")[0]


def command_of(wildcards):
    """The command of a measurement, from a file name COMMAND-HASH."""
    return wildcards.measurement.rpartition("-")[0]


def tracking(*tasks):
    """Sentinels of the tasks synchronised with MLflow; none without tracking."""
    return (
        []
        if TRACKING == NO_TRACKING
        else [RESULTS / "tracking" / task for task in tasks]
    )


def runs_of(*parts):
    """Files that change with the runs of these parts, trained here or published."""
    archive = [PLAN.archive.path / MANIFEST] if PLAN.has_published(*parts) else []
    return [pack.summary for pack in PLAN.packs_for(*parts)] + archive


def folders_of(task):
    """Folders with the runs of a task: local ones and, if they are used, published ones."""
    is_used = SWEEP.published != "ignore" and PLAN.has_published(*PARTS[task])
    published = [PLAN.archive.path / "runs" / task] if is_used else []
    return [RESULTS / "runs" / task] + published


def verification(name):
    """A file of the verification; none if the tier does not verify."""
    return [RESULTS / name] if PLAN.verifies else []


def measured_for(figure):
    """The measurement that a figure shows, if it shows one."""
    name = FIGURES[figure].measurement
    return [] if name is None else [PLAN.measurements[name]]


def files_of_table(name):
    return [RESULTS / "tables" / f"{name}.{kind}" for kind in ("md", "csv", "tex")]


def files_of_figure(name):
    return [RESULTS / "figures" / f"{name}.{kind}" for kind in ("pdf", "png")]
