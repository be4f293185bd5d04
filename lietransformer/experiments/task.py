"""What every task answers: how a batch becomes a loss, and a set of examples a metric."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Generic, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from lietransformer.data.batches import B
from lietransformer.data.examples import Examples
from lietransformer.data.reader import DatasetFile
from lietransformer.experiments.registry import TaskName


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What came out of a test.

    Attributes:
        metrics: numbers for the whole set.
        arrays: numbers for each example, from which figures are drawn without the model.
    """

    metrics: dict[str, float]
    arrays: dict[str, np.ndarray] = field(default_factory=dict)


class Task(ABC, Generic[B]):
    """One experiment of the paper, for a model that is wrapped by `predictor`.

    Attributes:
        name: of the task.
        selection: the metric by which the best weights are chosen on the validation set.
        larger_is_better: which way.
        loss_metric: the metric that is of the size of the training loss.
        copies: rows per test example in the test sets that have more than one.
    """

    name: TaskName
    selection: str
    larger_is_better: bool = False
    loss_metric: str = "loss"
    copies: Mapping[str, int] = MappingProxyType({})

    @property
    def constants(self) -> dict[str, float]:
        """Numbers that a trained model's outputs depend on, beside its weights."""
        return {}

    @constants.setter
    def constants(self, values: dict[str, float]) -> None:
        """Make a model's outputs mean what they meant when it was trained."""

    def predictor(self, model: nn.Module) -> nn.Module:
        """The model as this task uses it: what is called for each batch, and compiled."""
        return model

    @abstractmethod
    def loss(
        self, predictor: nn.Module, batch: B, *, generator: torch.Generator | None = None
    ) -> Float[Tensor, ""]:
        """The training loss of a batch."""

    @abstractmethod
    def metrics(
        self,
        predictor: nn.Module,
        batches: Iterable[B],
        *,
        generator: torch.Generator | None = None,
    ) -> dict[str, float]:
        """Metrics over all examples: means over examples, never means over batches."""

    def evaluate(
        self,
        predictor: nn.Module,
        batches: Iterable[B],
        *,
        generator: torch.Generator | None = None,
        between_steps: Callable[[], None] = lambda: None,  # noqa: ARG002
    ) -> "Evaluation":
        """The metrics, and what else is to be kept of a test.

        Args:
            predictor: the model, as `predictor` returns it.
            batches: the examples.
            generator: of what is random in the model.
            between_steps: called within a batch, too, if one takes long; it may raise an exception
                to end the test.
        """
        return Evaluation(self.metrics(predictor, batches, generator=generator))


# Training and validation examples, and the test sets by name.
Splits = tuple[Examples[Any], Examples[Any], dict[str, Examples[Any]]]


@runtime_checkable
class TaskModule(Protocol):
    """What the `task.py` of an experiment has beside its task; `run` is a `RunConfig`."""

    def make_task(self, run: Any, file: DatasetFile) -> Task[Any]: ...

    def make_examples(self, run: Any, file: DatasetFile, dtype: torch.dtype) -> Splits: ...


def total(numbers: Sequence[Float[Tensor, ""] | Int[Tensor, ""]]) -> float:
    """The sum of numbers of several batches, for which a GPU is waited for once."""
    return float(sum(torch.stack(list(numbers)).tolist())) if numbers else 0.0
