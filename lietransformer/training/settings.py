"""Everything that defines a run: its numbers follow from these settings and from nothing else."""

import hashlib
import json
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from lietransformer.data.config import Augmentation
from lietransformer.experiments.registry import TaskName, plan_of
from lietransformer.processes import available_cores
from lietransformer.training.schedule import ScheduleKind

Device = Literal["cpu", "cuda"]
Precision = Literal["float32", "float64", "tf32", "bf16"]
Weights = Literal["best", "final"]

_NULL_MEANS_SOMETHING = (
    *("n_train", "target", "patience", "ema", "validation_examples", "test_examples"),
)
_OPTIONS = ("draw", "size_pool", "target")  # not every experiment has them


class RunSettings(BaseModel):
    """The settings of one run. What is left out has the paper's value for the task.

    Checked without building the model, which would need torch: see `training.config.RunConfig`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    task: TaskName = Field(description="constellations, springs or qm9")
    model: str = Field(description="a model of the task, as `lietransformer models` lists them")
    architecture: dict[str, Any] = Field(
        {}, description="settings of the model that differ from the paper's, such as {width: 80}"
    )
    data: Path = Field(description="the dataset, written by `lietransformer data`")
    n_train: int | None = Field(
        None, ge=1, description="training examples; null: all (springs: has to be given)"
    )
    draw: int = Field(
        0, ge=0, description="which n_train systems: 0 for the first, 1 for the next (springs only)"
    )
    target: str | None = Field(None, description="the property to predict (qm9 only)")
    augmentation: Augmentation = Field("none", description="random motion of training examples")

    seed: int = Field(0, ge=0, lt=2**63, description="of the model's parameters")
    data_seed: int = Field(
        ge=0, lt=2**63, description="of the order and augmentation of the data; default: seed"
    )
    sampling_seed: int = Field(
        ge=0, lt=2**63, description="of lift samples and sampled neighbours; default: seed"
    )

    epochs: int = Field(ge=1, description="passes over the training examples, at most")
    batch_size: int = Field(ge=1, description="examples in a step")
    learning_rate: float = Field(gt=0, description="of Adam, at its highest")
    betas: tuple[float, float] = Field(description="of Adam")
    amsgrad: bool = Field(False, description="the AMSGrad variant of Adam")
    ema: float | None = Field(
        None,
        ge=0,
        lt=1,
        description="decay of the moving average of the weights, which is then what is evaluated "
        "and kept; null: no average",
    )
    schedule: ScheduleKind = Field(description="of the learning rate")
    schedule_per: Literal["epoch", "step"] = Field(
        description="whether the learning rate changes with each epoch or each step"
    )
    warmup: float = Field(
        0.01,
        ge=0,
        lt=1,
        description="share of the run in which the learning rate rises, if it does",
    )
    final_rate: float = Field(
        1.0, gt=0, le=1, description="share of the learning rate that exponential ends with"
    )
    size_pool: int = Field(
        1,
        ge=1,
        description="sort molecules by size within this many batches: less padding, but batches "
        "are no longer random (qm9 only)",
    )
    evaluations: int = Field(ge=1, description="on the validation set, evenly spaced over the run")
    patience: int | None = Field(
        None,
        ge=1,
        description="stop after this many epochs without a better validation; null: never",
    )
    validation_examples: int | None = Field(None, ge=1, description="at most; null: all")
    test_examples: int | None = Field(None, ge=1, description="at most; null: all")
    evaluation_batch_size: int = Field(ge=1, description="examples at a time when evaluating")
    test_weights: tuple[Weights, ...] = Field(
        ("best", "final"), description="which weights are tested"
    )

    device: Device = Field(
        "cpu", description="where to compute: cpu, cuda, or auto for cuda if there is one"
    )
    precision: Precision = Field(
        "float32", description="of parameters and arithmetic; tf32 and bf16 of products only"
    )
    threads: int = Field(ge=1, description="CPU threads; default: the cores of this process")

    @model_validator(mode="before")
    @classmethod
    def _fill_in(cls, given: Any) -> Any:
        """Fill in settings that are omitted, or null where null has no meaning."""
        if not isinstance(given, dict) or given.get("task") not in get_args(TaskName):
            return given  # the ordinary checks will say what is wrong
        return cls._completed(
            {
                name: value
                for name, value in given.items()
                if value is not None or name in _NULL_MEANS_SOMETHING
            }
        )

    @classmethod
    def _completed(cls, given: dict[str, Any]) -> dict[str, Any]:
        """The settings, with the paper's for what is not given."""
        seed = given.get("seed", 0)
        common = {"data_seed": seed, "sampling_seed": seed, "threads": available_cores()}
        settings = plan_of(given["task"]).paper_settings(given)
        # One evaluation for each epoch, unless the paper says otherwise.
        settings.setdefault("evaluations", given.get("epochs", settings["epochs"]))
        return common | settings | given

    @field_validator("*", mode="before")
    @classmethod
    def _is_what_it_looks_like(cls, value: object, info: Any) -> object:
        """Numbers are numbers: neither yes nor "10", nor 10.0 where they are counted."""
        assert info.field_name is not None
        kind = cls.model_fields[info.field_name].annotation
        if kind in (int, int | None) and value is not None and type(value) is not int:
            raise ValueError("a whole number was expected")
        if kind is float and isinstance(value, str):
            with suppress(ValueError):
                return float(value)  # YAML takes 1e-3, without a point, for a text
        if kind is float and type(value) not in (int, float):
            raise ValueError("a number was expected")
        return value

    @field_validator("betas")
    @classmethod
    def _are_shares(cls, value: tuple[float, float]) -> tuple[float, float]:
        if not all(0 <= beta < 1 for beta in value):
            raise ValueError("each of the two must be at least 0 and below 1")
        return value

    @model_validator(mode="after")
    def _fits(self) -> "RunSettings":
        plan = plan_of(self.task)
        if self.model not in plan.MODELS:
            raise ValueError(f"model must be one of {', '.join(plan.MODELS)}, got {self.model!r}")
        if self.augmentation not in plan.AUGMENTATIONS:
            known = ", ".join(plan.AUGMENTATIONS)
            raise ValueError(f"augmentation for {self.task} must be one of {known}")
        for name in _OPTIONS:
            default = RunSettings.model_fields[name].default
            if name not in plan.OPTIONS and getattr(self, name) != default:
                raise ValueError(f"{name} does not apply to {self.task}: leave the setting out")
        if self.precision == "tf32" and self.device != "cuda":
            raise ValueError("precision tf32 exists on cuda only: use float32")
        if not self.test_weights:
            raise ValueError("test_weights must name best, final or both")
        plan.check(self)
        return self

    @property
    def identity(self) -> dict[str, Any]:
        """Everything that determines the numbers, except the dataset, whose path does not matter.

        Threads, compilation and CUDA graphs only change rounding and are left out, too: a run may
        resume on other cores or with another compiler.
        """
        left_out = {"data", "threads", "compile", "graphs"}
        # A setting that came later: runs that do not use it keep their identity.
        return self.model_dump(mode="json", exclude=left_out | (set() if self.draw else {"draw"}))

    def identity_hash(self, dataset_hash: str) -> str:
        """A name for this run's numbers: the same settings and data have the same."""
        content = json.dumps({**self.identity, "dataset": dataset_hash}, sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()
