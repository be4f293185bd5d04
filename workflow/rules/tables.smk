localrules:
    manifest,
    table,


# The runs of the sweep as configured now; results/ also keeps those of earlier configurations.
rule manifest:
    output:
        RESULTS / "sweep.json",
    log:
        RESULTS / "logs/manifest.log",
    benchmark:
        RESULTS / "benchmarks/manifest.tsv"
    threads: 1
    resources:
        runtime=10,
        mem_mb=1000,
    params:
        content=PLAN.manifest(),
    message:
        "Listing the runs of the sweep"
    run:
        from lietransformer.training.run_folder import write_json

        write_json(Path(output[0]), params.content)


rule table:
    input:
        lambda wildcards: runs_of(*TABLES[wildcards.table].parts),
        sweep=RESULTS / "sweep.json",
    output:
        markdown=report(
            RESULTS / "tables/{table}.md",
            caption="../report/tables.rst",
            category="Tables",
            labels={"table": "{table}", "format": "Markdown"},
        ),
        csv=report(
            RESULTS / "tables/{table}.csv",
            caption="../report/tables.rst",
            category="Tables",
            labels={"table": "{table}", "format": "CSV"},
        ),
        tex=RESULTS / "tables/{table}.tex",
    log:
        RESULTS / "logs/tables/{table}.log",
    benchmark:
        RESULTS / "benchmarks/tables/{table}.tsv"
    conda:
        ENVIRONMENT
    threads: 1
    resources:
        runtime=10,
        mem_mb=1000,
    params:
        results=RESULTS,
    message:
        "Making {wildcards.table}"
    shell:
        "lietransformer tables {params.results} --only {wildcards.table} >{log} 2>&1"
