localrules:
    figure,


rule figure:
    input:
        lambda wildcards: runs_of(*FIGURES[wildcards.figure].parts),
        lambda wildcards: measured_for(wildcards.figure),
        sweep=RESULTS / "sweep.json",
    output:
        pdf=RESULTS / "figures/{figure}.pdf",
        png=report(
            RESULTS / "figures/{figure}.png",
            caption="../report/figures.rst",
            category="Figures",
            labels={"figure": "{figure}"},
        ),
    log:
        RESULTS / "logs/figures/{figure}.log",
    benchmark:
        RESULTS / "benchmarks/figures/{figure}.tsv"
    conda:
        ENVIRONMENT
    threads: 1
    resources:
        runtime=10,
        mem_mb=2000,
    params:
        results=RESULTS,
    message:
        "Drawing {wildcards.figure}"
    shell:
        "lietransformer figures {params.results} --only {wildcards.figure} >{log} 2>&1"
