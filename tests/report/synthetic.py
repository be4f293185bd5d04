"""Results folders with invented runs, in the layout of real ones."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from lietransformer.data.writer import create_dataset
from lietransformer.experiments.springs.rollouts import step_error, trajectory_error
from lietransformer.experiments.symmetry.config import InvarianceConfig
from lietransformer.layout import MANIFEST, empty_manifest, sha256
from lietransformer.report.claims.protocol import _training

COMMIT = "0123456789abcdef0123456789abcdef01234567"
STEPS = 99
TRAJECTORIES = 12
PARTICLES = 6
MACHINE = {"processor": "Xeon", "system": "Linux", "python": "3.11", "torch": "2.9"}


@dataclass
class Results:
    """A results folder that runs are added to.

    Attributes:
        path: the folder.
        tier: as the manifest says; None for no manifest.
        data: the springs dataset that the runs say they used.
        config: the sweep's, as the manifest has it.
        published_runs: entries of published runs, for comparison.
        published: what the sweep does with published runs.
    """

    path: Path
    tier: str | None = "paper"
    data: Path | None = None
    config: dict[str, Any] = field(
        default_factory=lambda: {"constellations": {}, "springs": {}, "qm9": {}}
    )
    runs: list[dict[str, Any]] = field(default_factory=list)
    published_runs: list[dict[str, Any]] = field(default_factory=list)
    measurements: dict[str, str] = field(default_factory=dict)
    published: str = "use"

    def add(
        self,
        parts: Sequence[str],
        task: str,
        model: str,
        *,
        seed: int = 0,
        status: str = "finished",
        test: Mapping[str, Any] | None = None,
        arrays: Mapping[str, np.ndarray] | None = None,
        parameters: int = 1000,
        settings: Mapping[str, Any] | None = None,
        **labels: Any,
    ) -> Path:
        """A run; `test` are its numbers for each set of weights and each test set.

        Its settings are the paper's, except those that are given.
        """
        variant = "-".join(str(label) for label in labels.values()) or "all"
        folder = f"runs/{task}/{model.lower().replace(' ', '-')}/{variant}/seed-{seed}"
        run = {"n_train": None, "target": None, "augmentation": "none", "ablation": None, **labels}
        run |= {"folder": folder, "parts": list(parts), "task": task, "model": model, "seed": seed}
        if run not in self.runs:
            self.runs.append(run)
        out = self.path / folder
        if status != "missing":
            config = {key: run[key] for key in ("n_train", "target", "augmentation")}
            config |= {"task": task, "model": model, "seed": seed, "data": str(self.data)}
            config |= paper_settings(task, model, run["n_train"], run["ablation"])
            config |= settings or {}
            write_json(out / "config.json", {"hash": "00", "config": config})
        if status in ("finished", "diverged"):
            result = {
                "status": status,
                "diverged": {"step": 7} if status == "diverged" else None,
                "parameters": parameters,
                "epochs": 3.0,
                "stopped_early": task == "constellations",
                "test": test or {},
                "seconds": {"train": 3000.0, "test": 600.0},
                "cpu_seconds": 7200.0,
                "git_commit": COMMIT,
                "dataset_hash": None,
                "peak_memory_gb": 1.5,
                "machine": MACHINE,
            }
            write_json(out / "result.json", result)
        if arrays is not None:
            with create_dataset(
                out / "evaluation.h5", kind="evaluation", config={}, seed=seed
            ) as file:
                for name, array in arrays.items():
                    file.write(name, array)
        return out

    def write(self) -> Path:
        """The manifest, if there is to be one; the folder."""
        self.path.mkdir(parents=True, exist_ok=True)
        if self.tier is not None:
            write_json(self.path / "sweep.json", self.sweep("local"))
        return self.path

    def sweep(self, source: str) -> dict[str, Any]:
        """The content of a manifest."""
        return {
            "schema_version": 3,
            "tier": self.tier,
            "published": self.published,
            "config": self.config,
            "runs": [{"source": source, **run} for run in self.runs],
            "published_runs": self.published_runs,
            "measurements": self.measurements,
        }

    def write_archive(self) -> Path:
        """This folder as an archive of published runs; the folder."""
        self.path.mkdir(parents=True, exist_ok=True)
        files = sorted(path for path in self.path.rglob("*") if path.is_file())
        content = empty_manifest() | {
            "sweep": self.sweep("published") if self.tier is not None else {},
            "runs": {
                path.parent.relative_to(self.path).as_posix(): {
                    **{"task": "springs", "model": "LieConv-T2", "seed": 0, "status": "finished"},
                    **{"hash": "0", "dataset": "springs", "git_commit": COMMIT},
                    **{"machine": MACHINE, "core_hours": 1.0},
                }
                for path in files
                if path.name == "result.json"
            },
            "files": {
                path.relative_to(self.path).as_posix(): {
                    "bytes": path.stat().st_size,
                    "sha256": sha256(path),
                }
                for path in files
                if path.name != MANIFEST
            },
        }
        write_json(self.path / MANIFEST, content)
        return self.path

    def published_entries(self) -> list[dict[str, Any]]:
        """The runs of this archive as the manifest of the results around it lists them."""
        return [
            {**run, "folder": f"{self.path.name}/{run['folder']}", "source": "published"}
            for run in self.runs
        ]

    def add_prices(self, hours: Mapping[str, float]) -> None:
        """What runs of the paper tier cost."""
        content = {
            "schema_version": 1,
            "gpu": "GPU of 15,700 GFLOP/s (float32)",
            "measured_on": "a Xeon",
            "hours": dict(hours),
        }
        write_json(self.path / "measurements" / "prices-0.json", content)

    def add_invariance(self, errors: Mapping[int, Sequence[float]]) -> None:
        """The measurements of Figure 3."""
        generator = np.random.default_rng(0)
        sizes = {"square": 4, "triangle": 3, "pentagon": 5, "L": 5}
        example = {
            "positions": generator.uniform(-1, 1, (17, 2)).tolist(),
            "instance": [k for k, size in enumerate(sizes.values()) for _ in range(size)],
            "pattern": [name for name, size in sizes.items() for _ in range(size)],
        }
        content = {
            "schema_version": 1,
            "settings": InvarianceConfig(runs=len(next(iter(errors.values())))).model_dump(),
            "lift_samples": list(errors),
            "errors": [list(values) for values in errors.values()],
            "seconds": 1.0,
            "example": example,
        }
        self.add_measurement("invariance", content)

    def add_measurement(self, name: str, content: Any) -> Path:
        """What was computed without training."""
        self.measurements[name] = f"{name}-00000000.json"
        write_json(self.path / self.measurements[name], content)
        return self.path / self.measurements[name]


def paper_settings(
    task: str, model: str, n_train: int | None, ablation: str | None
) -> dict[str, Any]:
    """The paper's settings, as far as claims look at them."""
    architectures: dict[str | None, dict[str, Any]] = {
        "softmax": {"attention": {"normalisation": "softmax"}},
        "log_lift": {"pair_features": "log"},
    }
    own: dict[str, Any] = {"test_examples": None}
    own["architecture"] = architectures.get(ablation, {})
    own |= {"epochs": 300, "patience": 30} if task == "constellations" else {}
    return own | _training({"task": task, "model": model, "n_train": n_train})


