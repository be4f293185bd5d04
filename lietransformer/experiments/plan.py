"""What the `plan.py` of an experiment says: its settings, what is swept, how much data a run takes.

None of it imports torch, because every job of a workflow plans the sweep again.
"""

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple, Protocol, runtime_checkable

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from lietransformer.data.config import GeneratorConfig
from lietransformer.experiments.registry import PartName

Ablation = Literal["softmax", "log_lift"]
Settings = dict[str, Any]

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


Seeds = Annotated[
    list[Annotated[int, Field(ge=0)]],
    BeforeValidator(_as_list, json_schema_input_type=int | list[int]),
]
Training = Annotated[Settings, BeforeValidator(_are_settings_of_a_run)]


class Block(BaseModel):
    """A block of config.yaml. Unknown keys are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


@dataclass(frozen=True)
class Planned:
    """Runs that differ in nothing but their seed.

    Attributes:
        part: what of the experiment they are for.
        settings: of `lietransformer train`.
        seeds: of the runs.
        ablation: what is changed to see its effect.
    """

    part: PartName
    settings: Settings
    seeds: list[int]
    ablation: Ablation | None = None


class Swept(Block):
    """An experiment's block of config.yaml."""

    data: Settings = Field({}, description="settings of the generator (`lietransformer data`)")
    training: Training = Field(
        {}, description="settings of `lietransformer train` that differ from the paper's"
    )
    by_model: dict[str, Training] = Field(
        {}, description="the same for one model; they win over `training`"
    )

    def settings_for(self, model: str) -> Settings:
        """The settings of a model's runs that differ from the paper's."""
        return {**self.training, **self.by_model.get(model, {})}

    @abstractmethod
    def planned(self) -> Iterator[Planned]:
        """All runs."""


class Sizes(NamedTuple):
    """How many examples a run uses, and the cost of all test sets in units of the first."""

    train: int
    validation: int
    test: int
    test_cost: float = 1.0


@runtime_checkable
class ExperimentPlan(Protocol):
    """The contents of an experiment's `plan.py`."""

    Generator: type[GeneratorConfig]  # settings of the dataset
    Sweep: type[Swept]
    MODELS: tuple[str, ...]  # names of its presets
    AUGMENTATIONS: tuple[str, ...]  # random motions of examples that make sense here
    OPTIONS: tuple[str, ...]  # settings of a run that not every experiment has
    SUMMARY: str  # of the dataset, for `lietransformer data --help`

    def paper_settings(self, given: Mapping[str, Any]) -> Settings:
        """The paper's settings of training, for a run with these settings."""
        ...

    def check(self, run: Any) -> None:
        """Raise ValueError if settings of a run do not fit this experiment."""
        ...

    def sizes(self, run: Any, data: Any) -> Sizes:
        """Examples for a run, from a dataset with these generator settings."""
        ...

    def require_examples(self, run: Any, data: Any) -> None:
        """Raise ValueError if a dataset of these settings has too few examples for a run."""
        ...
