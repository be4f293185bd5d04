localrules:
    claims,
    report_page,
    track_summary,


rule claims:
    input:
        runs_of(*sum(PARTS.values(), ())),
        PLAN.measurements["invariance"],
        PLAN.measurements["complexity"],
        sweep=RESULTS / "sweep.json",
    output:
        report(CLAIMS[0], caption="../report/claims.rst", category="Claims"),
        CLAIMS[1],
    log:
        RESULTS / "logs/claims.log",
    benchmark:
        RESULTS / "benchmarks/claims.tsv"
    conda:
        ENVIRONMENT
    threads: 1
    resources:
        runtime=10,
        mem_mb=1000,
    params:
        results=RESULTS,
    message:
        "Judging the paper's claims"
    shell:
        "lietransformer claims {params.results} >{log} 2>&1"


rule report_page:
    input:
        expand(RESULTS / "tables/{table}.md", table=TABLES),
        expand(RESULTS / "figures/{figure}.png", figure=FIGURES),
        RESULTS / "claims.json",
        verification("verification.json"),
    output:
        RESULTS / "report.html",
    log:
        RESULTS / "logs/report.log",
    benchmark:
        RESULTS / "benchmarks/report.tsv"
    conda:
        ENVIRONMENT
    threads: 1
    resources:
        runtime=10,
        mem_mb=1000,
    params:
        results=RESULTS,
    message:
        "Writing the report"
    shell:
        "lietransformer report {params.results} >{log} 2>&1"


rule track_summary:
    input:
        RESULTS / "report.html",
        RESULTS / "tracking/store",
    output:
        touch(RESULTS / "tracking/summary"),
    log:
        RESULTS / "logs/tracking/summary.log",
    benchmark:
        RESULTS / "benchmarks/tracking/summary.tsv"
    conda:
        ENVIRONMENT
    threads: 1
    resources:
        runtime=10,
        mem_mb=1000,
    params:
        uri=lambda wildcards: TRACKING,
        results=RESULTS,
    message:
        "Logging tables, figures and verdicts to MLflow"
    shell:
        "lietransformer sync {params.results} --summary --tracking {params.uri:q} >{log} 2>&1"
