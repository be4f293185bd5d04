# A run tests itself at its end. What is measured beside that, and the view on all runs:


localrules:
    tracking_store,
    track,


rule tracking_store:
    output:
        touch(RESULTS / "tracking/store"),
    log:
        RESULTS / "logs/tracking/store.log",
    benchmark:
        RESULTS / "benchmarks/tracking/store.tsv"
    conda:
        ENVIRONMENT
    threads: 1
    resources:
        runtime=10,
        mem_mb=1000,
    params:
        uri=TRACKING,
    message:
        "Preparing the MLflow store"
    shell:
        "lietransformer sync --tracking {params.uri} >{log} 2>&1"


rule track:
    input:
        lambda wildcards: summaries(*PARTS[wildcards.task]),
        RESULTS / "tracking/store",
    output:
        touch(RESULTS / "tracking/{task}"),
    log:
        RESULTS / "logs/tracking/{task}.log",
    benchmark:
        RESULTS / "benchmarks/tracking/{task}.tsv"
    conda:
        ENVIRONMENT
    threads: 1
    resources:
        runtime=60,
        mem_mb=1000,
    params:
        uri=TRACKING,
        folder=lambda wildcards: RESULTS / "runs" / wildcards.task,
    message:
        "Bringing the runs of {wildcards.task} into MLflow"
    shell:
        "mkdir -p {params.folder} && "
        "lietransformer sync {params.folder} --tracking {params.uri} >{log} 2>&1"


# What is computed without training: the invariance error (Figure 3), the cost of the layers
# (appendix G), an example of lifting (Figure 2).
rule measure:
    output:
        RESULTS / "{measurement}-{digest}.json",
    log:
        RESULTS / "logs/{measurement}-{digest}.log",
    benchmark:
        RESULTS / "benchmarks/{measurement}-{digest}.tsv"
    conda:
        ENVIRONMENT
    # Jobs beside it would disturb the times that it takes: on one machine it runs alone.
    threads: lambda wildcards: workflow.cores if wildcards.measurement == "complexity" else 1
    resources:
        runtime=lambda wildcards, attempt: 60 * attempt,
        mem_mb=lambda wildcards, attempt: 4000 * attempt,
        cpus_per_task=1,
    params:
        settings=lambda wildcards: PLAN.measurement_arguments(wildcards.measurement),
    message:
        "Measuring {wildcards.measurement}"
    shell:
        "lietransformer {wildcards.measurement} {params.settings} --out {output} >{log} 2>&1"
