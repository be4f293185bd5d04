"""Everything that defines a run: its numbers follow from these settings and from nothing else."""

import hashlib
import json
import math
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, get_args

import torch
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    field_validator,
    model_validator,
)

from lietransformer.data.augmentation import Augmentation
from lietransformer.errors import UserError
from lietransformer.experiments.preset import Preset
from lietransformer.experiments.qm9.properties import PROPERTIES
from lietransformer.experiments.registry import TaskName, get_preset, presets
from lietransformer.processes import available_cores
from lietransformer.settings import read_settings, validated
from lietransformer.training.architecture import changed
from lietransformer.training.compile_policy import (
    can_be_compiled,
    can_be_recorded,
    compilation_pays,
    graphs_pay,
    is_random,
)
from lietransformer.training.schedule import ScheduleKind

Device = Literal["cpu", "cuda"]
Precision = Literal["float32", "float64", "tf32", "bf16"]
Weights = Literal["best", "final"]

_NULL_MEANS_SOMETHING = (
    *("n_train", "target", "patience", "ema", "validation_examples", "test_examples"),
)

# Which augmentations make sense on the space of a task.
_AUGMENTATIONS: dict[str, tuple[str, ...]] = {
    "constellations": ("none", "T2", "SE2"),
    "springs": ("none", "T2", "SE2"),
    "qm9": ("none", "SO3"),
}


class RunConfig(BaseModel):
    """The settings of one run. What is left out has the paper's value for the task."""

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
    compile: bool = Field(description="compile the model; default: where it pays")
    graphs: bool = Field(
        description="record a step as a CUDA graph and repeat it; default: where it pays"
    )

    @model_validator(mode="before")
    @classmethod
    def _fill_in(cls, given: Any) -> Any:
        """Fill in settings that are omitted, or null where null has no meaning."""
        if not isinstance(given, dict) or given.get("task") not in get_args(TaskName):
            return given  # the ordinary checks will say what is wrong
        known = {
            name: value
            for name, value in given.items()
            if value is not None or name in _NULL_MEANS_SOMETHING
        }
        if known.get("device") == "auto":
            known["device"] = best_device()
        defaults = _paper_settings(known)
        return defaults | known

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
    def _fits(self) -> "RunConfig":
        if self.task == "springs" and self.n_train is None:
            raise ValueError("n_train is needed for springs: the paper's are 10 to 96000")
        if (self.target is not None) != (self.task == "qm9"):
            raise ValueError("target is needed for qm9, and for nothing else")
        targets = [prop.name for prop in PROPERTIES]
        if self.target is not None and self.target not in targets:
            raise ValueError(f"target must be one of {', '.join(targets)}")
        if self.augmentation not in _AUGMENTATIONS[self.task]:
            known = ", ".join(_AUGMENTATIONS[self.task])
            raise ValueError(f"augmentation for {self.task} must be one of {known}")
        if self.draw and self.task != "springs":
            raise ValueError("draw applies to springs only: leave the setting out")
        if self.size_pool != 1 and self.task != "qm9":
            raise ValueError("size_pool applies to qm9 only: leave the setting out")
        if self.precision == "tf32" and self.device != "cuda":
            raise ValueError("precision tf32 exists on cuda only: use float32")
        if not self.test_weights:
            raise ValueError("test_weights must name best, final or both")
        preset = self.preset()
        if self.compile and not can_be_compiled(preset):
            raise ValueError(
                f"compile: {self.model} draws random numbers, which cannot be compiled"
                if is_random(preset)
                else f"compile: only springs models are compiled, not {self.task} ones"
            )
        if self.graphs and self.device != "cuda":
            raise ValueError("graphs exist on cuda only: leave the setting out")
        if self.graphs and not can_be_recorded(preset):
            raise ValueError(f"graphs: what {self.model} does depends on numbers, not on shapes")
        return self

    def preset(self) -> Preset:
        """The model, with the settings of its architecture that differ from the paper's."""
        try:
            preset = get_preset(self.task, self.model)
        except ValueError:
            names = ", ".join(p.model for p in presets() if p.task == self.task)
            raise ValueError(f"model must be one of {names}, got {self.model!r}") from None
        return changed(preset, self.architecture)

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


