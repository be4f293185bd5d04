"""Springs: settings of the dataset, what is swept, the paper's settings of training."""

import math
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import Field, model_validator

from lietransformer.data.config import GeneratorConfig
from lietransformer.experiments.plan import (
    Ablation,
    Block,
    Planned,
    Seeds,
    Settings,
    Sizes,
    Swept,
)

MODELS = (
    *("LieTransformer-T2", "LieTransformer-T2 small"),
    *("LieTransformer-SE2", "LieTransformer-SE2 small"),
    *("LieConv-T2", "LieConv-T2 small", "LieConv-SE2", "LieConv-SE2 small"),
    *("Fully-connected (Hamiltonian)", "Fully-connected (direct)"),
    *("Graph network (Hamiltonian)", "Graph network (direct)"),
)
AUGMENTATIONS = ("none", "T2", "SE2")
OPTIONS = ("draw",)
SUMMARY = "trajectories of particles joined by springs (Figures 4 to 11)"
_MOST_NUMBERS = 1 << 26  # of one trajectory, and of the initial states of a batch: 512 MB
# The model that is changed, and how.
_ABLATIONS: dict[Ablation, tuple[str, Settings]] = {
    "softmax": ("LieTransformer-T2", {"attention": {"normalisation": "softmax"}}),
    "log_lift": ("LieTransformer-SE2 small", {"pair_features": "log"}),
}


class SpringsConfig(GeneratorConfig):
    """Settings of the springs generator; the defaults are the paper's."""

    systems: int = Field(
        100_000, ge=3, le=10**8, description="number of systems, each with one trajectory"
    )
    particles: int = Field(6, ge=2, description="particles in a system")
    dimension: int = Field(2, ge=1, le=3, description="dimension of space")
    states: int = Field(500, ge=2, description="states of a trajectory, the initial one included")
    duration: float = Field(5.0, gt=0, description="time from the first state to the last")
    chunk: int = Field(5, ge=2, description="states of a training example")
    long_chunk: int = Field(100, ge=2, description="states of an example of the long test")
    validation: int = Field(2_000, ge=1, description="validation uses at most this many systems")
    test: int = Field(2_000, ge=1, description="this many systems, the last ones, are for testing")
    generation_batch: int = Field(
        5_000,
        ge=2,
        le=1_000_000,
        description="initial momenta have mean zero over this many systems",
    )

    @property
    def step(self) -> float:
        """Time between two states."""
        return self.duration / (self.states - 1)

    @model_validator(mode="after")
    def _fits(self) -> "SpringsConfig":
        for name in ("chunk", "long_chunk"):
            if getattr(self, name) > self.states:
                raise ValueError(f"{name} must not be longer than states ({self.states})")
        per_state = 2 * self.particles * self.dimension
        for name in ("states", "generation_batch"):
            if getattr(self, name) * per_state > _MOST_NUMBERS:
                raise ValueError(
                    f"{name} ({getattr(self, name)}) times the {per_state} numbers of a state must "
                    f"not exceed {_MOST_NUMBERS}, or memory would not suffice"
                )
        if self.test > self.systems - 2:
            raise ValueError(
                f"systems ({self.systems}) must leave at least one for training and one for "
                f"validation beside test ({self.test})"
            )
        return self


class DataEfficiencySweep(Block):
    """Figures 4, 5, 6, 9, 10 and 11: models × sizes of the training set × seeds."""

    models: list[str] = Field(description="as `lietransformer models` lists them")
    n_train: list[Annotated[int, Field(ge=1)]] = Field(description="training systems")
    seeds: Seeds = Field(description="how many, or a list of them")


class ParameterEfficiencySweep(Block):
    """Figures 7 and 8: models of two sizes × seeds."""

    models: list[str] = Field(description="as `lietransformer models` lists them")
    n_train: int = Field(ge=1, description="training systems")
    seeds: Seeds = Field(description="how many, or a list of them")


class AblationSweep(Block):
    """Softmax instead of constant normalisation; ν∘log instead of the canonical lift."""

    kinds: list[Ablation] = Field(description="softmax (App. I.3), log_lift (App. F); [] for none")
    n_train: int = Field(ge=1, description="training systems")
    seeds: Seeds = Field(description="how many, or a list of them")


