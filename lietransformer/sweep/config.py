"""The settings of a sweep, as config.yaml and the tiers give them: typed, and refused if wrong."""

from typing import Annotated, Literal, get_args

from pydantic import BeforeValidator, Field, model_validator

from lietransformer.experiments.constellations.plan import ConstellationsSweep
from lietransformer.experiments.plan import Block, Settings
from lietransformer.experiments.qm9.plan import QM9Sweep
from lietransformer.experiments.registry import TaskName
from lietransformer.experiments.springs.plan import SpringsSweep
from lietransformer.settings import in_seconds

Tier = Literal["smoke", "workstation", "paper"]
Published = Literal["use", "only", "ignore"]


def _is_a_time(value: object) -> object:
    text = str(value)
    try:
        in_seconds(text)
    except ValueError as error:
        raise ValueError(f"must be {error} for no verification") from error
    return text


class Limits(Block):
    """What a training job of a task may take; both grow with each new try."""

    # Five minutes before its end a job is told to save itself: see slurm/config.yaml.
    runtime: int = Field(ge=6, description="minutes, more than five")
    memory: int = Field(ge=1, description="MB")


class Compute(Block):
    """How runs are computed. None of it but the device and precision changes a number."""

    device: Literal["auto", "cpu", "cuda"] = Field("auto", description="where to train")
    precision: Literal["float32", "float64", "tf32", "bf16"] = Field(
        "float32", description="of the arithmetic"
    )
    threads: int = Field(1, ge=1, description="CPU threads of a run")
    gpus: int = Field(1, ge=0, le=1, description="of a training job on a cluster; 0: it has none")
    seeds_per_job: int = Field(1, ge=1, description="seeds of a configuration that a job trains")
    seeds_at_once: bool | Literal["auto"] = Field(
        "auto", description="train the seeds of a job at once; auto: on a GPU, where it pays"
    )
    checkpoint_every: float = Field(60, ge=0, description="seconds of work that a kill may cost")
    limits: dict[TaskName, Limits] = Field(description="of training jobs on a cluster")


class Verification(Block):
    """Published runs that are trained again here, to see whether their numbers come back."""

    budget: Annotated[str, BeforeValidator(_is_a_time, json_schema_input_type=int | str)] = Field(
        "0", description="time for it, such as 90s, 15m or 2h; 0: none"
    )
    seed: int = Field(0, ge=0, description="of the draw of runs")

    @property
    def seconds(self) -> float:
        """The budget as a number."""
        return in_seconds(self.budget)


class SweepConfig(Block):
    """config.yaml, with what it leaves to the tier filled in."""

    tier: Tier = Field(
        "workstation", description="smoke, workstation or paper: how big everything is"
    )
    published: Published = Field(
        "use",
        description="runs of the archive results/published: use them and train the others; only "
        "them, and train nothing; ignore them, and train everything",
    )
    verification: Verification = Verification()
    constellations: ConstellationsSweep
    springs: SpringsSweep
    qm9: QM9Sweep
    invariance: Settings = Field(
        {}, description="Figure 3: settings of `lietransformer invariance` unlike the paper's"
    )
    complexity: Settings = Field(
        {}, description="cost of layers and steps: settings of `lietransformer complexity`"
    )
    lifting: Settings = Field({}, description="Figure 2: settings of `lietransformer lifting`")
    compute: Compute
    tracking: str = Field(
        "sqlite:///results/mlflow.db", description="MLflow store, or http://HOST:PORT, or none"
    )

    @model_validator(mode="after")
    def _has_limits(self) -> "SweepConfig":
        for task in get_args(TaskName):
            if task not in self.compute.limits:
                raise ValueError(f"compute.limits.{task} is missing")
        return self
