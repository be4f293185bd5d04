"""Test trajectories, true and as both models predict them; those of published runs as a file."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lietransformer.data.reader import DatasetFile
from lietransformer.data.writer import create_dataset
from lietransformer.errors import UserError
from lietransformer.experiments.springs.rollouts import CONVOLUTION, TRANSFORMER
from lietransformer.layout import RESTORE

_MODELS = (TRANSFORMER, CONVOLUTION)
_KIND = "trajectories"
_NUMBER_OF_AXES = 4  # trajectories, states, particles, space


@dataclass(frozen=True, eq=False)
class Paths:
    """One test trajectory, true and as both models predict it.

    Attributes:
        truth: (states, particles, space), from the initial state on; None if not known.
        predicted: by model, (steps, particles, space); without those that are not known.
    """

    truth: np.ndarray | None
    predicted: dict[str, np.ndarray]


def paths_name(size: int, seed: int) -> str:
    """The file of a pair of runs within the archive."""
    return f"trajectories/n{size}-seed-{seed}.h5"


def write_paths(
    path: Path,
    runs: Mapping[str, str],
    seed: int,
    truth: np.ndarray,
    predicted: Mapping[str, np.ndarray],
    drawn: np.ndarray,
) -> None:
    """Write the paths of a pair.

    Args:
        path: the file.
        runs: folders of the two runs within the archive, by model.
        seed: of both.
        truth: (drawn trajectories, states, particles, space).
        predicted: likewise by model, from the first step on.
        drawn: which test trajectories these are.
    """
    with create_dataset(path, kind=_KIND, config={"runs": dict(runs)}, seed=seed) as file:
        file.write("drawn", drawn.astype(np.int64))
        file.write("truth", truth.astype(np.float32))
        for model, own in predicted.items():
            file.write(model, own.astype(np.float32))


def read_paths(path: Path, runs: Mapping[str, str]) -> dict[int, Paths]:
    """The paths of a pair by test trajectory; a file of other runs or shapes is an error.

    Args:
        path: the file.
        runs: folders of the two runs within the archive, by model.
    """
    file = DatasetFile(path, kind=_KIND, verify=False)
    if file.config.get("runs") != dict(runs):
        raise UserError(
            f"{path} holds the trajectories of {file.config.get('runs')} instead of {dict(runs)}. "
            f"{RESTORE}"
        )
    drawn, truth = file.array("drawn"), file.array("truth")
    predicted = {model: file.array(model) for model in _MODELS}
    steps = (len(truth), truth.shape[1] - 1, *truth.shape[2:]) if truth.ndim > 1 else ()
    has_its_shape = truth.ndim == _NUMBER_OF_AXES and drawn.shape == truth.shape[:1] != (0,)
    if not has_its_shape or any(own.shape != steps for own in predicted.values()):
        shapes = {name: file.array(name).shape for name in ("drawn", "truth", *_MODELS)}
        raise UserError(f"{path} has arrays that do not fit each other: {shapes}. {RESTORE}")
    return {
        int(trajectory): Paths(
            np.array(truth[row]), {model: np.array(own[row]) for model, own in predicted.items()}
        )
        for row, trajectory in enumerate(drawn)
    }
