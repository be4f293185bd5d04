# Compare the datasets with the published hashes, then retrain a sample of the published runs.


localrules:
    verified,


rule verify:
    input:
        [ancient(data.path) for data in PLAN.datasets.values()],
        PLAN.archive.path / MANIFEST,
    output:
        RESULTS / "verification.json",
    log:
        RESULTS / "logs/verification.log",
    benchmark:
        RESULTS / "benchmarks/verification.tsv"
    conda:
        ENVIRONMENT
    # All cores: one run per core.
    threads: 1000
    resources:
        runtime=lambda wildcards, attempt: (30 + int(SWEEP.verification.seconds / 60))
        * attempt,
        mem_mb=lambda wildcards, attempt: 8000 * attempt,
        cpus_per_task=lambda wildcards, threads: threads,
    params:
        budget=SWEEP.verification.budget,
        seed=SWEEP.verification.seed,
    message:
        "Verifying published runs, for {params.budget}"
    # A mismatch is shown in the report, and fails `verified`. exec, so that signals reach the process.
    shell:
        "exec lietransformer verify --budget {params.budget} --seed {params.seed} --cores {threads}"
        " --report-only --out {output} >{log} 2>&1"


rule verified:
    input:
        RESULTS / "report.html",
        tracking("summary"),
        verification=RESULTS / "verification.json",
    output:
        touch(RESULTS / "verified"),
    log:
        RESULTS / "logs/verified.log",
    benchmark:
        RESULTS / "benchmarks/verified.tsv"
    conda:
        ENVIRONMENT
    threads: 1
    resources:
        runtime=10,
        mem_mb=1000,
    message:
        "Published runs beside the retrained ones"
    shell:
        "lietransformer verify --show {input.verification} 2>&1 | tee {log}"
