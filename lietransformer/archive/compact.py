"""Evaluations small enough for git: errors per step and per trajectory, and the drawn paths."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from lietransformer.archive.comparison import have_same_numbers
from lietransformer.archive.evaluations import LONG, compact, have_same_errors
from lietransformer.data.reader import DatasetFile
from lietransformer.data.writer import create_dataset
from lietransformer.errors import UserError
from lietransformer.experiments.springs.figures.pairs import MODELS, Pair
from lietransformer.experiments.springs.paths import paths_name, write_paths
from lietransformer.layout import run_name


def write_compact_evaluation(full: Path, target: Path) -> None:
    """Mean squared error at each step, and the geometric mean of each test trajectory."""
    file = DatasetFile(full, kind="evaluation")
    with create_dataset(target, kind="evaluation", config=file.config, seed=file.seed) as written:
        for name, array in compact(file).items():
            written.write(name, array)


@dataclass(frozen=True)
class PathsWriter:
    """Stages the paths that Figures 6 and 11 draw, for every pair of published runs.

    Attributes:
        results: with full evaluations, also in verification/, and the datasets.
        archive: with the compact evaluations.
        stage: where those of new runs are, and where paths go.
        manifest: of the archive, new runs included.
        without: names of runs, two for each pair whose paths are not known.
    """

    results: Path
    archive: Path
    stage: Path
    manifest: Mapping[str, Any]
    without: list[str] = field(default_factory=list)

    def write(self, folders: Iterable[str]) -> Iterator[str]:
        """Names of the files that are written.

        Args:
            folders: of the configurations of Figure 4, within the archive.
        """
        for (size, seed), runs in sorted(self._pairs(set(folders)).items()):
            name = paths_name(size, seed)
            if name not in self.manifest["files"]:
                if self._write(name, size, seed, runs):
                    yield name
                else:
                    entries = (self.manifest["runs"][runs[model]] for model in MODELS)
                    self.without.extend(f"{run_name(own)}/seed-{seed}" for own in entries)

    def _pairs(self, folders: set[str]) -> dict[tuple[int, int], dict[str, str]]:
        """Folders of the runs of both models, by size and seed."""
        pairs: dict[tuple[int, int], dict[str, str]] = {}
        for name, run in self.manifest["runs"].items():
            is_drawn = name.rpartition("/")[0] in folders and run["model"] in MODELS
            if is_drawn and run["status"] == "finished":
                pairs.setdefault((run["n_train"], run["seed"]), {})[run["model"]] = name
        return {key: runs for key, runs in pairs.items() if len(runs) == len(MODELS)}

    def _write(self, name: str, size: int, seed: int, runs: Mapping[str, str]) -> bool:
        """Whether the paths are known."""
        full = {model: self._full_evaluation(folder) for model, folder in runs.items()}
        truth = self._truth(self.manifest["runs"][runs[MODELS[0]]]["dataset"])
        files = {model: file for model, file in full.items() if file is not None}
        if truth is None or len(files) < len(MODELS):
            return False
        errors = {model: compact(file)[f"{LONG}/trajectory_error"] for model, file in files.items()}
        drawn = np.array(sorted(set(Pair(size, {}, errors).highlighted.values())))
        positions = {m: files[m].array(f"{LONG}/positions")[drawn] for m in MODELS}
        write_paths(self.stage / name, runs, seed, truth[drawn, :, 0], positions, drawn)
        return True

    def _full_evaluation(self, folder: str) -> DatasetFile | None:
        """Of a local run with the numbers of the published one."""
        new, old = (place / folder for place in (self.stage, self.archive))
        published = new if new.exists() else old
        for place in (self.results / folder, self.results / "verification" / folder):
            file = place / "evaluation.h5"
            try:
                is_it = file.exists() and have_same_numbers(place, published)
                if is_it and have_same_errors(file, published / file.name):
                    full = DatasetFile(file, kind="evaluation", verify=False)
                    if f"{LONG}/positions" in full.names:
                        return full
            except UserError:  # a damaged file has no positions
                continue
        return None

    def _truth(self, name: str) -> np.ndarray | None:
        path, known = self.results / "data" / f"{name}.h5", self.manifest["datasets"][name]
        if not path.exists():
            return None
        file = DatasetFile(path, kind="springs", verify=False)
        is_it = file.content_hash == known["content_hash"]
        return file.array("test/long_states") if is_it else None