def write_json(path: Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))


def for_both_weights(**sets: Mapping[str, float]) -> dict[str, Any]:
    """The same numbers for the best and the final weights."""
    return {"best": sets, "final": sets}


def accuracies(test: float, t2: float, se2: float) -> dict[str, Any]:
    """Numbers of a run on constellations."""
    sets = zip(("test", "test_T2", "test_SE2"), (test, t2, se2), strict=True)
    return for_both_weights(**{name: {"accuracy": value, "loss": 1.0} for name, value in sets})


def mae(value: float) -> dict[str, Any]:
    """Numbers of a run on QM9."""
    return for_both_weights(test={"mae": value, "loss": 1.0})


def springs_errors(short: float, long: float | None = None) -> dict[str, Any]:
    """Numbers of a run on springs: the errors over 5 and 100 steps."""
    long = 10 * short if long is None else long
    return for_both_weights(test={"mse_geometric": short}, test_long={"mse_geometric": long})


def rollout_arrays(
    level: float,
    *,
    seed: int = 0,
    truth: np.ndarray | None = None,
    shape: Callable[[np.ndarray], np.ndarray] = np.square,
) -> dict[str, np.ndarray]:
    """Errors of each trajectory at each step, on average `level` at the last one."""
    generator = np.random.default_rng(seed)
    steps = np.arange(1, STEPS + 1) / STEPS
    spread = np.exp(generator.normal(0, 1, (TRAJECTORIES, 1)))
    squared = level * shape(steps) * spread / spread.mean()
    size = (TRAJECTORIES, STEPS, PARTICLES, 2)
    noise = generator.normal(0, 1, size) * np.sqrt(squared)[..., None, None]
    positions = noise + (truth if truth is not None else np.zeros(size))
    arrays = {
        "squared": squared,
        "energy": np.zeros_like(squared),
        "momentum": np.zeros_like(squared),
        "positions": positions,
    }
    return {
        f"{weights}/test_long/{name}": array.astype("f4")
        for weights in ("best", "final")
        for name, array in arrays.items()
    }


def compact(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """A full evaluation as published runs have it."""
    squared = arrays["final/test_long/squared"]
    return {
        "final/test_long/step_error": step_error(squared),
        "final/test_long/trajectory_error": trajectory_error(squared),
    }
