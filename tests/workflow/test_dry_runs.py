"""What the workflow says before it does anything."""

import re
from pathlib import Path

import pytest

from lietransformer.experiments.registry import FIGURES, TABLES
from lietransformer.layout import MANIFEST
from tests.sweep.archives import publish
from tests.sweep.sweeps import plan
from tests.workflow.workplace import ROOT, Workplace


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Workplace:
    return Workplace.make(tmp_path_factory.mktemp("workflow") / "project")


@pytest.fixture(scope="module")
def archived(tmp_path_factory: pytest.TempPathFactory) -> Workplace:
    """A project with all runs of the workstation's tier published, except for three."""
    place = Workplace.make(tmp_path_factory.mktemp("archived") / "project")
    results = place.path / "results"
    planned = plan("workstation", results)
    names = [run["folder"] for run in planned.manifest()["runs"]]
    missing = [name for name in names if "/fully-connected-hamiltonian/n10-" in name][:2]
    missing += [name for name in names if "/settransformer/none-" in name][1:2]
    publish(results, set(names) - set(missing), [planned.measurements["invariance"].stem])
    return place


def test_published_runs_only(archived: Workplace) -> None:
    assert archived.would_do(tier="workstation") == {
        **{"all": 1, "claims": 1, "dataset": 3, "figure": 12, "manifest": 1, "measure": 2},
        **{"report_page": 1, "table": 3, "track": 3, "track_summary": 1, "tracking_store": 1},
        **{"verify": 1, "verified": 1, "total": 31},
    }


@pytest.mark.slow
def test_what_is_not_published_is_trained(archived: Workplace) -> None:
    trained = archived.would_train("--config", "published=use", tier="workstation")
    springs = "fully-connected-hamiltonian on springs (n10-42d8c3cb), seeds"
    (other,) = trained - {f"{springs} 0", f"{springs} 1"}
    assert re.fullmatch(r"settransformer on constellations \(none-\w+\), seeds 1", other)
    assert len(trained) == 3
    rules = archived.would_do(
        "--config", "published=use", "verification__budget=0", tier="workstation"
    )
    assert (rules["train"], rules["dataset"]) == (3, 2)
    assert "verify" not in rules


def test_everything_is_trained_anew(archived: Workplace) -> None:
    rules = archived.would_do("--config", "published=ignore", tier="workstation")
    assert (rules["train"], rules["dataset"], rules["measure"]) == (139, 3, 3)
    assert not {"verify", "verified"} & rules.keys()


def test_published_runs_are_verified_and_tracked(archived: Workplace) -> None:
    process = archived.snakemake("--dry-run", "--printshellcmds", tier="workstation")
    assert "3 runs of the sweep are not published" in process.stdout + process.stderr
    for words in (
        "lietransformer verify --budget 15m --seed 0 --cores ",
        " --report-only --out results/verification.json >",
        "lietransformer verify --show results/verification.json ",
        "lietransformer sync results/runs/springs results/published/runs/springs --tracking",
        "lietransformer sync results/runs/qm9 results/published/runs/qm9 --tracking",
    ):
        assert words in process.stdout


@pytest.mark.slow
def test_what_make_tables_has_made_is_made_again(archived: Workplace, tmp_path: Path) -> None:
    """From the plan and with the measurements that are not published."""
    place = archived.copy(tmp_path / "project")
    for name in (f"{table}.{kind}" for table in TABLES for kind in ("md", "csv", "tex")):
        _touch(place.path / "results" / "tables" / name)
    for name in FIGURES:
        for ending in ("pdf", "png"):
            _touch(place.path / "results" / "figures" / f"{name}.{ending}")
    for name in ("claims.md", "claims.json", "report.html"):
        _touch(place.path / "results" / name)
    rules = place.would_do(tier="workstation")
    assert rules == archived.would_do(tier="workstation")
    assert place.would_do("figure2", tier="workstation")["measure"] == 1


def _touch(path: Path) -> None:
    path.parent.mkdir(exist_ok=True)
    path.touch()


def test_a_damaged_archive_stops_before_any_job(archived: Workplace, tmp_path: Path) -> None:
    place = archived.copy(tmp_path / "project")
    archive = place.path / "results" / "published"
    run = next(archive.rglob("seed-0"))
    for broken in (run / "result.json", archive / MANIFEST):
        broken.write_text("{")
        process = place.snakemake("--dry-run", tier="workstation")
        assert process.returncode == 1
        assert str(broken.relative_to(place.path)) in process.stderr
        assert "git checkout -- results/published" in process.stderr
        assert "Traceback" not in process.stderr


