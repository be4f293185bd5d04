"""Published weights and `load_model`."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

import lietransformer
from lietransformer.archive.checking import check
from lietransformer.archive.weights import HEADLINES
from lietransformer.errors import UserError
from lietransformer.experiments.registry import get_preset
from lietransformer.layout import MANIFEST, sha256
from lietransformer.training.run_folder import RunFolder
from tests.archive.conftest import Project, edit

NAME = "constellations/SetTransformer"


def test_a_published_model_has_the_best_weights_of_its_run(published: Project) -> None:
    model = lietransformer.load_model(NAME)
    assert not model.training
    expected = RunFolder(published.run("settransformer")).weights("best")
    state = model.state_dict()
    assert state.keys() == expected.keys()
    assert all(torch.equal(state[key], expected[key]) for key in expected)


@pytest.mark.parametrize("weights", ["best", "final"])
def test_a_run_folder_is_loaded(project: Project, weights: str) -> None:
    folder = project.run("lietransformer")
    model = lietransformer.load_model(folder, weights=weights)
    expected = RunFolder(folder).weights(weights)
    assert all(torch.equal(model.state_dict()[key], expected[key]) for key in expected)


def test_the_archive_is_found_from_elsewhere(
    published: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = published.root / published.archive.path
    monkeypatch.chdir(tmp_path)
    assert lietransformer.load_model(NAME, archive=archive) is not None
    with pytest.raises(UserError, match="No archive"):
        lietransformer.load_model(NAME, archive=tmp_path)


@pytest.mark.usefixtures("published")
def test_an_unknown_name_is_answered_with_those_that_exist() -> None:
    with pytest.raises(UserError, match=rf"neither a run folder .*: {NAME}\."):
        lietransformer.load_model("springs/LieTransformer-T2/n7")
    with pytest.raises(UserError, match="its best weights only"):
        lietransformer.load_model(NAME, weights="final")


def test_every_headline_is_a_model_of_the_paper() -> None:
    for name in HEADLINES:
        task, model = name.split("/")[:2]
        assert get_preset(task, model)


def test_the_model_card_says_how_to_use_it_and_how_good_it_is(published: Project) -> None:
    entry = published.archive.manifest["weights"][NAME]
    card = (published.archive.path / entry["card"]).read_text()
    result = RunFolder(published.run("settransformer")).result()
    assert f'load_model("{NAME}")' in card
    accuracy = result["test"]["best"]["test"]["accuracy"]
    assert f"| test | accuracy | {accuracy:.4g} |" in card
    assert result["git_commit"][:10] in card


def test_a_published_run_is_loaded_with_its_published_weights(published: Project) -> None:
    entry = published.archive.manifest["weights"][NAME]
    for name in (f"{NAME}/", published.archive.path / entry["run"]):
        assert lietransformer.load_model(name) is not None
    other = next(published.archive.path.glob("runs/springs/lieconv*/*/seed-0"))
    with pytest.raises(UserError, match=rf"neither a run folder with weights .*: {NAME}\."):
        lietransformer.load_model(other)


# ---- damage


@pytest.mark.parametrize("content", [[1], {"best": 3}, {"best": {"a": 3}}])
def test_a_file_without_weights_is_an_error(project: Project, content: object) -> None:
    folder = project.run("settransformer")
    (folder / "model.pt").unlink()  # it is shared
    torch.save(content, folder / "model.pt")
    with pytest.raises(UserError, match="does not hold sets of weights"):
        lietransformer.load_model(folder)


def test_no_name_and_weights_that_the_manifest_lost_are_errors(published: Project) -> None:
    with pytest.raises((UserError, TypeError), match="name"):  # tests check types, users may not
        lietransformer.load_model(None)  # type: ignore[arg-type]
    files = {k: v for k, v in published.archive.files.items() if not k.startswith("weights/")}
    edit(published.archive.path / MANIFEST, files=files)
    with pytest.raises(UserError, match="missing or damaged"):
        lietransformer.load_model(NAME)
    assert any("is not in the manifest" in problem for problem in check(published.archive))


def _weights_file(project: Project) -> Path:
    return project.archive.path / project.archive.manifest["weights"][NAME]["file"]


def _accept(project: Project) -> None:
    """Make the manifest one that knows the file as it is now."""
    file = project.archive.path / MANIFEST
    manifest = json.loads(file.read_text())
    path = _weights_file(project)
    name = path.relative_to(project.archive.path).as_posix()
    manifest["files"][name] = {"bytes": path.stat().st_size, "sha256": sha256(path)}
    file.write_text(json.dumps(manifest))


def test_a_damaged_file_is_an_error(published: Project) -> None:
    path = _weights_file(published)
    content = path.read_bytes()
    path.write_bytes(content[:-1])
    with pytest.raises(UserError, match="missing or damaged"):
        lietransformer.load_model(NAME)
    path.write_bytes(content[:100])
    _accept(published)
    with pytest.raises(UserError, match="cannot be read as safetensors"):
        lietransformer.load_model(NAME)
    path.unlink()
    with pytest.raises(UserError, match="missing or damaged"):
        lietransformer.load_model(NAME)


@pytest.mark.parametrize("what", ["shape", "missing", "more"])
def test_weights_of_another_model_are_an_error(published: Project, what: str) -> None:
    path = _weights_file(published)
    from safetensors import safe_open  # noqa: PLC0415

    with safe_open(path, framework="pt") as file:
        metadata = file.metadata()
    state = load_file(path)
    key = next(iter(state))
    if what == "shape":
        state[key] = torch.zeros(3, 5)
    elif what == "missing":
        del state[key]
    else:
        key = "other"
        state[key] = torch.zeros(1)
    save_file(state, path, metadata)
    _accept(published)
    with pytest.raises(UserError, match=rf"do not fit {NAME}: {key}"):
        lietransformer.load_model(NAME)
    assert any("do not fit" in problem for problem in check(published.archive))
