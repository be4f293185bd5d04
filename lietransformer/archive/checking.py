"""`lietransformer publish --check`: is the archive what its manifest says?"""

from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any

from lietransformer.archive import readme
from lietransformer.archive.evaluations import LONG, compact
from lietransformer.archive.measurements import require_measurement
from lietransformer.archive.runs import entry_of, require_complete
from lietransformer.archive.weights import require_fit
from lietransformer.data.reader import DatasetFile
from lietransformer.errors import UserError
from lietransformer.experiments.springs.figures.pairs import MODELS
from lietransformer.experiments.springs.paths import paths_name, read_paths
from lietransformer.layout import COPIED, README, Archive, run_name
from lietransformer.training.run_folder import RunFolder

_REMEDY = "run `lietransformer publish` again if it was interrupted, else remove it"
_OF_A_RUN = (*COPIED, "evaluation.h5")


def check(archive: Archive) -> list[str]:
    """All that is wrong with an archive, a sentence each."""
    try:
        found = problems_of_content(archive)
    except UserError as error:
        if archive.exists:
            raise
        return [str(error)]
    if not archive.exists:
        return [f"there is no archive at {archive.path}"]
    found += [f"{stray}: {_REMEDY}" for stray in archive.strays()]
    if not found and readme.text(archive) != _text(archive.path / README):
        found.append(
            f"{archive.path / README} is not what the manifest says: run `lietransformer "
            "publish` to write it again"
        )
    return found


def problems_of_content(archive: Archive) -> list[str]:
    """The same without its README, and without files that the manifest does not know."""
    damaged = archive.problems()
    if damaged:  # what follows would report the same files
        return damaged
    found = []
    for name in archive.runs:
        found += _problems(_check_run, archive, name)
    for name in archive.files:
        path = PurePosixPath(name)
        match path.parts[0]:
            case "runs":
                is_known = path.parent.as_posix() in archive.runs and path.name in _OF_A_RUN
                found += [] if is_known else [f"{archive.path / name} belongs to no published run"]
            case "measurements":
                file = archive.path / name
                found += _problems(require_measurement, file, file.name)
            case "trajectories":
                found += _problems(_check_paths, archive, name)
    for name in archive.manifest["weights"]:
        found += _problems(_check_weights, archive, name)
    return list(dict.fromkeys(found))


def _problems(check_one: Callable[..., None], *what: Any) -> list[str]:
    try:
        check_one(*what)
    except UserError as error:
        return [str(error)]
    return []


def _check_run(archive: Archive, name: str) -> None:
    missing = [file for file in COPIED if f"{name}/{file}" not in archive.files]
    if missing:
        raise UserError(f"{', '.join(missing)} of {archive.path / name} are not in the manifest")
    run, folder = archive.runs[name], RunFolder(archive.path / name)
    result = require_complete(folder)
    own = entry_of(folder, run["dataset"])
    wrong = [label for label in own if own[label] != run.get(label)]
    dataset = archive.manifest["datasets"].get(run["dataset"], {})
    wrong += [] if dataset.get("content_hash") == result.dataset_hash else ["dataset hash"]
    if wrong:
        raise UserError(f"{folder.path}: its {', '.join(wrong)} is not that of the manifest")


def _check_paths(archive: Archive, name: str) -> None:
    path = archive.path / name
    stored = DatasetFile(path, kind="trajectories").config.get("runs")
    given = stored if isinstance(stored, dict) else {}
    runs = {model: str(given.get(model)) for model in MODELS}
    known = [archive.runs[folder] for folder in runs.values() if folder in archive.runs]
    names = {(run["model"], paths_name(run["n_train"], run["seed"])) for run in known}
    if names != {(model, name) for model in MODELS}:
        raise UserError(f"{path} holds the trajectories of runs that are not those of its name")
    drawn = max(read_paths(path, runs))
    for folder in runs.values():
        evaluation = DatasetFile(archive.path / folder / "evaluation.h5", kind="evaluation")
        if drawn >= len(compact(evaluation).get(f"{LONG}/trajectory_error", ())):
            raise UserError(f"{path} has test trajectory {drawn}, which {folder} was not tested on")


def _check_weights(archive: Archive, name: str) -> None:
    """Names and shapes of weights: the hash says only that they are the same file."""
    weights = archive.manifest["weights"][name]
    missing = [key for key in ("file", "card") if weights[key] not in archive.files]
    if missing:
        raise UserError(f"the {', '.join(missing)} of the weights {name} is not in the manifest")
    run = archive.runs.get(weights["run"])
    if run is None or run_name(run) != name:
        raise UserError(f"{weights['run']}, the run of the weights {name}, is not published")
    require_fit(archive.path / weights["file"], RunFolder(archive.path / weights["run"]).config())


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
