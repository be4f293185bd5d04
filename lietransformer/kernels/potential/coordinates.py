"""Coordinates of pairs as a linear map of positions.

Where the group has all translations, the elements over a point x are (x, h), and h does not
depend on x. Coordinates of a pair, ν∘log or canonical, are then R⁻¹(t' − t) times a matrix, and
others that do not depend on positions: x(q) = x(0) + Jq with the same J for all examples.

Many pairs have the same coordinates at all positions: those of an element with itself, and, over
the subgroup C₂ of rotations, (x, h) with (x', h') as (x', −h) with (x, −h'). They are one column.
"""

from dataclasses import dataclass
from functools import cache

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lietransformer.clouds import PointCloud
from lietransformer.groups import PairFeatures, get_group
from lietransformer.lift import LiftConfig, lift
from lietransformer.models.lie_resnet import LieResNetConfig
from lietransformer.models.lie_transformer import LieTransformerConfig
from lietransformer.pairs import NeighbourhoodConfig, pair_geometry


def are_affine(config: LieTransformerConfig | LieResNetConfig) -> bool:
    """Whether coordinates of pairs are an affine map of positions, the same for all examples."""
    group = get_group(config.group)
    return group.translation_dimension == group.space_dimension and not config.lift.is_random


@dataclass(frozen=True, eq=False)
class PairCoordinates:
    """x(q) = x(0) + Jq for all pairs of the elements over a number of points.

    Attributes:
        constant: x(0).
        jacobian: J.
        column_of_pair: where the coordinates of each pair stand.
        space_dimension: numbers of a position.
        samples: |Ĥ|, elements over each point.
    """

    constant: Float[Tensor, "coordinates 1 columns"]
    jacobian: Float[Tensor, "coordinates flat_points columns"]
    column_of_pair: Int[Tensor, " pairs"]
    space_dimension: int
    samples: int

    @staticmethod
    def of(config: LieTransformerConfig | LieResNetConfig, points: int) -> "PairCoordinates":
        """Those of a model, for this number of points."""
        return _coordinates(config.group, config.lift, config.pair_features, points)

    @property
    def columns(self) -> int:
        """Of an example."""
        return self.jacobian.shape[2]

    def at(self, positions: Float[Tensor, "batch points space"]) -> Float[Tensor, "c columns"]:
        """x(q), the columns of one example after those of the other."""
        changes = positions.flatten(1) @ self.jacobian
        return (self.constant + changes).flatten(1).contiguous()

    def tangent(self, direction: Float[Tensor, "batch points space"]) -> Float[Tensor, "c columns"]:
        """Jq̇, the change of x when positions move along q̇."""
        return (direction.flatten(1) @ self.jacobian).flatten(1).contiguous()

    def pull_back(
        self, gradient: Float[Tensor, "c columns"]
    ) -> Float[Tensor, "batch points space"]:
        """Jᵀg, the gradient by positions from that by coordinates."""
        by_column = gradient.unflatten(1, (-1, self.columns))
        return (by_column @ self.jacobian.mT).sum(dim=0).unflatten(1, (-1, self.space_dimension))

    def lifted(self, features: Float[Tensor, "batch points d"]) -> Float[Tensor, "batch g d"]:
        """The features of the elements."""
        return features.repeat_interleave(self.samples, dim=1)


@cache
def _coordinates(
    name: str, lift_config: LiftConfig, kind: PairFeatures, points: int
) -> PairCoordinates:
    group = get_group(name)
    space = group.space_dimension
    # At the origin, and with one number of one position changed after the other.
    flat = torch.cat([torch.zeros(1, points * space), torch.eye(points * space)]).double()
    lifted = lift(PointCloud(flat.unflatten(1, (points, space))), group, lift_config)
    pairs = pair_geometry(lifted, group, NeighbourhoodConfig(), kind=kind).coordinates
    origin, *changed = pairs.flatten(1, 2)
    # For each pair what its coordinates are made of: x(0), then J. Rounded, because sin(π) is not
    # quite 0 on a computer, and still far more exact than numbers in single precision.
    of_pairs = torch.stack([origin, *(x - origin for x in changed)], dim=1).round(decimals=12)
    distinct, column_of_pair = torch.unique(of_pairs, dim=0, return_inverse=True)
    constant, jacobian = distinct.float().permute(2, 1, 0).split([1, points * space], dim=1)
    return PairCoordinates(
        constant=constant.contiguous(),
        jacobian=jacobian.contiguous(),
        column_of_pair=column_of_pair,
        space_dimension=space,
        samples=lift_config.samples_for(group),
    )
