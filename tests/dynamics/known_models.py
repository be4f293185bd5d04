"""Models whose motion is known: the spring system itself, and a smooth function of distances."""

import torch
from torch import Tensor, nn

from lietransformer.clouds import PointCloud
from lietransformer.dynamics import SpringSystem, systems_last


class ExactPotential(nn.Module):
    """The potential of the spring system itself, as a model of point clouds."""

    def forward(self, cloud: PointCloud, *, generator: torch.Generator | None = None) -> Tensor:
        assert generator is None
        masses, stiffness = cloud.features.unbind(dim=-1)
        state = torch.stack([cloud.positions, torch.zeros_like(cloud.positions)], dim=1)
        return SpringSystem(masses.T, stiffness.T).energy(systems_last(state))[:, None]


class ExactHamiltonian(nn.Module):
    """The energy of the spring system, from positions and features (p, m, k)."""

    def forward(self, cloud: PointCloud, *, generator: torch.Generator | None = None) -> Tensor:
        assert generator is None
        momentum = cloud.features[..., :2]
        masses, stiffness = cloud.features[..., 2:].unbind(dim=-1)
        state = torch.stack([cloud.positions, momentum], dim=1)
        return SpringSystem(masses.T, stiffness.T).energy(systems_last(state))[:, None]


class ExactVelocity(nn.Module):
    """The vector field of the spring system, q̇ and ṗ of each particle in turn."""

    def forward(self, cloud: PointCloud, *, generator: torch.Generator | None = None) -> Tensor:
        assert generator is None
        momentum = cloud.features[..., :2]
        masses, stiffness = cloud.features[..., 2:].unbind(dim=-1)
        state = systems_last(torch.stack([cloud.positions, momentum], dim=1)).contiguous()
        velocity = SpringSystem(masses.T, stiffness.T).velocity(state)
        return velocity.permute(3, 1, 0, 2).flatten(1)


class DistancePotential(nn.Module):
    """A smooth function of all distances, invariant to rotations and translations."""

    def __init__(self) -> None:
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(1, 16), nn.SiLU(), nn.Linear(16, 1)).double()

    def forward(self, cloud: PointCloud, *, generator: torch.Generator | None = None) -> Tensor:
        assert generator is None
        difference = cloud.positions[:, :, None] - cloud.positions[:, None]
        return self.mlp(difference.square().sum(dim=-1, keepdim=True)).sum(dim=(1, 2))
