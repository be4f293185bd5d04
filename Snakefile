# The whole reproduction: datasets → training runs → tables, figures, claims, report.
#
#   snakemake --cores all                           on this machine
#   snakemake --cores all --profile slurm           on a Slurm cluster
#   snakemake --cores all table1                    one part; `snakemake --list-target-rules`
#   snakemake --cores all --config tier=paper       smoke, laptop (default) or paper

from pathlib import Path

from snakemake.exceptions import WorkflowError
from snakemake.utils import min_version

from lietransformer.errors import UserError
from lietransformer.sweep import Plan
from lietransformer.sweep.reading import resolve

min_version("9.9")


configfile: "config.yaml"


# Everything is checked here, before any job starts.
try:
    SWEEP = resolve(config, tiers=Path(workflow.basedir, "workflow", "tiers"))
    PLAN = Plan(SWEEP)
except UserError as error:
    raise WorkflowError(str(error)) from None

RESULTS = PLAN.results

# Run folders are no outputs of Snakemake (see train.smk). It learns here that some were removed.
if workflow.is_main_process:
    for summary in PLAN.summaries_without_runs():
        logger.warning(f"Runs of {summary} were removed. They will be trained again.")
        summary.unlink()


include: "workflow/rules/common.smk"


localrules:
    all,


rule all:
    input:
        RESULTS / "report.html",
        RESULTS / "claims.md",
        tracking(*PARTS, "summary"),


include: "workflow/rules/datasets.smk"
include: "workflow/rules/train.smk"
include: "workflow/rules/evaluate.smk"
include: "workflow/rules/tables.smk"
include: "workflow/rules/figures.smk"
include: "workflow/rules/report.smk"
include: "workflow/rules/targets.smk"


onsuccess:
    print(closing_words(PLAN))
