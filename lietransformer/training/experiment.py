"""A run's task, model and data, put together from its settings."""

import copy
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from lietransformer.data.batches import to_device
from lietransformer.data.examples import Examples, FirstExamples
from lietransformer.data.loader import Loader
from lietransformer.data.reader import DatasetFile
from lietransformer.data.resident import resident
from lietransformer.errors import UserError
from lietransformer.experiments.registry import task_of
from lietransformer.experiments.task import Evaluation
from lietransformer.models import count_parameters
from lietransformer.rng import stream
from lietransformer.training.allocation import keep_freed_memory
from lietransformer.training.config import RunConfig
from lietransformer.training.optimiser import AveragedAdam

_MOST_GRAPHS = 1024


class Experiment:
    """What is trained, on what, and how it is judged.

    Attributes:
        config: the run's settings.
        file: the dataset.
        task: losses and metrics.
        model: on the run's device, in its precision.
        is_random: whether the model is given random numbers, even if a batch needs none.
        predictor: the model as the task uses it; compiled where the settings say so.
        tests: the test sets by name.
        between_steps: called again and again during an evaluation, which can be long: before each
            batch, and after each step in time of a trajectory.
    """

    def __init__(self, config: RunConfig) -> None:
        self.config = config
        self.between_steps: Callable[[], None] = lambda: None
        self.file = DatasetFile(config.data, kind=config.task)
        self.dtype = torch.float64 if config.precision == "float64" else torch.float32
        self.device = _available(config.device)
        makers = task_of(config.task)
        self.task = makers.make_task(config, self.file)
        train, validation, self.tests = makers.make_examples(config, self.file, self.dtype)
        self.n_train = len(train)
        self._training_examples = resident(train, self.device)
        validation = _at_most(validation, config.validation_examples)
        self.validation = resident(validation, self.device)
        self.tests = {
            name: _at_most(examples, self._test_rows(name)) for name, examples in self.tests.items()
        }
        self._take_seeds()

    def _test_rows(self, name: str) -> int | None:
        """How many rows of a test set to use; some hold every example twice."""
        count = self.config.test_examples
        return None if count is None else count * self.task.copies.get(name, 1)

    def with_seeds_of(self, config: RunConfig) -> "Experiment":
        """The same experiment with the seeds of other settings, otherwise equal; data is shared."""
        other = copy.copy(self)
        other.config = config
        other._take_seeds()
        return other

    def _take_seeds(self) -> None:
        """Set up what depends on the seeds: the order of the data, and the model."""
        config = self.config
        self.train = Loader(
            self._training_examples,
            min(config.batch_size, self.n_train),
            order_seed=config.data_seed,
            augmentation=config.augmentation,
            augmentation_seed=config.data_seed,
            size_pool=config.size_pool,
        )
        self.model = config.preset().build(seed=config.seed).to(self.device, self.dtype)
        self.parameters = count_parameters(self.model)
        self.is_random = bool(getattr(self.model, "is_random", False))
        self.predictor = self.task.predictor(self.model)
        if config.compile:
            self.predictor = compiled(self.predictor)

    @property
    def steps_per_epoch(self) -> int:
        """Number of training batches in an epoch."""
        return len(self.train)

    def optimiser(self) -> torch.optim.Optimizer:
        """Adam, as the settings say, for the model's parameters."""
        return self.optimiser_of(self.model.parameters())

    def optimiser_of(self, parameters: Iterable[Tensor]) -> torch.optim.Optimizer:
        """Adam, as the settings say; its update is one operation, whatever the device.

        On a GPU its learning rate and its count of steps lie there, so that a step can be recorded.
        """
        config, rate = self.config, self.config.learning_rate
        on_gpu = self.device.type == "cuda"
        settings: dict[str, Any] = {
            "lr": torch.tensor(rate, device=self.device) if on_gpu else rate,
            "betas": config.betas,
            "amsgrad": config.amsgrad,
            "fused": True,
            "capturable": on_gpu,
        }
        if config.ema is None:
            return torch.optim.Adam(parameters, **settings)
        return AveragedAdam(parameters, ema=config.ema, **settings)

    def batches(self, epoch: int, first: int = 0) -> Iterator[Any]:
        """The training batches of an epoch, from number `first` on, on the run's device."""
        for batch in self.train.epoch(epoch, first=first):
            yield to_device(batch, self.device)

    def largest_batch(self) -> Any:
        """Training examples with as many points as any."""
        sizes = self._training_examples.sizes
        order = np.arange(self.n_train) if sizes is None else np.argsort(sizes, kind="stable")
        return self._training_examples.take(order[-self.train.batch_size :])

    def loss(self, batch: Any, step: int) -> Tensor:
        """The training loss; the step determines the model's random numbers."""
        return self.loss_with(batch, self.sampling(step))

    def loss_with(self, batch: Any, generator: torch.Generator | None) -> Tensor:
        """The training loss; the generator gives the model's random numbers."""
        with self.arithmetic():
            return self.task.loss(self.predictor, batch, generator=generator)

    def sampling(self, step: int) -> torch.Generator | None:
        """The generator of a training step."""
        return self._sampling("train", step)

    def validate(self) -> dict[str, float]:
        """Metrics on the validation set, with the model's current weights."""
        return self.evaluate("validation", self.validation).metrics

    def test(self, name: str) -> Evaluation:
        """One of the test sets, with the model's current weights.

        All of them have the same lift samples: where the examples of two differ by a motion
        alone, so do the inputs of the model.
        """
        return self.evaluate("test", self.tests[name])

    def evaluate(self, purpose: str, examples: Examples[Any]) -> Evaluation:
        """Metrics of some examples; for a purpose, the same samples are drawn every time."""
        loader = Loader(examples, self.config.evaluation_batch_size)
        self.model.eval()
        try:
            with self.arithmetic():
                return self.task.evaluate(
                    self.predictor,
                    self._one_by_one(loader),
                    generator=self._sampling(purpose, 0),
                    between_steps=self.between_steps,
                )
        finally:
            self.model.train()

    def _one_by_one(self, loader: Loader[Any]) -> Iterator[Any]:
        for batch in loader.epoch(0):
            self.between_steps()
            yield to_device(batch, self.device)

    def arithmetic(self) -> AbstractContextManager[Any]:
        """Products in bfloat16 inside the block, where the settings ask for it."""
        if self.config.precision == "bf16":
            return torch.autocast(self.device.type, dtype=torch.bfloat16)
        return nullcontext()

    def _sampling(self, purpose: str, step: int) -> torch.Generator | None:
        """The source of lift samples and neighbours, where the model has any."""
        if not self.is_random:
            return None
        return stream(self.config.sampling_seed, purpose, step)


