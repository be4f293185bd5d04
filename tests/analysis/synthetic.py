"""Results folders with invented runs, in the layout of real ones."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from lietransformer.data.writer import create_dataset

COMMIT = "0123456789abcdef0123456789abcdef01234567"
STEPS = 99
TRAJECTORIES = 12
PARTICLES = 6


@dataclass
class Results:
    """A results folder that runs are added to.

    Attributes:
        path: the folder.
        tier: as the manifest says; None for no manifest.
        data: the springs dataset that the runs say they used.
    """

    path: Path
    tier: str | None = "paper"
    data: Path | None = None
    runs: list[dict[str, Any]] = field(default_factory=list)
    measurements: dict[str, str] = field(default_factory=dict)

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
        **labels: Any,
    ) -> Path:
        """A run; `test` are its numbers for each set of weights and each test set."""
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
            write_json(out / "config.json", {"hash": "00", "config": config})
        if status in ("finished", "diverged"):
            result = {
                "status": status,
                "diverged": {"step": 7} if status == "diverged" else None,
                "parameters": parameters,
                "epochs": 3.0,
                "test": test or {},
                "seconds": {"train": 3000.0, "test": 600.0},
                "git_commit": COMMIT,
                "dataset_hash": None,
                "peak_memory_gb": 1.5,
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
            write_json(
                self.path / "sweep.json",
                {
                    "schema_version": 2,
                    "tier": self.tier,
                    "config": {},
                    "runs": self.runs,
                    "measurements": self.measurements,
                },
            )
        return self.path

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
            "settings": {"runs": len(next(iter(errors.values())))},
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
