"""What the workflow says before it does anything."""

import re
from pathlib import Path

import pytest

from tests.workflow.workplace import ROOT, Workplace


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Workplace:
    return Workplace.make(tmp_path_factory.mktemp("workflow") / "project")


def test_the_papers_jobs(place: Workplace) -> None:
    assert place.would_do(tier="paper") == {
        **{"all": 1, "claims": 1, "dataset": 3, "figure": 12, "manifest": 1, "measure": 3},
        **{"report_page": 1, "table": 2, "track": 3, "track_summary": 1, "tracking_store": 1},
        **{"train": 598, "total": 627},
    }


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
    ],
)
def test_a_mistake_in_the_settings_stops_before_any_job(
    place: Workplace, setting: str, message: str
) -> None:
    process = place.snakemake("--dry-run", "--config", setting)
    assert process.returncode == 1
    assert message in process.stdout + process.stderr
    assert "Traceback" not in process.stdout + process.stderr


def test_the_readmes_picture_is_snakemakes_own(place: Workplace) -> None:
    """The edges between rules that `--rulegraph` has."""
    process = place.snakemake("--rulegraph", "mermaid-js")
    names = dict(re.findall(r"(id\d+)\[(\w+)\]", process.stdout))
    edges = re.findall(r"(id\d+) --> (id\d+)", process.stdout)
    _, _, picture = (ROOT / "README.md").read_text().partition("```mermaid")
    drawn = re.findall(r"^ +([\w &]+) --> ([\w &]+)$", picture.partition("```")[0], re.MULTILINE)
    assert {(names[a], names[b]) for a, b in edges} == {
        (a, b) for left, right in drawn for a in left.split(" & ") for b in right.split(" & ")
    }


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
    assert rules["train"] == 26


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
