rule dataset:
    output:
        RESULTS / "data/{dataset}.h5",
    log:
        RESULTS / "logs/data/{dataset}.log",
    benchmark:
        RESULTS / "benchmarks/data/{dataset}.tsv"
    conda:
        ENVIRONMENT
    threads: 1
    resources:
        runtime=lambda wildcards, attempt: 30 * attempt,
        mem_mb=lambda wildcards, attempt: 2000 * attempt,
        cpus_per_task=1,
    params:
        kind=lambda wildcards: kind_of(wildcards),
        settings=lambda wildcards: PLAN.datasets[kind_of(wildcards)].arguments,
    message:
        "Generating the dataset {wildcards.dataset}"
    shell:
        "lietransformer data {params.kind} {params.settings} --out {output} >{log} 2>&1"
