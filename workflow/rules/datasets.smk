rule dataset:
    output:
        RESULTS / "data/{task}-{digest}.h5",
    log:
        RESULTS / "logs/data/{task}-{digest}.log",
    benchmark:
        RESULTS / "benchmarks/data/{task}-{digest}.tsv"
    conda:
        ENVIRONMENT
    threads: 1
    resources:
        runtime=lambda wildcards, attempt: 30 * attempt,
        mem_mb=lambda wildcards, attempt: 2000 * attempt,
        cpus_per_task=1,
    params:
        settings=lambda wildcards: PLAN.datasets[wildcards.task].arguments,
    message:
        "Generating the dataset {wildcards.task}"
    shell:
        "lietransformer data {wildcards.task} {params.settings} --out {output} >{log} 2>&1"
