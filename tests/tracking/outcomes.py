"""A results folder with a small outcome, for the tests of summaries."""

from pathlib import Path

from lietransformer.report.claims import decide_all
from lietransformer.report.claims.documents import write_claims
from lietransformer.report.figures import write_figures
from lietransformer.report.report import write_report
from lietransformer.report.runs import read_sweep
from lietransformer.report.tables import write_tables
from tests.report.synthetic import Results, accuracies

STATUSES = ("finished", "finished", "diverged", "missing")


def make_outcome(results: Path, *, accuracy: float = 0.7) -> Path:
    """Runs of one model, and what is made from them: the same files for the same accuracy."""
    runs = Results(results, tier="workstation")
    for seed, status in enumerate(STATUSES):
        runs.add(
            ["constellations"],
            "constellations",
            "LieTransformer-T2",
            augmentation="none",
            seed=seed,
            status=status,
            test=accuracies(accuracy, accuracy, accuracy),
        )
    runs.write()
    sweep = read_sweep(results)
    list(write_tables(sweep, ["table1"], results / "tables"))
    list(write_figures(sweep, ["figure4"], results / "figures"))
    write_claims(sweep, decide_all(sweep), results)
    write_report(sweep, results / "report.html")
    return results
