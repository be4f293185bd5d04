# What can be asked for by name: a table, a figure, or all of a task.


for name in TABLES:

    rule:
        name:
            name
        input:
            RESULTS / f"tables/{name}.md",
        localrule: True


for name in FIGURES:

    rule:
        name:
            name
        input:
            RESULTS / f"figures/{name}.png",
        localrule: True


for name in PARTS:

    rule:
        name:
            name
        input:
            [
                RESULTS / f"tables/{table}.md"
                for table, parts in TABLES.items()
                if set(parts) <= set(PARTS[name])
            ],
            [
                RESULTS / f"figures/{figure}.png"
                for figure, parts in FIGURES.items()
                if parts and set(parts) <= set(PARTS[name])
            ],
            summaries(*PARTS[name]),
            tracking(name),
        localrule: True