def test_the_papers_jobs(place: Workplace) -> None:
    assert place.would_do(tier="paper") == {
        **{"all": 1, "claims": 1, "dataset": 3, "figure": 12, "manifest": 1, "measure": 3},
        **{"report_page": 1, "table": 3, "track": 3, "track_summary": 1, "tracking_store": 1},
        **{"train": 622, "total": 652},
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "tasks"),
    [
        ("table1", {"constellations"}),
        ("figure4", {"springs"}),
        ("figure3", set()),
        ("qm9", {"qm9"}),
        ("springs", {"springs"}),
    ],
)
def test_a_part_by_its_name(place: Workplace, target: str, tasks: set[str]) -> None:
    trained = place.would_train(target)
    assert {name.split(" on ")[1].split()[0] for name in trained} == tasks


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("springs__data_efficiency__seds=1", "seds: expected one of models, n_train, seeds"),
        ("compute__device=tpu", "compute.device: input should be 'auto', 'cpu' or 'cuda'"),
        ("qm9__targets=[mass]", "target must be one of alpha"),
        ("published=maybe", "published: input should be 'use', 'only' or 'ignore'"),
        ("verification__budget=soon", "verification.budget: must be a time such as 90s, 15m or 2h"),
    ],
)
def test_a_mistake_in_the_settings_stops_before_any_job(
    place: Workplace, setting: str, message: str
) -> None:
    process = place.snakemake("--dry-run", "--config", setting)
    assert process.returncode == 1
    assert message in process.stdout + process.stderr
    assert "Traceback" not in process.stdout + process.stderr


def test_the_readmes_picture_is_snakemakes_own(archived: Workplace) -> None:
    """The edges between rules that `--rulegraph` has."""
    settings = ("--config", "published=use")
    process = archived.snakemake("--rulegraph", "mermaid-js", *settings, tier="workstation")
    names = dict(re.findall(r"(id\d+)\[(\w+)\]", process.stdout))
    edges = re.findall(r"(id\d+) --> (id\d+)", process.stdout)
    _, _, picture = (ROOT / "README.md").read_text().partition("```mermaid")
    drawn = re.findall(r"^ +([\w &]+) --> ([\w &]+)$", picture.partition("```")[0], re.MULTILINE)
    assert {(names[a], names[b]) for a, b in edges} == {
        (a, b) for left, right in drawn for a in left.split(" & ") for b in right.split(" & ")
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("uri", "words"),
    [
        ("sqlite:///my folder/runs.db", "--tracking 'sqlite:///my folder/runs.db' >"),
        ("http://me:{x}@host/?a=1&b=2", "--tracking 'http://me:{x}@host/?a=1&b=2' --wait >"),
    ],
)
def test_an_address_of_a_store_is_one_word(place: Workplace, uri: str, words: str) -> None:
    process = place.snakemake("qm9", "-n", "--printshellcmds", "--config", f"tracking={uri}")
    assert process.returncode == 0, process.stderr
    assert words in process.stdout


@pytest.mark.parametrize("name", ["data/springs-00000000.h5", "invariance-00000000.json"])
def test_nothing_is_made_under_the_hash_of_other_settings(place: Workplace, name: str) -> None:
    process = place.snakemake(f"results/{name}", "--dry-run")
    assert process.returncode == 1
    assert "MissingRuleException" in process.stdout + process.stderr


def test_a_key_that_is_given_twice(tmp_path: Path) -> None:
    place = Workplace.make(tmp_path / "project")
    with (place.path / "config.yaml").open("a") as file:
        file.write("qm9: {seeds: 1}\nqm9: {n_train: 10}\n")
    process = place.snakemake("--dry-run")
    assert process.returncode == 1
    assert "a key that is given twice" in process.stdout + process.stderr


def test_settings_within_a_mapping(place: Workplace) -> None:
    """Epochs and a null that Snakemake hands over as texts."""
    changes = ("springs__training={epochs: 2, evaluations: 1, patience: null}", "qm9__n_train=null")
    process = place.snakemake("springs", "--dry-run", "--printshellcmds", "--config", *changes)
    assert process.returncode == 0, process.stderr
    for setting in ("epochs=2", "evaluations=1", "patience=null"):
        assert f"--set {setting} " in process.stdout


def test_without_tracking_there_is_no_store(place: Workplace) -> None:
    rules = place.would_do("--config", "tracking=none")
    assert not rules.keys() & {"track", "track_summary"}
    assert rules["train"] == 28


@pytest.mark.slow
@pytest.mark.parametrize("graph", ["--dag", "--rulegraph"])
def test_graphs(place: Workplace, graph: str) -> None:
    process = place.snakemake(graph)
    assert process.returncode == 0
    assert process.stdout.lstrip().startswith("digraph")


def test_a_sweep_of_ones_own(place: Workplace, tmp_path: Path) -> None:
    """A further file of settings wins over config.yaml."""
    own = tmp_path / "own.yaml"
    own.write_text("qm9: {targets: []}\nconstellations: {seeds: 0}\n")
    trained = place.would_train("--configfile", "config.yaml", str(own))
    assert {name.split(" on ")[1].split()[0] for name in trained} == {"springs"}
