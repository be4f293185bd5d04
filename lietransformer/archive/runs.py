"""A run on disk: is it complete, and do its files belong together? The same for local and
published runs."""

import math
import re
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, FiniteFloat, ValidationError

from lietransformer.archive.evaluations import require_own_evaluation
from lietransformer.errors import UserError
from lietransformer.experiments.registry import TaskName
from lietransformer.layout import COPIED, Machine
from lietransformer.report.runs import ablation_of
from lietransformer.training.config import RunConfig
from lietransformer.training.run_folder import RunFolder
from lietransformer.training.schedule import evaluation_steps

_COMMIT = re.compile(r"[0-9a-f]{40}")
_ABSOLUTE = re.compile(r'"(/|[A-Za-z]:\\\\)')


class Result(BaseModel):
    """result.json of a run that has ended, as far as the archive rests on it."""

    status: Literal["finished", "diverged"]
    task: TaskName
    model: str
    n_train: int
    target: str | None
    augmentation: str
    seed: int
    parameters: int
    steps: int
    epochs: FiniteFloat
    stopped_early: bool
    selection: str
    final: dict[str, Any] | None
    test: dict[str, dict[str, dict[str, FiniteFloat | None]]]
    hash: str
    dataset_hash: str
    git_commit: str | None
    machine: Machine
    cpu_seconds: FiniteFloat


def require_complete(folder: RunFolder) -> Result:
    """Refuse a run that is not complete, or whose files do not belong together."""
    config, result = folder.config(), _result(folder)
    if folder.path.name != f"seed-{config.seed}":
        raise UserError(f"{folder.path} holds seed {config.seed}. Rename the folder accordingly.")
    _require_same_labels(folder, config, result)
    own = config.identity_hash(result.dataset_hash)
    if not own == folder.read_config_json()["hash"] == result.hash:
        raise UserError(
            f"The hashes of settings and data in {folder.path} do not agree: its config.json or "
            "result.json was edited, or belongs to another run. Train it again."
        )
    require_commit(folder.path, result.git_commit)
    _require_whole_curve(folder, config, result)
    if result.status == "finished" and not all(result.test.get(own) for own in config.test_weights):
        raise UserError(f"{folder.path} has not all of its tests. Train the run again.")
    require_own_evaluation(folder, config, result.test)
    for file in COPIED:
        require_no_absolute_path(folder.path / file)
    return result


def entry_of(folder: RunFolder, dataset: str) -> dict[str, Any]:
    """What the manifest says of a run.

    Args:
        folder: of the run.
        dataset: the name of its dataset.
    """
    config, result = folder.config(), folder.result()
    return {
        **{key: result[key] for key in ("task", "model", "target", "augmentation")},
        # Of the settings: null for all examples of the dataset.
        "n_train": config.n_train,
        "ablation": ablation_of(config.architecture),
        "draw": config.draw,
        **{key: result[key] for key in ("seed", "status", "hash")},
        "dataset": dataset,
        "git_commit": result["git_commit"],
        "machine": {k: v for k, v in result["machine"].items() if k != "host"},
        "core_hours": round(result["cpu_seconds"] / 3600, 3),
    }


def _result(folder: RunFolder) -> Result:
    try:
        return Result.model_validate(folder.result())
    except ValidationError as error:
        wrong = (f"{'.'.join(map(str, own['loc']))}: {own['msg']}" for own in error.errors()[:3])
        raise UserError(
            f"{folder.result_file} is not the result of a run ({'; '.join(wrong)}). Train the run "
            "again."
        ) from error


def _require_same_labels(folder: RunFolder, config: RunConfig, result: Result) -> None:
    labels = ("task", "model", "target", "augmentation", "seed")
    names = (*labels, "n_train") if config.n_train is not None else labels
    wrong = [name for name in names if getattr(result, name) != getattr(config, name)]
    if wrong:
        raise UserError(
            f"{folder.result_file} and {folder.config_file.name} differ in {', '.join(wrong)}: one "
            "was edited, or belongs to another run. Train the run again."
        )


def _require_whole_curve(folder: RunFolder, config: RunConfig, result: Result) -> None:
    """Refuse curves without all planned evaluations up to the end of the run."""
    batches = math.ceil(result.n_train / min(config.batch_size, result.n_train))
    planned = evaluation_steps(config.epochs * batches, config.evaluations)
    records = folder.records()
    steps = [record["step"] for record in records]
    may_end_early = result.status == "diverged" or result.stopped_early
    is_whole = steps == planned[: len(steps)] and (may_end_early or steps == planned)
    if not is_whole or (records[-1] if records else None) != result.final:
        raise UserError(
            f"{folder.metrics_file} is not a complete curve: it has {len(steps)} of "
            f"{len(planned)} planned evaluations, or other ones. Train the run again."
        )


def require_commit(path: Path, commit: object) -> None:
    """Refuse what was not made by a clean commit."""
    if not _COMMIT.fullmatch(str(commit)):
        raise UserError(
            f"{path} was not made by a clean commit (git says {commit}). Only results of committed "
            "code are published: commit your changes and make it again."
        )


def require_no_absolute_path(file: Path) -> None:
    """Refuse a text file with an absolute path."""
    if _ABSOLUTE.search(file.read_text(encoding="utf-8")):
        raise UserError(
            f"{file} contains an absolute path, which means nothing on other machines. Train with "
            "paths relative to the project's folder."
        )
