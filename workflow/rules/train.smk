# A job trains a pack of seeds; on a GPU, all at once where that is faster. Its output is their summary.
# The run folders are not outputs: Snakemake would delete them, checkpoints included, before a retry.
# However a job ended, its retry resumes from the checkpoints.


rule train:
    input:
        data=lambda wildcards: ancient(pack_of(wildcards).configuration.data.path),
        store=ancient(RESULTS / "tracking/store"),
    output:
        RESULTS / "runs/{task}/{model}/{variant}/seeds-{seeds}.json",
    log:
        RESULTS / "logs/runs/{task}/{model}/{variant}/seeds-{seeds}.log",
    benchmark:
        RESULTS / "benchmarks/runs/{task}/{model}/{variant}/seeds-{seeds}.tsv"
    conda:
        ENVIRONMENT
    threads: SWEEP.compute.threads
    resources:
        runtime=lambda wildcards, attempt: SWEEP.compute.limits[wildcards.task].runtime
        * attempt,
        mem_mb=lambda wildcards, attempt: SWEEP.compute.limits[wildcards.task].memory
        * attempt,
        # The job's allocation. `threads` is capped by --cores, on a cluster those of the login node.
        cpus_per_task=SWEEP.compute.threads,
        gpu=0 if SWEEP.compute.device == "cpu" else SWEEP.compute.gpus,
    params:
        folder=lambda wildcards: pack_of(wildcards).configuration.folder,
        settings=lambda wildcards: pack_of(wildcards).arguments,
    message:
        "Training {wildcards.model} on {wildcards.task} ({wildcards.variant}), seeds {wildcards.seeds}"
    # exec, so that signals reach the training process.
    shell:
        f"exec lietransformer train {{params.settings}} --out {{params.folder}}"
        f" --summary {{output}} --threads {{resources.cpus_per_task}} {HOW} >{{log}} 2>&1"
