"""What models of point clouds share: checks of their input, and the way over the group."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from lietransformer.clouds import LiftedCloud, PointCloud
from lietransformer.groups import PairFeatures, get_group
from lietransformer.lift import LiftConfig, lift
from lietransformer.packing import Packing
from lietransformer.pairs import NeighbourhoodConfig, PairGeometry, pairs_of_layers


@runtime_checkable
class LiftedModelConfig(Protocol):
    """The settings that say how a model gets from points to pairs of group elements."""

    @property
    def group(self) -> str: ...
    @property
    def input_width(self) -> int: ...
    @property
    def layers(self) -> int: ...
    @property
    def lift(self) -> LiftConfig: ...
    @property
    def neighbourhood(self) -> NeighbourhoodConfig: ...
    @property
    def pair_features(self) -> PairFeatures: ...


class LiftedModel(nn.Module, ABC):
    """Lifting, layers that see group elements as g⁻¹g' only, invariant pooling.

    Exactly invariant to the group where the lift is exact (finite stabiliser) and the
    neighbourhood is not sampled; where Ĥ or the neighbourhood is sampled, exactly invariant
    for samples that move with the input and in distribution otherwise. With the lift
    "subgroup" it is exactly invariant to T(2) ⋊ Cₖ only.
    """

    def __init__(self, config: LiftedModelConfig) -> None:
        super().__init__()
        self.group = get_group(config.group)
        self._settings = config

    @abstractmethod
    def layers_on_group(
        self,
        features: Float[Tensor, "batch g width"],
        mask: Bool[Tensor, "batch g"],
        pairs: Sequence[PairGeometry],
    ) -> Float[Tensor, "batch g out"]:
        """The equivariant part: features on the same group elements, given each layer's pairs."""

    @abstractmethod
    def pool(
        self, features: Float[Tensor, "batch g width"], mask: Bool[Tensor, "batch g"]
    ) -> Float[Tensor, "batch out"]:
        """The invariant output from features on the group."""

    @property
    def is_random(self) -> bool:
        """Whether a forward pass draws random numbers, and so needs a generator."""
        return self._settings.lift.is_random or self._settings.neighbourhood.is_random

    def forward(
        self, cloud: PointCloud, *, generator: torch.Generator | None = None
    ) -> Float[Tensor, "batch out"]:
        """The invariant output for every example.

        Args:
            cloud: positions, features and mask.
            generator: the source of lift samples and sampled neighbours; may be left out
                where nothing is random.
        """
        return self.forward_lifted(self.lift(cloud, generator=generator), generator=generator)

    def lift(self, cloud: PointCloud, *, generator: torch.Generator | None = None) -> LiftedCloud:
        """(x_i, f_i) ↦ (g, f_i) for g ∈ s(x_i)Ĥ."""
        check_input(self, cloud, self._settings.input_width)
        return lift(cloud, self.group, self._settings.lift, generator=generator)

    def forward_lifted(
        self, lifted: LiftedCloud, *, generator: torch.Generator | None = None
    ) -> Float[Tensor, "batch out"]:
        """The output for elements that are lifted already."""
        pairs = self.pairs(lifted, generator=generator)
        return self.forward_pairs(lifted.features, lifted.mask, pairs)

    def pairs(
        self, lifted: LiftedCloud, *, generator: torch.Generator | None = None
    ) -> list[PairGeometry]:
        """The pairs that each layer sees; the last step that can be random."""
        return pairs_of_layers(
            lifted,
            self.group,
            self._settings.neighbourhood,
            layers=self._settings.layers,
            kind=self._settings.pair_features,
            generator=generator,
        )

    def forward_pairs(
        self,
        features: Float[Tensor, "batch g width"],
        mask: Bool[Tensor, "batch g"],
        pairs: Sequence[PairGeometry],
    ) -> Float[Tensor, "batch out"]:
        """All that has parameters, a deterministic function of tensors: what to compile."""
        return self.pool(self.layers_on_group(features, mask, pairs), mask)

    def encode(
        self, lifted: LiftedCloud, *, generator: torch.Generator | None = None
    ) -> LiftedCloud:
        """The equivariant part: the features after the last block, on the same elements."""
        pairs = self.pairs(lifted, generator=generator)
        features = self.layers_on_group(lifted.features, lifted.mask, pairs)
        return replace(lifted, features=features)


def packed_pairs(pairs: Sequence[PairGeometry], packing: Packing) -> list[PairGeometry]:
    """The pairs of each layer for packed features; layers that shared an object still do."""
    packed = {id(geometry): geometry.packed(packing) for geometry in pairs}
    return [packed[id(geometry)] for geometry in pairs]


def check_input(
    model: nn.Module, cloud: PointCloud, input_width: int, space_dimension: int | None = None
) -> None:
    """Refuse a cloud that does not fit the model in space, features, precision or device.

    Without a space dimension that is left to the group, which knows what it acts on.
    """
    if not isinstance(cloud, PointCloud):
        raise TypeError(
            f"the input must be a PointCloud, got {type(cloud).__name__}. Wrap positions in "
            "PointCloud(positions)."
        )
    if space_dimension is not None and cloud.positions.shape[-1] != space_dimension:
        raise ValueError(
            f"the model takes points of dimension {space_dimension}, got positions of shape "
            f"{tuple(cloud.positions.shape)}"
        )
    if cloud.features.shape[-1] != input_width:
        raise ValueError(
            f"the model takes {input_width} features per point, got features of shape "
            f"{tuple(cloud.features.shape)}. Build it with another input_width, or give others."
        )
    parameter = next(model.parameters())
    if cloud.positions.dtype != parameter.dtype:
        raise TypeError(
            f"the point cloud must be in {parameter.dtype}, as the model's parameters, got "
            f"{cloud.positions.dtype}. Convert with cloud.to(dtype=...) or model.to(dtype)."
        )
    if cloud.positions.device != parameter.device:
        raise ValueError(
            f"the point cloud must be on {parameter.device}, where the model is, got "
            f"{cloud.positions.device}. Move it with cloud.to(device)."
        )
