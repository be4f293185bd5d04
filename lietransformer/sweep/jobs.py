"""The datasets and training jobs of a sweep, and their names."""

import hashlib
import json
import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lietransformer.experiments.plan import Ablation
from lietransformer.experiments.registry import PartName, TaskName, plan_of


@dataclass(frozen=True)
class Dataset:
    """A dataset that runs need."""

    kind: TaskName
    settings: dict[str, Any]
    path: Path

    @property
    def arguments(self) -> str:
        """The arguments of `lietransformer data KIND`, quoted for a shell."""
        return as_sets(self.settings)


@dataclass
class Configuration:
    """Runs that differ in nothing but their seed.

    Attributes:
        task: what is trained.
        settings: as given to `lietransformer train`, without data and seed.
        folder: of all its runs, within the results.
        data: the dataset.
        ablation: what was changed to see its effect.
        parts: the seeds that each part of the sweep asks for.
    """

    task: TaskName
    settings: dict[str, Any]
    folder: Path
    data: Dataset
    ablation: Ablation | None
    parts: dict[PartName, set[int]] = field(default_factory=dict)

    @property
    def seeds(self) -> list[int]:
        return sorted(set().union(*self.parts.values()))

    @property
    def labels(self) -> dict[str, Any]:
        """What tells it from other configurations, for people."""
        return {
            "task": self.task,
            "model": self.settings["model"],
            "n_train": self.settings.get("n_train"),
            "target": self.settings.get("target"),
            "augmentation": self.settings.get("augmentation", "none"),
            "ablation": self.ablation,
            "draw": self.settings.get("draw", 0) if "draw" in plan_of(self.task).OPTIONS else None,
        }

    def run(self, seed: int) -> Path:
        """The folder of a run."""
        return self.folder / f"seed-{seed}"


@dataclass(frozen=True)
class Pack:
    """Seeds of one configuration that one job trains, at once or one after the other."""

    configuration: Configuration
    seeds: tuple[int, ...]

    @property
    def summary(self) -> Path:
        """The file that is there when all of them are done."""
        is_range = self.seeds == tuple(range(self.seeds[0], self.seeds[-1] + 1))
        ends = self.seeds if not is_range else dict.fromkeys((self.seeds[0], self.seeds[-1]))
        name = ("-" if is_range else "_").join(map(str, ends))
        return self.configuration.folder / f"seeds-{name}.json"

    @property
    def runs(self) -> list[Path]:
        return [self.configuration.run(seed) for seed in self.seeds]

    @property
    def is_done(self) -> bool:
        """Whether all runs have ended."""
        return all((run / "result.json").exists() for run in self.runs)

    @property
    def arguments(self) -> str:
        """The settings for `lietransformer train`, quoted for a shell."""
        return as_sets({**self.configuration.settings, "seeds": list(self.seeds)})


def slug(name: str) -> str:
    """A model's name as that of a folder."""
    return re.sub(r"[^a-z0-9+]+", "-", name.lower()).strip("-")


def digest(content: object) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:8]


def as_sets(settings: dict[str, Any]) -> str:
    """Settings as `--set KEY=VALUE`, quoted for a shell."""
    pairs = [f"{name}={json.dumps(value)}" for name, value in settings.items()]
    return shlex.join(word for pair in pairs for word in ("--set", pair))
