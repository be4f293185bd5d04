"""The plan of a sweep: which runs, named by what, in which jobs."""

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import pytest

from lietransformer.experiments.registry import PartName, TaskName, plan_of, presets
from lietransformer.sweep import Plan
from lietransformer.sweep.jobs import slug
from lietransformer.training.config import read_runs
from tests.sweep.sweeps import NO_ARCHIVE, ROOT, plan


def test_the_papers_runs() -> None:
    """Table 1: 3 × 3 × 8; Figure 4: 4 × 10 × 10; Figures 7, 8: 6 × 5; two ablations with what
    they are compared with: 4 × 5; Table 2: 4 × 12 × 2, and 2 × 12 without augmentation."""
    runs = plan("paper").manifest()["runs"]
    counts = {part: sum(part in run["parts"] for run in runs) for part in get_args(PartName)}
    assert counts == {
        "constellations": 72,
        "data_efficiency": 400,
        "parameter_efficiency": 30,
        "ablations": 20,
        "draws": 0,
        "qm9": 120,
    }
    # The 842k and the 895k at n = 3000 are in both springs figures, and trained once; what the
    # ablations are compared with is in Figure 7.
    assert len(runs) == 72 + 400 + (30 - 10) + (20 - 10) + 120
    assert len({run["folder"] for run in runs}) == len(runs)


def test_the_papers_settings_are_those_of_train() -> None:
    """The paper's tier changes nothing that `lietransformer train` does by itself."""
    for each in plan("paper").configurations:
        known = {"task", "model", "n_train", "target", "augmentation", "data", "precision"}
        if each.ablation is not None:
            known.add("architecture")
        assert each.settings.keys() <= known
    assert all(not data.settings for data in plan("paper").datasets.values())


def test_a_plan_names_the_models_that_exist() -> None:
    """The plans list them, so that planning needs no torch."""
    listed = {(task, name) for task in get_args(TaskName) for name in plan_of(task).MODELS}
    assert listed == {(preset.task, preset.model) for preset in presets()}


def test_planning_and_parsing_need_no_torch() -> None:
    code = (
        "import sys; sys.modules['torch'] = None; from pathlib import Path;"
        "from lietransformer.cli import _parser; from lietransformer.sweep import Plan;"
        "from lietransformer.sweep.reading import resolve; _parser();"
        "plan = Plan(resolve({'tier': 'paper'}, Path('workflow/tiers')));"
        "plan.packs; plan.manifest(); plan.require_intact_archive()"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()


def test_smoke_has_every_model() -> None:
    planned = {(each.task, each.settings["model"]) for each in plan("smoke").configurations}
    assert planned == {(preset.task, preset.model) for preset in presets()}


def test_arguments_say_what_is_planned(tmp_path: Path) -> None:
    for pack in plan("smoke").packs.values():
        words = shlex.split(pack.arguments)
        assert set(words[::2]) == {"--set"}
        runs, _ = read_runs(None, [*words[1::2], f"data={tmp_path}"])
        assert tuple(run.seed for run in runs) == pack.seeds
        assert runs[0].model == pack.configuration.settings["model"]
        assert runs[0].epochs == pack.configuration.settings["epochs"]


def summaries(of: Plan) -> set[Path]:
    return set(of.packs)


def test_adding_a_seed_adds_a_job_and_changes_no_other() -> None:
    before = summaries(plan(qm9__seeds=1, compute__seeds_per_job=1))
    after = summaries(plan(qm9__seeds=2, compute__seeds_per_job=1))
    assert before < after
    assert {path.name for path in after - before} == {"seeds-1.json"}


def test_packs_stay_as_they_are_when_seeds_are_added() -> None:
    before = summaries(plan(qm9__seeds=4, compute__seeds_per_job=2))
    after = summaries(plan(qm9__seeds=5, compute__seeds_per_job=2))
    assert before < after
    assert {path.name for path in after - before} == {"seeds-4.json"}


def test_names_of_packs() -> None:
    names = {
        p.name for p in summaries(plan(qm9__seeds=[0, 1, 2, 5, 7, 9], compute__seeds_per_job=4))
    }
    assert {"seeds-0-2.json", "seeds-5_7.json", "seeds-9.json"} <= names


@pytest.mark.parametrize(
    ("change", "affected"),
    [
        ({"springs__training": {"learning_rate": 0.01}}, {"springs"}),
        ({"springs__data": {"systems": 121}}, {"springs"}),
        ({"qm9__by_model": {"LieConv-T3": {"epochs": 2}}}, {"qm9/lieconv-t3"}),
        ({"compute__precision": "float64"}, {"constellations", "springs", "qm9"}),
        ({"compute__checkpoint_every": 5, "compute__device": "cpu"}, set()),
        ({"compute__threads": 2, "tracking": "none"}, set()),
        ({"compute__seeds_at_once": True}, set()),
    ],
)
def test_a_setting_renames_what_depends_on_it(change: dict[str, Any], affected: set[str]) -> None:
    before, after = plan(), plan(**change)
    changed = summaries(after) - summaries(before)
    assert len(changed) == len(summaries(before) - summaries(after))
    for path in summaries(after):
        parts = path.relative_to(NO_ARCHIVE / "runs").parts
        depends = bool({parts[0], "/".join(parts[:2])} & affected)
        assert depends == (path in changed)


def test_parts_share_runs() -> None:
    shared = plan(
        springs__data_efficiency__seeds=3,
        springs__parameter_efficiency__seeds=[1, 5],
        compute__seeds_per_job=1,
    )
    by_seed = {
        run["seed"]: run["parts"]
        for run in shared.manifest()["runs"]
        if run["model"] == "LieConv-T2"
    }
    assert by_seed == {
        0: ["data_efficiency"],
        1: ["data_efficiency", "parameter_efficiency"],
        2: ["data_efficiency"],
        5: ["parameter_efficiency"],
    }
    needed = [pack.seeds[0] for pack in shared.packs_for("parameter_efficiency")]
    assert set(needed) == {1, 5}


def test_ablations_have_runs_to_be_compared_with() -> None:
    runs = [run for run in plan().manifest()["runs"] if "ablations" in run["parts"]]
    assert {(run["model"], run["ablation"]) for run in runs} == {
        ("LieTransformer-T2", None),
        ("LieTransformer-T2", "softmax"),
        ("LieTransformer-SE2 small", None),
        ("LieTransformer-SE2 small", "log_lift"),
    }
    folders = {run["ablation"]: run["folder"] for run in runs}
    assert "softmax" in folders["softmax"]
    assert "log-lift" in folders["log_lift"]


def test_without_seeds_there_are_no_runs() -> None:
    assert not plan(qm9__seeds=0).packs_for("qm9")


def test_the_manifest_is_json() -> None:
    manifest = plan().manifest()
    assert json.loads(json.dumps(manifest)) == manifest
    assert manifest["tier"] == "smoke"


def test_slugs_tell_models_apart() -> None:
    names = [(preset.task, slug(preset.model)) for preset in presets()]
    assert len(set(names)) == len(names)
    assert slug("Fully-connected (Hamiltonian)") == "fully-connected-hamiltonian"
    assert slug("DimeNet++") == "dimenet++"
