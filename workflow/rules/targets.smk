# What can be asked for by name: a table, a figure, or all of a task.


for name in TABLES:

    rule:
        name:
            name
        input:
            RESULTS / "sweep.json",
            files_of_table(name),
            runs_of(*TABLES[name]),
        localrule: True
        message:
            "All of {rule} is there"


for name in FIGURES:

    rule:
        name:
            name
        input:
            RESULTS / "sweep.json",
            files_of_figure(name),
            measured_for(name),
            runs_of(*FIGURES[name]),
        localrule: True
        message:
            "All of {rule} is there"


for name in PARTS:

    rule:
        name:
            name
        input:
            RESULTS / "sweep.json",
            [
                files_of_table(table)
                for table, parts in TABLES.items()
                if set(parts) <= set(PARTS[name])
            ],
            [
                files_of_figure(figure)
                for figure, parts in FIGURES.items()
                if parts and set(parts) <= set(PARTS[name])
            ],
            runs_of(*PARTS[name]),
            tracking(name),
        localrule: True
        message:
            "All of {rule} is there"