class DrawsSweep(Block):
    """How much the draw of a few training systems decides: models × draws × seeds."""

    models: list[str] = Field(
        ["LieTransformer-T2 small", "LieConv-T2 small"],
        description="as `lietransformer models` lists them",
    )
    n_train: int = Field(10, ge=1, description="training systems")
    draws: int = Field(0, ge=0, description="disjoint sets of training systems; 0 for none")
    epochs: int = Field(300, ge=1, description="of each run")
    seeds: Seeds = Field([0], description="how many, or a list of them")


class SpringsSweep(Swept):
    """All that is trained on springs."""

    data_efficiency: DataEfficiencySweep
    parameter_efficiency: ParameterEfficiencySweep
    ablations: AblationSweep
    draws: DrawsSweep = DrawsSweep()

    @property
    def models(self) -> list[str]:
        parts = (self.data_efficiency, self.parameter_efficiency, self.draws)
        return [model for part in parts for model in part.models]

    def planned(self) -> Iterator[Planned]:
        curves, efficiency = self.data_efficiency, self.parameter_efficiency
        for model in curves.models:
            for n_train in curves.n_train:
                yield Planned("data_efficiency", self._settings(model, n_train), curves.seeds)
        for model in efficiency.models:
            settings = self._settings(model, efficiency.n_train)
            yield Planned("parameter_efficiency", settings, efficiency.seeds)
        for kind in self.ablations.kinds:
            yield from self._ablation(kind)
        yield from self._draws()

    def _ablation(self, kind: Ablation) -> Iterator[Planned]:
        """A changed model, and the one that it is compared with."""
        sweep, (model, change) = self.ablations, _ABLATIONS[kind]
        settings = self._settings(model, sweep.n_train)
        yield Planned("ablations", settings, sweep.seeds)
        changed = {**settings.get("architecture", {}), **change}
        yield Planned("ablations", {**settings, "architecture": changed}, sweep.seeds, kind)

    def _draws(self) -> Iterator[Planned]:
        sweep = self.draws
        for model in sweep.models:
            for draw in range(sweep.draws):
                own = {"model": model, "n_train": sweep.n_train, "draw": draw}
                settings = {**own, **self.settings_for(model), "epochs": sweep.epochs}
                yield Planned("draws", settings, sweep.seeds)

    def _settings(self, model: str, n_train: int) -> Settings:
        return {"model": model, "n_train": n_train, **self.settings_for(model)}


Generator = SpringsConfig
Sweep = SpringsSweep


def paper_epochs(n_train: int) -> int:
    """400·√(3000/n) epochs, so that smaller sets are seen more often (App. I.3)."""
    return max(1, round(400 * math.sqrt(3000 / n_train)))


def paper_settings(given: Mapping[str, Any]) -> Settings:
    """App. I.3."""
    n_train = given.get("n_train")
    count = n_train if type(n_train) is int and n_train > 0 else 100
    return {
        "epochs": paper_epochs(count),
        "batch_size": min(100, count),
        "learning_rate": 1e-3,
        "betas": (0.9, 0.999),
        "schedule": "cosine",
        "schedule_per": "epoch",
        "evaluations": 100,
        "evaluation_batch_size": 100,
    }


def check(run: Any) -> None:
    if run.n_train is None:
        raise ValueError("n_train is needed for springs: the paper's are 10 to 96000")


def sizes(run: Any, data: SpringsConfig) -> Sizes:
    # The second test set has longer trajectories; cost is proportional to their steps.
    long = (data.long_chunk - 1) / (data.chunk - 1)
    return Sizes(run.n_train, min(run.n_train, data.validation), data.test, 1 + long)


def require_examples(run: Any, data: SpringsConfig) -> None:
    training = run.n_train * (run.draw + 1)
    needed = training + min(run.n_train, data.validation) + data.test
    if needed > data.systems:
        raise ValueError(
            f"n_train={run.n_train} needs at least {needed} systems, but the dataset has "
            f"{data.systems}"
        )
