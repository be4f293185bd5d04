"""Constellations: settings of the dataset, what is swept, the paper's settings of training."""

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from pydantic import Field, model_validator

from lietransformer.data.config import Augmentation, GeneratorConfig
from lietransformer.experiments.plan import Planned, Seeds, Settings, Sizes, Swept

MODELS = ("LieTransformer-T2", "LieTransformer-SE2", "SetTransformer")
AUGMENTATIONS = ("none", "T2", "SE2")
OPTIONS = ()
SUMMARY = "count the patterns among points in the plane (Table 1, Figure 3)"
# The test sets, and how many rows each has per test example. Those of Table 1 hold every example
# twice, untransformed and transformed; in those that end in _all every example is transformed.
TEST_SETS = {"test": 1, "test_T2": 2, "test_SE2": 2, "test_T2_all": 1, "test_SE2_all": 1}

Variant = Literal["release", "text"]


class ConstellationsConfig(GeneratorConfig):
    """Settings of the constellations generator; the defaults are the paper's."""

    variant: Variant = Field(
        "release",
        description="how instances are placed and examples scaled: as the authors' code does it, "
        "or as the paper's text says",
    )
    train: int = Field(10_000, ge=1, le=10**7, description="number of training examples")
    validation: int = Field(1_000, ge=1, le=10**7, description="number of validation examples")
    test: int = Field(1_000, ge=1, le=10**7, description="number of test examples")
    repetitions: int = Field(
        2, ge=1, le=20, description="how often each pattern can occur in an example"
    )
    keep_probability: float = Field(
        0.5, ge=0.001, le=1, description="chance that an instance is there; at least one always is"
    )
    rotation: float = Field(
        0.33, ge=0, le=1, description="an instance is rotated by up to this fraction of ±π"
    )
    upscale: float = Field(
        0.0,
        ge=0,
        le=1000,
        description="an instance is scaled by a factor in [1, 1 + upscale] (variant text only)",
    )
    field: float = Field(
        24.0,
        gt=0,
        le=1e6,
        description="side of the square that instances lie in (polygons of variant release: 3 ×)",
    )
    noise: float = Field(
        0.1, ge=0, le=1000, description="standard deviation of each vertex coordinate"
    )

    @model_validator(mode="after")
    def _upscale_fits_variant(self) -> "ConstellationsConfig":
        if self.variant == "release" and self.upscale != 0:
            raise ValueError("upscale must be 0 with variant=release; use variant=text")
        return self


class ConstellationsSweep(Swept):
    """Table 1: models × augmentations × seeds."""

    models: list[str] = Field(description="as `lietransformer models` lists them")
    augmentations: list[Augmentation] = Field(description="of training examples: none, T2, SE2")
    n_train: int | None = Field(None, ge=1, description="training examples; null: all there are")
    seeds: Seeds = Field(description="how many, or a list of them")

    def planned(self) -> Iterator[Planned]:
        for model in self.models:
            for augmentation in self.augmentations:
                settings = {"model": model, "augmentation": augmentation, "n_train": self.n_train}
                yield Planned(
                    "constellations", {**settings, **self.settings_for(model)}, self.seeds
                )


Generator = ConstellationsConfig
Sweep = ConstellationsSweep


def paper_settings(given: Mapping[str, Any]) -> Settings:  # noqa: ARG001
    """App. I.1. The paper trains "until convergence": epochs and patience are ours."""
    return {
        "epochs": 300,
        "patience": 30,
        "batch_size": 32,
        "learning_rate": 1e-4,
        "betas": (0.5, 0.9),
        "schedule": "constant",
        "schedule_per": "epoch",
        "evaluation_batch_size": 100,
    }


def check(run: Any) -> None:
    """Nothing beside what every run has."""


def sizes(run: Any, data: ConstellationsConfig) -> Sizes:
    train = run.n_train or data.train
    return Sizes(train, data.validation, data.test, float(sum(TEST_SETS.values())))


def require_examples(run: Any, data: ConstellationsConfig) -> None:
    if run.n_train is not None and run.n_train > data.train:
        raise ValueError(
            f"it needs at least {run.n_train} training examples, but the dataset has {data.train}"
        )
