"""The settings of a sweep, as config.yaml and the tiers give them: typed, and refused if wrong."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from lietransformer.data.augmentation import Augmentation
from lietransformer.experiments.registry import TaskName
from lietransformer.settings import in_seconds

Tier = Literal["smoke", "workstation", "paper"]
Published = Literal["use", "only", "ignore"]
Ablation = Literal["softmax", "log_lift"]
_Settings = dict[str, Any]

# What a sweep says elsewhere, or what the workflow decides.
_NOT_FOR_TRAINING = (
    *("task", "model", "data", "n_train", "target", "augmentation", "seed", "seeds", "threads"),
    *("device", "precision"),
)


def _as_list(value: object) -> object:
    """A number n of seeds stands for 0 … n − 1."""
    if type(value) is not int:
        return value
    if value < 0:
        raise ValueError("the number of seeds must be 0 or more")
    return list(range(value))


def _are_settings_of_a_run(value: object) -> object:
    names = [name for name in _NOT_FOR_TRAINING if isinstance(value, dict) and name in value]
    if names:
        raise ValueError(f"{', '.join(names)}: set where the sweep says what is swept, or compute")
    return value


def _is_a_time(value: object) -> object:
    text = str(value)
    if text != "0":
        try:
            in_seconds(text)
        except ValueError as error:
            raise ValueError(f"must be {error}, or 0 for no verification") from error
    return text


Seeds = Annotated[
    list[Annotated[int, Field(ge=0)]],
    BeforeValidator(_as_list, json_schema_input_type=int | list[int]),
]
Training = Annotated[_Settings, BeforeValidator(_are_settings_of_a_run)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class _Trained(_Part):
    """What every experiment with training has."""

    data: _Settings = Field({}, description="settings of the generator (`lietransformer data`)")
    training: Training = Field(
        {}, description="settings of `lietransformer train` that differ from the paper's"
    )
    by_model: dict[str, Training] = Field(
        {}, description="the same for one model; they win over `training`"
    )

    def settings_for(self, model: str) -> _Settings:
        """The settings of a model's runs that differ from the paper's."""
        return {**self.training, **self.by_model.get(model, {})}


class ConstellationsSweep(_Trained):
    """Table 1: models × augmentations × seeds."""

    models: list[str] = Field(description="as `lietransformer models` lists them")
    augmentations: list[Augmentation] = Field(description="of training examples: none, T2, SE2")
    n_train: int | None = Field(None, ge=1, description="training examples; null: all there are")
    seeds: Seeds = Field(description="how many, or a list of them")


class DataEfficiencySweep(_Part):
    """Figures 4, 5, 6, 9, 10 and 11: models × sizes of the training set × seeds."""

    models: list[str] = Field(description="as `lietransformer models` lists them")
    n_train: list[Annotated[int, Field(ge=1)]] = Field(description="training systems")
    seeds: Seeds = Field(description="how many, or a list of them")


class ParameterEfficiencySweep(_Part):
    """Figures 7 and 8: models of two sizes × seeds."""

    models: list[str] = Field(description="as `lietransformer models` lists them")
    n_train: int = Field(ge=1, description="training systems")
    seeds: Seeds = Field(description="how many, or a list of them")


class AblationSweep(_Part):
    """Softmax instead of constant normalisation; ν∘log instead of the canonical lift."""

    kinds: list[Ablation] = Field(description="softmax (App. I.3), log_lift (App. F); [] for none")
    n_train: int = Field(ge=1, description="training systems")
    seeds: Seeds = Field(description="how many, or a list of them")


class DrawsSweep(_Part):
    """How much the draw of a few training systems decides: models × draws × seeds."""

    models: list[str] = Field(
        ["LieTransformer-T2 small", "LieConv-T2 small"],
        description="as `lietransformer models` lists them",
    )
    n_train: int = Field(10, ge=1, description="training systems")
    draws: int = Field(0, ge=0, description="disjoint sets of training systems; 0 for none")
    epochs: int = Field(300, ge=1, description="of each run")
    seeds: Seeds = Field([0], description="how many, or a list of them")


class SpringsSweep(_Trained):
    """All that is trained on springs."""

    data_efficiency: DataEfficiencySweep
    parameter_efficiency: ParameterEfficiencySweep
    ablations: AblationSweep
    draws: DrawsSweep = DrawsSweep()


class QM9Sweep(_Trained):
    """Table 2: models × targets × augmentations × seeds."""

    models: list[str] = Field(description="as `lietransformer models` lists them")
    targets: list[str] = Field(description="properties, such as homo; [] for none")
    augmentations: list[Augmentation] = Field(description="of training molecules: none, SO3")
    n_train: int | None = Field(None, ge=1, description="training molecules; null: all there are")
    seeds: Seeds = Field(description="how many, or a list of them")


class Limits(_Part):
    """What a training job of a task may take; both grow with each new try."""

    # Five minutes before its end a job is told to save itself: see slurm/config.yaml.
    runtime: int = Field(ge=6, description="minutes, more than five")
    memory: int = Field(ge=1, description="MB")


class Compute(_Part):
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


class Verification(_Part):
    """Published runs that are trained again here, to see whether their numbers come back."""

    budget: Annotated[str, BeforeValidator(_is_a_time, json_schema_input_type=int | str)] = Field(
        "0", description="time for it, such as 90s, 15m or 2h; 0: none"
    )
    seed: int = Field(0, ge=0, description="of the draw of runs")

    @property
    def seconds(self) -> float:
        """The budget as a number."""
        return 0.0 if self.budget == "0" else in_seconds(self.budget)


class SweepConfig(_Part):
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
    invariance: _Settings = Field(
        {}, description="Figure 3: settings of `lietransformer invariance` unlike the paper's"
    )
    complexity: _Settings = Field(
        {}, description="cost of layers and steps: settings of `lietransformer complexity`"
    )
    lifting: _Settings = Field({}, description="Figure 2: settings of `lietransformer lifting`")
    compute: Compute
    tracking: str = Field(
        "sqlite:///results/mlflow.db", description="MLflow store, or http://HOST:PORT, or none"
    )

    @model_validator(mode="after")
    def _has_limits(self) -> "SweepConfig":
        for task in ("constellations", "springs", "qm9"):
            if task not in self.compute.limits:
                raise ValueError(f"compute.limits.{task} is missing")
        return self
