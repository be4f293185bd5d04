"""Springs: the motion from an initial state (§4.3, App. I.3)."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from lietransformer.data.examples import Examples
from lietransformer.data.reader import DatasetFile
from lietransformer.dynamics import (
    DirectDynamics,
    HamiltonianDynamics,
    LearntDynamics,
    PotentialDynamics,
    SpringSystem,
    VectorField,
    systems_last,
    trajectory,
)
from lietransformer.errors import require_choice
from lietransformer.experiments.preset import SpringsPrediction
from lietransformer.experiments.springs.dataset import config_of
from lietransformer.experiments.springs.examples import SpringBatch, SpringExamples
from lietransformer.experiments.task import Evaluation, Splits, Task

_DYNAMICS: dict[str, type[LearntDynamics]] = {
    "potential": PotentialDynamics,
    "hamiltonian": HamiltonianDynamics,
    "velocity": DirectDynamics,
}


@dataclass(frozen=True, eq=False)
class RolloutErrors:
    """How far predictions are from the truth: all that the figures of springs are drawn from.

    Steps are those that are predicted: the initial state, which is given, is left out.

    Attributes:
        squared: mean over the coordinates of the squared error, for each trajectory and step.
        energy: (H(ẑ) − H(z₀)) / H(z₀) with the true H of each trajectory, at each step.
        momentum: ‖P(ẑ) − P(z₀)‖, total momentum, for each trajectory and step.
        positions: the predicted q at each step.
    """

    squared: Float[Tensor, "trajectories steps"]
    energy: Float[Tensor, "trajectories steps"]
    momentum: Float[Tensor, "trajectories steps"]
    positions: Float[Tensor, "trajectories steps particles space"]

    def per_step(self) -> Float[Tensor, "steps"]:
        """Mean over the trajectories (Figures 5 and 9)."""
        return self.squared.mean(dim=0)

    def per_trajectory(self) -> Float[Tensor, "trajectories"]:
        """Geometric mean over the steps (Figure 10)."""
        return self.squared.log().mean(dim=1).exp()

    def metrics(self) -> dict[str, float]:
        """Numbers for the whole set; the geometric mean over steps is the paper's test loss."""
        per_step = self.per_step()
        return {
            "mse_geometric": math.exp(per_step.log().mean().item()),
            "mse_arithmetic": per_step.mean().item(),
            "mse_last": per_step[-1].item(),
            "energy_drift": self.energy[:, -1].abs().median().item(),
            "momentum_drift": self.momentum[:, -1].median().item(),
        }


class SpringsTask(Task[SpringBatch]):
    """Roll out from the first state of a chunk, and compare with the others.

    Args:
        predicts: what the model is: "potential", "hamiltonian" or "velocity".
        step: time between two states, that of the dataset.
    """

    name = "springs"
    selection = "mse_arithmetic"
    loss_metric = "mse_arithmetic"

    def __init__(self, predicts: SpringsPrediction, step: float) -> None:
        require_choice("predicts", predicts, SpringsPrediction)
        self.predicts = predicts
        self.step = step

    def predictor(self, model: nn.Module) -> LearntDynamics:
        return _DYNAMICS[self.predicts](model)

    def roll_out(
        self,
        predictor: nn.Module,
        batch: SpringBatch,
        *,
        generator: torch.Generator | None = None,
        between_steps: Callable[[], None] = lambda: None,
    ) -> Float[Tensor, "batch times 2 particles space"]:
        """As many states as the batch has, from its first one on."""
        initial, count = batch.states[:, 0], batch.states.shape[1]
        if torch.is_grad_enabled() and hasattr(predictor, "_orig_mod"):
            # Compiled. Later states depend on parameters: if the first one looks like them to the
            # compiler, one graph serves them all, and takes half as long to compile as two.
            initial = initial.detach().requires_grad_()
        states = []
        for state in trajectory(
            self._field(predictor, batch, generator), initial, step=self.step, states=count
        ):
            states.append(state)
            between_steps()
        return torch.stack(states).transpose(0, 1)

    @staticmethod
    def _field(
        predictor: nn.Module, batch: SpringBatch, generator: torch.Generator | None
    ) -> VectorField:
        if isinstance(predictor, LearntDynamics):
            return predictor.field(batch.masses, batch.stiffness, generator=generator)
        assert generator is None  # of a compiled predictor, which is called as it is
        return lambda state: predictor(state, batch.masses, batch.stiffness)

    def loss(
        self,
        predictor: nn.Module,
        batch: SpringBatch,
        *,
        generator: torch.Generator | None = None,
    ) -> Float[Tensor, ""]:
        """Mean squared error over all states and coordinates; the first state adds zero."""
        return F.mse_loss(self.roll_out(predictor, batch, generator=generator), batch.states)

    @torch.no_grad()
    def errors(
        self,
        predictor: nn.Module,
        batches: Iterable[SpringBatch],
        *,
        generator: torch.Generator | None = None,
        between_steps: Callable[[], None] = lambda: None,
    ) -> RolloutErrors:
        """The errors of every trajectory at every step, in double precision."""
        squared, energy, momentum, positions = [], [], [], []
        for batch in batches:
            states = self.roll_out(
                predictor, batch, generator=generator, between_steps=between_steps
            )
            predicted = states.double()
            truth = batch.states.double()
            squared.append((predicted - truth)[:, 1:].square().mean(dim=(2, 3, 4)))
            system = SpringSystem(
                batch.masses.double().T[..., None], batch.stiffness.double().T[..., None]
            )
            energies = system.energy(systems_last(predicted))
            energy.append(energies[:, 1:] / energies[:, :1] - 1)
            total = predicted[:, :, 1].sum(dim=2)
            momentum.append((total[:, 1:] - total[:, :1]).norm(dim=-1))
            positions.append(predicted[:, 1:, 0])
        return RolloutErrors(*map(torch.cat, (squared, energy, momentum, positions)))

    def metrics(
        self,
        predictor: nn.Module,
        batches: Iterable[SpringBatch],
        *,
        generator: torch.Generator | None = None,
    ) -> dict[str, float]:
        return self.errors(predictor, batches, generator=generator).metrics()

    def evaluate(
        self,
        predictor: nn.Module,
        batches: Iterable[SpringBatch],
        *,
        generator: torch.Generator | None = None,
        between_steps: Callable[[], None] = lambda: None,
    ) -> Evaluation:
        """With the errors of every trajectory at every step, and the predicted positions."""
        errors = self.errors(predictor, batches, generator=generator, between_steps=between_steps)
        # Single precision: these are drawn, and metrics were computed from what they were.
        arrays = {name: tensor.float().cpu().numpy() for name, tensor in vars(errors).items()}
        return Evaluation(errors.metrics(), arrays)


def make_task(run: Any, file: DatasetFile) -> SpringsTask:
    """The task for what the run's model predicts, at the time steps of the dataset."""
    return SpringsTask(run.preset().predicts, config_of(file).step)


def make_examples(run: Any, file: DatasetFile, dtype: torch.dtype) -> Splits:
    """Chunks of trajectories, and for the second test long ones."""

    def examples(split: Any, span: Any = "chunk") -> Examples[Any]:
        return SpringExamples(
            file, split, n_train=run.n_train, draw=run.draw, span=span, dtype=dtype
        )

    tests = {"test": examples("test"), "test_long": examples("test", "long_chunk")}
    return examples("train"), examples("validation"), tests
