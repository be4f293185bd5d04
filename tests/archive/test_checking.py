"""An archive whose files have the right hashes, but do not belong together."""

import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from lietransformer import cli
from lietransformer.archive.checking import check
from lietransformer.archive.publish import publish
from lietransformer.errors import UserError
from lietransformer.experiments.springs.paths import read_paths, write_paths
from lietransformer.layout import MANIFEST, README
from tests.archive.conftest import COMMIT, Project, edit, renew

MODELS = ("LieTransformer-T2", "LieConv-T2")


def _evaluation(project: Project, model: str) -> Path:
    return next(project.archive.path.glob(f"runs/springs/{model}/*/seed-0/evaluation.h5"))


def _swap_evaluations(project: Project) -> None:
    one, two = (_evaluation(project, model) for model in ("lieconv-t2", "lietransformer-t2"))
    content = one.read_bytes()
    one.write_bytes(two.read_bytes())
    two.write_bytes(content)


def _rewrite_paths(project: Project, rows: int = 1, transformer: str | None = None) -> None:
    """The paths of seed 0, of other runs or with other shapes."""
    file, own = _paths(project)
    kept = read_paths(file, own)
    truth = np.stack([path.truth for path in kept.values() if path.truth is not None])
    predicted = {m: np.stack([path.predicted[m] for path in kept.values()]) for m in MODELS}
    file.unlink()
    drawn = np.array([*kept])
    runs = {**own, MODELS[0]: transformer or own[MODELS[0]]}
    write_paths(file, runs, 0, truth[: rows * len(drawn)], predicted, drawn)


def _paths(project: Project) -> tuple[Path, dict[str, str]]:
    own = {
        run["model"]: name
        for name, run in project.archive.runs.items()
        if run["model"] in MODELS and run["seed"] == 0
    }
    return project.archive.path / "trajectories" / "n10-seed-0.h5", own


def _label(project: Project, label: str, value: object) -> None:
    runs = project.archive.runs
    changed = {**runs[min(runs)], label: value}
    edit(project.archive.path / MANIFEST, runs={**runs, min(runs): changed})


def _forget(project: Project) -> None:
    runs = project.archive.runs
    edit(project.archive.path / MANIFEST, runs={k: v for k, v in runs.items() if k != min(runs)})


def _add_measurement(project: Project, name: str, **content: object) -> None:
    file = project.archive.path / "measurements" / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(content))
    files = {**project.archive.files, f"measurements/{name}": {"bytes": 0, "sha256": ""}}
    edit(project.archive.path / MANIFEST, files=files)


LABELS = {
    **{"task": "qm9", "model": "LieConv-T3", "seed": 9, "n_train": 7, "draw": 3},
    **{"status": "diverged", "core_hours": 900.0, "machine": {"processor": "X", "torch": "1"}},
}
UNFIT: dict[str, tuple[Callable[[Project], object], str]] = {
    **{
        f"other {label}": (
            partial(_label, label=label, value=value),
            rf"its .*{label}.* is not that of the manifest",
        )
        for label, value in LABELS.items()
    },
    "a lost entry": (_forget, "belongs to no published run"),
    "swapped evaluations": (_swap_evaluations, "a run with other settings"),
    "no evaluation": (lambda own: _evaluation(own, "lieconv-t2").unlink(), "all of its tests"),
    "paths of another run": (
        lambda own: _rewrite_paths(own, transformer="runs/a/seed-0"),
        "not those of its name",
    ),
    "fewer paths": (lambda own: _rewrite_paths(own, rows=0), "do not fit each other"),
    "a measurement without content": (
        lambda own: _add_measurement(own, "invariance-00000000.json", git_commit=COMMIT),
        "that its reader can read",
    ),
    "a list of other prices": (
        lambda own: _add_measurement(
            own, "prices-00000000.json", schema_version=1, gpu="", hours={}, git_commit=COMMIT
        ),
        "is not what its name says",
    ),
}


@pytest.mark.parametrize("case", UNFIT)
def test_what_does_not_fit_is_found_and_not_published(published: Project, case: str) -> None:
    damage, message = UNFIT[case]
    damage(published)
    renew(published.archive)
    before = published.contents()
    assert any(re.search(message, problem) for problem in check(published.archive))
    with pytest.raises(UserError, match=message):
        publish(published.results)
    assert published.contents() == before


@pytest.mark.parametrize("case", ["paths of another run", "fewer paths"])
def test_figures_do_not_draw_paths_that_do_not_fit(
    published: Project, case: str, capsys: pytest.CaptureFixture[str]
) -> None:
    UNFIT[case][0](published)
    renew(published.archive)
    for figure in ("figure6", "figure11"):
        assert cli.main(["figures", "results", "--only", figure]) == 1
        assert "Restore it with `git checkout" in capsys.readouterr().err


def test_a_readme_that_is_a_folder_is_an_error(published: Project) -> None:
    (published.archive.path / README).unlink()
    (published.archive.path / README).mkdir()
    assert any("is a folder" in problem for problem in check(published.archive))
    with pytest.raises(UserError, match=r"README\.md is a folder"):
        publish(published.results)
