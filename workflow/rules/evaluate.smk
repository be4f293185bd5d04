# Synchronise runs with MLflow, and measure what needs no training.


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
        uri=lambda wildcards: TRACKING,  # a function: no braces are filled
    message:
        "Preparing the MLflow store"
    shell:
        "lietransformer sync --tracking {params.uri:q} >{log} 2>&1"


rule track:
    input:
        lambda wildcards: runs_of(*PARTS[wildcards.task]),
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
        uri=lambda wildcards: TRACKING,  # a function: no braces are filled
        folders=lambda wildcards: folders_of(wildcards.task),
    message:
        "Synchronising the runs of {wildcards.task} with MLflow"
    shell:
        "mkdir -p {params.folders} && "
        "lietransformer sync {params.folders} --tracking {params.uri:q} >{log} 2>&1"


# The invariance error (Figure 3), the cost of layers (appendix G) and of training steps, an example
# of lifting (Figure 2).
rule measure:
    output:
        RESULTS / "{measurement}.json",
    log:
        RESULTS / "logs/{measurement}.log",
    benchmark:
        RESULTS / "benchmarks/{measurement}.tsv"
    conda:
        ENVIRONMENT
    # Timings need an idle machine: Snakemake caps `threads` at all cores, so the rule runs alone.
    threads: lambda wildcards: 1000 if command_of(wildcards) == "complexity" else 1
    resources:
        runtime=lambda wildcards, attempt: 60 * attempt,
        mem_mb=lambda wildcards, attempt: 4000 * attempt,
        cpus_per_task=1,
    params:
        command=lambda wildcards: command_of(wildcards),
        settings=lambda wildcards: PLAN.measurement_arguments(command_of(wildcards)),
    message:
        "Measuring {params.command}"
    shell:
        "lietransformer {params.command} {params.settings} --out {output} >{log} 2>&1"
