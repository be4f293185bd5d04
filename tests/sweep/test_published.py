"""A sweep of which some runs are published."""

import json
from pathlib import Path
from typing import Any

import pytest

from lietransformer.errors import UserError
from lietransformer.layout import MANIFEST
from lietransformer.sweep import Plan
from tests.sweep.archives import publish
from tests.sweep.sweeps import plan

# Seeds 0 to 4 of every QM9 model, in jobs of two.
QM9: dict[str, Any] = {"qm9__seeds": 5, "compute__seeds_per_job": 2}


def names(of: Plan, model: str) -> list[str]:
    return [run["folder"] for run in of.manifest()["runs"] if run["model"] == model]


def jobs(of: Plan, model: str = "SchNet") -> list[tuple[int, ...]]:
    packs = of.packs.values()
    return [pack.seeds for pack in packs if pack.configuration.settings["model"] == model]


@pytest.fixture
def archived(tmp_path: Path) -> Path:
    """Results with seeds 1, 2 and 3 of SchNet, and all of DimeNet++, in their archive."""
    before = plan(results=tmp_path, **QM9)
    publish(tmp_path, [*names(before, "SchNet")[1:4], *names(before, "DimeNet++")])
    return tmp_path


def test_runs_that_are_published_are_not_trained(archived: Path) -> None:
    used = plan(results=archived, **QM9)
    assert jobs(used) == [(0,), (4,)]
    assert jobs(used, "DimeNet++") == []
    assert jobs(used, "LieConv-T3") == [(0, 1), (2, 3), (4,)]
    assert {pack.summary.name for pack in used.packs_for("qm9")} >= {"seeds-0.json", "seeds-4.json"}
    assert "DimeNet++" not in {each.settings["model"] for each in used.trained}


def test_only_published_runs(archived: Path) -> None:
    only = plan(results=archived, published="only", **QM9)
    assert not only.packs
    assert not only.trained
    assert not only.needed_datasets
    assert only.left_out == len(only.manifest()["runs"]) - 8
    assert not plan(results=archived, **QM9).left_out


def test_published_runs_can_be_ignored(archived: Path) -> None:
    anew = plan(results=archived, published="ignore", **QM9)
    assert jobs(anew) == [(0, 1), (2, 3), (4,)]
    assert len(anew.packs) == len(plan(**QM9).packs)


@pytest.mark.parametrize("published", ["use", "only", "ignore"])
def test_the_manifest_says_where_runs_are(archived: Path, published: str) -> None:
    manifest = plan(results=archived, published=published, **QM9).manifest()
    assert (manifest["schema_version"], manifest["published"]) == (3, published)
    assert not {"published", "verification", "compute"} & manifest["config"].keys()
    runs = [run for run in manifest["runs"] if run["model"] == "SchNet"]
    used = set() if published == "ignore" else {1, 2, 3}
    for run in runs:
        is_used = run["seed"] in used
        assert run["source"] == ("published" if is_used else "local")
        assert run["folder"].startswith("published/runs/qm9" if is_used else "runs/qm9/schnet")
    assert ("published_runs" in manifest) == (published == "ignore")
    if published == "ignore":
        others = manifest["published_runs"]
        assert len(others) == 3 + 5
        assert all((archived / run["folder"] / "result.json").exists() for run in others)
        assert others[0].keys() == runs[0].keys()
    assert json.loads(json.dumps(manifest)) == manifest


def test_parts_with_published_runs(archived: Path) -> None:
    some = plan(results=archived, **QM9)
    assert some.has_published("qm9")
    assert not some.has_published("constellations", "data_efficiency")


def test_measurements_of_the_archive(tmp_path: Path) -> None:
    stem = plan(results=tmp_path).measurements["invariance"].stem
    archive = publish(tmp_path, [], [stem])
    used = plan(results=tmp_path)
    assert used.measurements["invariance"] == archive / "measurements" / f"{stem}.json"
    assert not used.measures("invariance")
    assert used.measures("complexity")
    measured = used.manifest()["measurements"]
    assert measured["invariance"] == f"published/measurements/{stem}.json"
    anew = plan(results=tmp_path, published="ignore")
    assert anew.measurements["invariance"] == tmp_path / f"{stem}.json"
    assert plan(results=tmp_path, invariance__runs=3).measures("invariance")


def test_what_is_verified(archived: Path, tmp_path: Path) -> None:
    some = {"verification__budget": "1m", "published": "only"}
    verified = plan(results=archived, **QM9, **some)
    assert verified.verifies
    assert {data.kind for data in verified.needed_datasets} == {"constellations", "springs", "qm9"}
    assert not plan(results=archived, **QM9).verifies
    assert not plan(results=archived, **QM9, **some | {"published": "ignore"}).verifies
    assert not plan(results=tmp_path / "without", **QM9, **some).verifies


def test_an_archive_that_is_damaged(archived: Path) -> None:
    whole = plan(results=archived, **QM9)
    whole.require_intact_archive()
    run = archived / "published" / names(whole, "DimeNet++")[0].removeprefix("published/")
    (run / "result.json").write_text("{")
    with pytest.raises(UserError, match=r"seed-0/result\.json has 1 bytes instead of"):
        whole.require_intact_archive()
    plan(results=archived, published="ignore", **QM9).require_intact_archive()
    (archived / "published" / MANIFEST).write_text("{")
    with pytest.raises(UserError, match=r"git checkout"):
        plan(results=archived, **QM9)


def test_the_workstations_runs_are_the_papers() -> None:
    """The same folders, with the hash of settings and data, wherever both tiers have a run."""
    tiers = [plan(tier).manifest()["runs"] for tier in ("workstation", "paper")]
    own, paper = ({run["folder"] for run in runs} for runs in tiers)
    assert len(own) == 3 * (20 + 4 + 2 + 9 + 8) + 10
    reduced = ("/n100-", "/homo-", "small/n10")  # Figures 7, 8: the paper has n = 3000
    assert all(any(name in folder for name in reduced) for folder in own - paper)
    assert len(own & paper) == 3 * (20 + 9)
    assert "runs/springs/fully-connected-hamiltonian/n10-42d8c3cb/seed-0" in own
    assert "runs/constellations/lietransformer-t2/none-592e83b6/seed-0" in own