def prepare_process(config: RunConfig) -> None:
    """Set threads, memory and precision of products, which are global to the process."""
    torch.set_num_threads(config.threads)
    keep_freed_memory()
    # Numbers below 1e-38 count as 0. They add nothing, but a CPU takes much longer for each; a
    # trained graph network has so many that its steps were three times slower.
    torch.set_flush_denormal(True)
    # Always set: a process may have had a run of another precision before.
    torch.set_float32_matmul_precision("high" if config.precision == "tf32" else "highest")


def compiled(predictor: nn.Module) -> nn.Module:
    """One graph for every shape it meets: none of it is left to Python, none is generalised.

    Compiled code is kept on disk by torch, so that only the first process pays for it.
    """
    # Shapes of training and evaluation, their last batches, and each seed's model: torch would
    # give up after eight.
    torch._dynamo.config.recompile_limit = _MOST_GRAPHS
    torch._dynamo.config.accumulated_recompile_limit = _MOST_GRAPHS
    return torch.compile(predictor, fullgraph=True, dynamic=False)  # type: ignore[return-value]


def _available(name: str) -> torch.device:
    if name == "cuda" and not torch.cuda.is_available():
        raise UserError(
            "the device cuda needs a GPU that torch can use, and there is none. Use --device cpu "
            "or auto, or install a CUDA build of torch."
        )
    return torch.device(name)


def _at_most(examples: Examples[Any], count: int | None) -> Examples[Any]:
    return examples if count is None or count >= len(examples) else FirstExamples(examples, count)
