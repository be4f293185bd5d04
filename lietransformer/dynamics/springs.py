"""Particles that attract each other in pairs by ideal springs of length 0 (§4.3, App. I.3)."""

from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float
from torch import Tensor


def systems_last(
    states: Float[Tensor, "*systems 2 particles space"],
) -> Float[Tensor, "2 particles space *systems"]:
    """States as `SpringSystem` takes them, from states as a dataset stores them."""
    return states.movedim((-3, -2, -1), (0, 1, 2))


@dataclass(frozen=True, eq=False)
class SpringSystem:
    """H(q, p) = Σᵢ pᵢ²/2mᵢ + ½ Σᵢⱼ kᵢkⱼ‖qᵢ − qⱼ‖², the second sum over ordered pairs.

    A state has q and p along its first axis, then particles, then space, then any number of
    axes of systems and times: sums over particles then run over long contiguous rows, which
    is what makes the generation of many systems fast.

    Attributes:
        masses: mᵢ.
        stiffness: kᵢ; the spring between i and j is kᵢkⱼ stiff.
    """

    masses: Float[Tensor, "particles *systems"]
    stiffness: Float[Tensor, "particles *systems"]

    def velocity(
        self, state: Float[Tensor, "2 particles space *systems"]
    ) -> Float[Tensor, "2 particles space *systems"]:
        """(q̇, ṗ) = (∂H/∂p, −∂H/∂q).

        −∂H/∂qᵢ = −2kᵢ Σⱼ kⱼ(qᵢ − qⱼ) = −2kᵢ(qᵢ·Σⱼkⱼ − Σⱼkⱼqⱼ): two sums, and no pairs.
        """
        position, momentum = state
        velocity = torch.empty_like(state)
        torch.div(momentum, self.masses[:, None], out=velocity[0])
        pull = (self._k * position).sum(dim=0)
        torch.mul(self._minus_2k, self._total * position - pull, out=velocity[1])
        return velocity

    def energy(
        self, state: Float[Tensor, "2 particles space *systems"]
    ) -> Float[Tensor, "*systems"]:
        """H(q, p), the potential as (Σk)·Σᵢ kᵢ‖qᵢ − c‖² with c the k-weighted mean of q.

        About c rather than about the origin: far from it the sums would cancel.
        """
        position, momentum = state
        centred = position - (self._k * position).sum(dim=0) / self._total
        potential = (self._total * self._k * centred.square()).sum(dim=(0, 1))
        kinetic = (momentum.square() / (2 * self.masses[:, None])).sum(dim=(0, 1))
        return kinetic + potential

    @cached_property
    def _k(self) -> Tensor:
        return self.stiffness[:, None]

    @cached_property
    def _minus_2k(self) -> Tensor:
        return -2 * self._k

    @cached_property
    def _total(self) -> Tensor:
        return self._k.sum(dim=0)
