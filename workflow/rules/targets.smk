# Targets: a table, a figure, or everything of a task.


for name in TABLES:

    rule:
        name:
            name
        input:
            RESULTS / "sweep.json",
            files_of_table(name),
            runs_of(*TABLES[name].parts),
        localrule: True
        message:
            "Target {rule} is complete"


for name in FIGURES:

    rule:
        name:
            name
        input:
            RESULTS / "sweep.json",
            files_of_figure(name),
            measured_for(name),
            runs_of(*FIGURES[name].parts),
        localrule: True
        message:
            "Target {rule} is complete"


for name in PARTS:

    rule:
        name:
            name
        input:
            RESULTS / "sweep.json",
            [
                files_of_table(table)
                for table, entry in TABLES.items()
                if set(entry.parts) <= set(PARTS[name])
            ],
            [
                files_of_figure(figure)
                for figure, entry in FIGURES.items()
                if entry.parts and set(entry.parts) <= set(PARTS[name])
            ],
            runs_of(*PARTS[name]),
            tracking(name),
        localrule: True
        message:
            "Target {rule} is complete"