def paper_epochs(n_train: int) -> int:
    """Springs: 400·√(3000/n) epochs, so that smaller sets are seen more often (App. I.3)."""
    return max(1, round(400 * math.sqrt(3000 / n_train)))


def read_runs(path: Path | None, overrides: Sequence[str] = ()) -> tuple[list[RunConfig], bool]:
    """The runs that a YAML file and overrides describe, and whether there may be several.

    `seeds: [0, 1, 2]` in place of `seed` describes one run for each.
    """
    settings = read_settings(path, overrides)
    if "seeds" not in settings:
        return [validated(RunConfig, settings, path, overrides)], False
    seeds = settings.pop("seeds")
    are_numbers = isinstance(seeds, list) and all(type(seed) is int for seed in seeds)
    if not are_numbers or not seeds or len(set(seeds)) < len(seeds) or "seed" in settings:
        beside = " beside a seed" if "seed" in settings else ""
        raise UserError(
            "give either `seed: 0`, or `seeds:` with a list of different whole numbers, for "
            f"example `seeds: [0, 1, 2]`; got seeds: {seeds}{beside}."
        )
    return [validated(RunConfig, {**settings, "seed": n}, path, overrides) for n in seeds], True


def best_device() -> Device:
    """What "auto" stands for on this machine."""
    return "cuda" if torch.cuda.is_available() else "cpu"


def _qm9_settings(model: str) -> dict[str, Any]:
    """The paper's for LieTransformer and LieConv; for the others those of their own papers."""
    if model in ("SchNet", "DimeNet++"):
        # 3 million steps on 100,000 molecules. DimeNet++: decay by 0.01 in 4 million steps after
        # 3,000 of warm-up; SchNet: decay by 0.96 every 100,000 steps.
        is_schnet = model == "SchNet"
        return {
            "epochs": 960,
            "batch_size": 32,
            "learning_rate": 1e-3,
            "betas": (0.9, 0.999),
            "amsgrad": not is_schnet,
            "ema": 0.99 if is_schnet else 0.999,
            "schedule": "exponential",
            "schedule_per": "step",
            "warmup": 0.0 if is_schnet else 0.001,
            "final_rate": 0.96**30 if is_schnet else 0.01**0.75,
            "evaluation_batch_size": 32,
        }
    is_lie_conv = model.startswith("LieConv")
    return {
        "epochs": 500,
        "batch_size": 75,
        "learning_rate": 3e-3 if is_lie_conv else 3e-4,
        "betas": (0.9, 0.999) if is_lie_conv else (0.5, 0.9),
        "schedule": "cosine_warmup",
        "schedule_per": "step",
        "evaluation_batch_size": 75,
    }


def _paper_settings(given: dict[str, Any]) -> dict[str, Any]:
    """The settings of fidelity to the paper, for the task and model that are asked for."""
    seed = given.get("seed", 0)
    common = {"data_seed": seed, "sampling_seed": seed, "threads": available_cores()}
    if given["task"] == "constellations":
        # "Until convergence": the paper gives no number of epochs, these are ours.
        settings = {
            "epochs": 300,
            "patience": 30,
            "batch_size": 32,
            "learning_rate": 1e-4,
            "betas": (0.5, 0.9),
            "schedule": "constant",
            "schedule_per": "epoch",
            "evaluation_batch_size": 100,
        }
    elif given["task"] == "springs":
        n_train = given.get("n_train")
        count = n_train if type(n_train) is int and n_train > 0 else 100
        settings = {
            "epochs": paper_epochs(count),
            "batch_size": min(100, count),
            "learning_rate": 1e-3,
            "betas": (0.9, 0.999),
            "schedule": "cosine",
            "schedule_per": "epoch",
            "evaluations": 100,
            "evaluation_batch_size": 100,
        }
    else:
        settings = _qm9_settings(str(given.get("model", "")))
    # One evaluation for each epoch, unless the paper says otherwise.
    settings.setdefault("evaluations", given.get("epochs", settings["epochs"]))
    settings["compile"] = compilation_pays(given, settings)
    settings["graphs"] = graphs_pay(given)
    return common | settings
