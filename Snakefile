# The whole reproduction: datasets → training runs, or published ones → tables, figures, claims, report.
#
#   snakemake --cores all                           on this machine
#   snakemake --cores all --profile slurm           on a Slurm cluster
#   snakemake --cores all table1                    one part; `snakemake --list-target-rules`
#   snakemake --cores all --config tier=paper       smoke, workstation (default) or paper
#   snakemake --cores all --config published=use    use (train the missing runs), only or ignore

import os
from pathlib import Path

from snakemake.exceptions import WorkflowError
from snakemake.utils import min_version

from lietransformer.errors import UserError
from lietransformer.settings import read_settings
from lietransformer.sweep import Plan
from lietransformer.sweep.reading import is_changed, resolve

min_version("9.9")


configfile: "config.yaml"


# Everything is checked here, before any job starts.
try:
    # Unlike Snakemake, this refuses a key that is given twice.
    for path in workflow.configfiles:
        read_settings(Path(path))
    TIERS = Path(workflow.basedir, "workflow", "tiers")
    SWEEP = resolve(config, TIERS)
    PLAN = Plan(SWEEP, is_changed=is_changed(SWEEP, TIERS))
    if workflow.is_main_process:
        PLAN.require_intact_archive()
        PLAN.require_valid_models()
except UserError as error:
    raise WorkflowError(str(error)) from None

RESULTS = PLAN.results

# Run folders and MLflow's store are not outputs: Snakemake would delete them before it retries a job.
# Drop stale sentinels so that Snakemake reruns what is missing.
if workflow.is_main_process:
    for path in PLAN.files_that_stand_for_nothing():
        logger.warning(
            f"Removed the stale sentinel {path}: its files are gone and are made again."
        )
        path.unlink()
    if PLAN.left_out:
        logger.warning(
            f"{PLAN.left_out} runs of the sweep are not published, and `published` is `only`: they "
            "are not trained. Train them with --config published=use."
        )


include: "workflow/rules/common.smk"


localrules:
    all,


# Every file is named, here and in the targets: Snakemake does not notice that an intermediate file
# is missing once the jobs that read it are done.
rule all:
    input:
        RESULTS / "report.html",
        CLAIMS,
        [files_of_table(name) for name in TABLES],
        [files_of_figure(name) for name in FIGURES],
        RESULTS / "sweep.json",
        PLAN.measurements.values(),
        runs_of(*sum(PARTS.values(), ())),
        tracking(*PARTS, "summary"),
        verification("verified"),
    message:
        "The sweep is complete"


include: "workflow/rules/datasets.smk"
include: "workflow/rules/train.smk"
include: "workflow/rules/evaluate.smk"
include: "workflow/rules/tables.smk"
include: "workflow/rules/figures.smk"
include: "workflow/rules/report.smk"
include: "workflow/rules/verify.smk"
include: "workflow/rules/targets.smk"


onsuccess:
    # `make reproduce` prints this itself, even when nothing had to be done.
    if "PLACES_ARE_TOLD" not in os.environ:
        from lietransformer.cli.places import places

        print(places(RESULTS))
