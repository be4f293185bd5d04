"""From a model of point clouds to equations of motion (paper, §4.3).

A state is (batch, 2, particles, space): q and p. Positions are centred before a model sees
them; features of a particle are its mass and spring constant, preceded by its momentum where
a model is a function of momenta as well.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lietransformer.clouds import PointCloud
from lietransformer.dispatch import replaceable
from lietransformer.dynamics.rollout import VectorField


class LearntDynamics(nn.Module, ABC):
    """ż = f(z; m, k) for a system whose particles have masses m and spring constants k.

    Attributes:
        model: maps a PointCloud to numbers.
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        if any(getattr(module, "updates_buffers", False) for module in model.modules()):
            raise ValueError(
                "a model with batch norm or a radius that adapts changes while it trains, so it "
                'defines no equation of motion. Build it with norm="none" and fill=None.'
            )
        self.model = model

    @abstractmethod
    def forward(
        self,
        state: Float[Tensor, "batch 2 particles space"],
        masses: Float[Tensor, "batch particles"],
        stiffness: Float[Tensor, "batch particles"],
        *,
        generator: torch.Generator | None = None,
    ) -> Float[Tensor, "batch 2 particles space"]:
        """(q̇, ṗ)."""

    def field(
        self,
        masses: Float[Tensor, "batch particles"],
        stiffness: Float[Tensor, "batch particles"],
        *,
        generator: torch.Generator | None = None,
    ) -> VectorField:
        """The same as a function of the state alone, to be integrated by `rollout`.

        A model that draws random numbers draws the same ones at every state: otherwise the
        field would not be a function, and no rule could integrate it.
        """
        again = _repeated(generator)
        return lambda state: self(state, masses, stiffness, generator=again())


class PotentialDynamics(LearntDynamics):
    """H(q, p) = Σᵢ pᵢ²/2mᵢ + V(q); the model is V. (q̇, ṗ) = (p/m, −∂V/∂q).

    For a translation-invariant V total momentum is conserved, for a rotation-invariant one
    angular momentum too. Centring makes every V translation-invariant.
    """

    def forward(
        self,
        state: Float[Tensor, "batch 2 particles space"],
        masses: Float[Tensor, "batch particles"],
        stiffness: Float[Tensor, "batch particles"],
        *,
        generator: torch.Generator | None = None,
    ) -> Float[Tensor, "batch 2 particles space"]:
        return _velocity(Potential(self.model, masses, stiffness), state, generator)

    def field(
        self,
        masses: Float[Tensor, "batch particles"],
        stiffness: Float[Tensor, "batch particles"],
        *,
        generator: torch.Generator | None = None,
    ) -> VectorField:
        """The same as a function of the state alone.

        What does not depend on positions can be computed once for all states.
        """
        again, potential = _repeated(generator), Potential(self.model, masses, stiffness)
        return lambda state: _velocity(potential, state, again())


@dataclass(frozen=True, eq=False)
class Potential:
    """V of a model as a function of positions, for the particles of a batch.

    One object stands for all states of a trajectory.
    """

    model: nn.Module
    masses: Float[Tensor, "batch particles"]
    stiffness: Float[Tensor, "batch particles"]

    @property
    def features(self) -> Float[Tensor, "batch particles 2"]:
        """(m, k)."""
        return torch.stack([self.masses, self.stiffness], dim=-1)


@replaceable
def potential_gradient(
    potential: Potential,
    positions: Float[Tensor, "batch particles space"],
    generator: torch.Generator | None,
) -> Float[Tensor, "batch particles space"]:
    """∂V/∂q of each example; itself differentiable, also by parameters."""
    features = potential.features

    def value(q: Tensor) -> Tensor:
        return potential.model(PointCloud(centred(q), features), generator=generator)

    return gradient(value, positions)


def _velocity(potential: Potential, state: Tensor, generator: torch.Generator | None) -> Tensor:
    """(p/m, −∂V/∂q)."""
    position, momentum = state.unbind(dim=1)
    by_position = potential_gradient(potential, position, generator)
    return torch.stack([momentum / potential.masses[..., None], -by_position], dim=1)


class HamiltonianDynamics(LearntDynamics):
    """The model is all of H(q, p). (q̇, ṗ) = (∂H/∂p, −∂H/∂q)."""

    def forward(
        self,
        state: Float[Tensor, "batch 2 particles space"],
        masses: Float[Tensor, "batch particles"],
        stiffness: Float[Tensor, "batch particles"],
        *,
        generator: torch.Generator | None = None,
    ) -> Float[Tensor, "batch 2 particles space"]:
        def hamiltonian(z: Tensor) -> Tensor:
            return self.model(phase_cloud(z, masses, stiffness), generator=generator)

        by_position, by_momentum = gradient(hamiltonian, state).unbind(dim=1)
        return torch.stack([by_momentum, -by_position], dim=1)


class DirectDynamics(LearntDynamics):
    """The model is the vector field itself: for each particle q̇, then ṗ."""

    def forward(
        self,
        state: Float[Tensor, "batch 2 particles space"],
        masses: Float[Tensor, "batch particles"],
        stiffness: Float[Tensor, "batch particles"],
        *,
        generator: torch.Generator | None = None,
    ) -> Float[Tensor, "batch 2 particles space"]:
        output = self.model(phase_cloud(state, masses, stiffness), generator=generator)
        batch, _, particles, space = state.shape
        _require_outputs(output, particles * 2 * space, "q̇ and ṗ of each particle")
        return output.view(batch, particles, 2, space).transpose(1, 2)


def _repeated(generator: torch.Generator | None) -> Callable[[], torch.Generator | None]:
    """What gives a generator of the same random numbers each time."""
    if generator is None:
        return lambda: None
    device = generator.device
    seed = int(torch.randint(2**62, (), generator=generator, device=device))
    return lambda: torch.Generator(device).manual_seed(seed)


def phase_cloud(
    state: Float[Tensor, "batch 2 particles space"],
    masses: Float[Tensor, "batch particles"],
    stiffness: Float[Tensor, "batch particles"],
) -> PointCloud:
    """Positions, centred, with features (p, m, k)."""
    position, momentum = state.unbind(dim=1)
    features = torch.cat([momentum, masses[..., None], stiffness[..., None]], dim=-1)
    return PointCloud(centred(position), features)


def centred(
    positions: Float[Tensor, "batch particles space"],
) -> Float[Tensor, "batch particles space"]:
    """Positions relative to their mean."""
    return positions - positions.mean(dim=1, keepdim=True)


def gradient(
    function: Callable[[Tensor], Tensor], argument: Float[Tensor, "batch *shape"]
) -> Float[Tensor, "batch *shape"]:
    """∂f/∂x of one number for each example; itself differentiable, also by parameters."""

    def total(x: Tensor) -> Tensor:
        values = function(x)
        _require_outputs(values, 1, "an energy")
        return values.sum()

    return torch.func.grad(total)(argument)


def _require_outputs(output: Tensor, width: int, meaning: str) -> None:
    if output.ndim != 2 or output.shape[1] != width:
        raise ValueError(
            f"the model must have {width} outputs for each example, {meaning}, got shape "
            f"{tuple(output.shape)}. Build it with another output_width."
        )
