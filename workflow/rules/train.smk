# A job trains the seeds of a pack, on a GPU all at once where it pays. Its output is a summary of
# them; the run folders are not outputs, because Snakemake would remove them before it tries a job
# again, and with them what has been computed. A job that is tried again, in whatever way it ended, goes on.


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
        # What the job may use. `threads` is what it counts among the cores given to Snakemake,
        # which on a cluster are those of the login node.
        cpus_per_task=SWEEP.compute.threads,
        gpu=0 if SWEEP.compute.device == "cpu" else SWEEP.compute.gpus,
    params:
        folder=lambda wildcards: pack_of(wildcards).configuration.folder,
        settings=lambda wildcards: pack_of(wildcards).arguments,
    message:
        "Training {wildcards.model} on {wildcards.task} ({wildcards.variant}), seeds {wildcards.seeds}"
    # exec: a signal reaches the training itself.
    shell:
        f"exec lietransformer train {{params.settings}} --out {{params.folder}}"
        f" --summary {{output}} --threads {{resources.cpus_per_task}} {HOW} >{{log}} 2>&1"
