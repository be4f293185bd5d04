"""The LieTransformer (paper, §3 and Figure 1)."""

from dataclasses import dataclass, field, replace
from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from lietransformer.errors import explain, require_at_least_one, require_choice
from lietransformer.groups import PairFeatures, get_group
from lietransformer.lift import LiftConfig, lift
from lietransformer.neighbourhood import NeighbourhoodConfig, PairGeometry, pair_geometry
from lietransformer.nn.attention import AttentionConfig
from lietransformer.nn.block import LieTransformerBlock, NormKind
from lietransformer.nn.pooling import LinearThenPool, PoolThenMLP
from lietransformer.types import LiftedCloud, PointCloud

HeadKind = Literal["pool_then_mlp", "linear_then_pool"]


@dataclass(frozen=True)
class LieTransformerConfig:
    """Everything that defines a LieTransformer.

    Attributes:
        group: what it is invariant to, by the name that `get_group` takes.
        input_width: number of features of a point.
        output_width: number of outputs of an example.
        width: d, the feature width of all layers.
        layers: number of residual blocks.
        heads: M, which must divide the width.
        attention: the choices of App. E.
        lift: the sample Ĥ of the stabiliser.
        neighbourhood: which pairs attend to each other.
        pair_features: "log" for ν∘log, "canonical" for the canonical lift (App. F).
        head: "pool_then_mlp" (constellations, springs) or "linear_then_pool" (QM9).
        norm: "layer", or "none" for blocks without LayerNorm (Figure 3).
    """

    group: str
    input_width: int
    output_width: int
    width: int
    layers: int
    heads: int
    attention: AttentionConfig = field(default_factory=AttentionConfig)
    lift: LiftConfig = field(default_factory=LiftConfig)
    neighbourhood: NeighbourhoodConfig = field(default_factory=NeighbourhoodConfig)
    pair_features: PairFeatures = "log"
    head: HeadKind = "pool_then_mlp"
    norm: NormKind = "layer"

    def __post_init__(self) -> None:
        require_choice("pair features", self.pair_features, PairFeatures)
        require_choice("head", self.head, HeadKind)
        require_choice("norm", self.norm, NormKind)
        require_at_least_one("input_width", self.input_width)
        require_at_least_one("output_width", self.output_width)
        require_at_least_one("layers", self.layers)
        self.lift.samples_for(get_group(self.group))
        self.attention.check_heads(self.width, self.heads)


class LieTransformer(nn.Module):
    """Lifting, L blocks of LieSelfAttention and MLP, invariant pooling (Figure 1).

    Exactly invariant to the group where the lift is exact (finite stabiliser) and the
    neighbourhood is not sampled; where Ĥ or the neighbourhood is sampled, exactly invariant
    for samples that move with the input and in distribution otherwise. With the lift
    "subgroup" it is exactly invariant to T(2) ⋊ Cₖ only.
    """

    def __init__(self, config: LieTransformerConfig) -> None:
        super().__init__()
        self.config = config
        self.group = get_group(config.group)
        pair_dimension = self.group.pair_dimension(config.pair_features)
        self.embedding = nn.Linear(config.input_width, config.width)
        self.blocks = nn.ModuleList(
            LieTransformerBlock(
                config.width, config.heads, pair_dimension, config.attention, config.norm
            )
            for _ in range(config.layers)
        )
        head = PoolThenMLP if config.head == "pool_then_mlp" else LinearThenPool
        self.head = head(config.width, config.output_width)

    @property
    def is_random(self) -> bool:
        """Whether a forward pass draws random numbers, and so needs a generator."""
        return self.config.lift.is_random or self.config.neighbourhood.is_random

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
        self._check(cloud)
        return lift(cloud, self.group, self.config.lift, generator=generator)

    def forward_lifted(
        self, lifted: LiftedCloud, *, generator: torch.Generator | None = None
    ) -> Float[Tensor, "batch out"]:
        """The output for elements that are lifted already."""
        geometry = self.pairs(lifted, generator=generator)
        return self.forward_pairs(lifted.features, lifted.mask, geometry)

    def pairs(
        self, lifted: LiftedCloud, *, generator: torch.Generator | None = None
    ) -> PairGeometry:
        """The pairs that attend to each other; the last step that can be random."""
        return pair_geometry(
            lifted,
            self.group,
            self.config.neighbourhood,
            kind=self.config.pair_features,
            generator=generator,
        )

    def forward_pairs(
        self,
        features: Float[Tensor, "batch g width"],
        mask: Bool[Tensor, "batch g"],
        geometry: PairGeometry,
    ) -> Float[Tensor, "batch out"]:
        """All that has parameters, a deterministic function of tensors: what to compile."""
        return self.head(self._blocks(features, geometry), mask)

    def encode(
        self, lifted: LiftedCloud, *, generator: torch.Generator | None = None
    ) -> LiftedCloud:
        """The equivariant part: the features after the last block, on the same elements."""
        geometry = self.pairs(lifted, generator=generator)
        return replace(lifted, features=self._blocks(lifted.features, geometry))

    def _blocks(self, features: Tensor, geometry: PairGeometry) -> Tensor:
        features = self.embedding(features)
        for block in self.blocks:
            features = block(features, geometry)
        return features

    def _check(self, cloud: PointCloud) -> None:
        if not isinstance(cloud, PointCloud):
            raise TypeError(
                explain(
                    expected="a PointCloud",
                    found=type(cloud).__name__,
                    remedy="wrap positions in PointCloud(positions)",
                )
            )
        width = cloud.features.shape[-1]
        if width != self.config.input_width:
            raise ValueError(
                explain(
                    expected=f"{self.config.input_width} features per point",
                    found=f"features of shape {tuple(cloud.features.shape)}",
                    remedy="give other features, or build the model with this input_width",
                )
            )
        parameter = self.embedding.weight
        if cloud.positions.dtype != parameter.dtype:
            raise TypeError(
                explain(
                    expected=f"a point cloud in {parameter.dtype}, as the model's parameters",
                    found=f"{cloud.positions.dtype}",
                    remedy="convert with cloud.to(dtype=...) or model.to(dtype)",
                )
            )
        if cloud.positions.device != parameter.device:
            raise ValueError(
                explain(
                    expected=f"a point cloud on {parameter.device}, where the model is",
                    found=f"{cloud.positions.device}",
                    remedy="move it with cloud.to(device)",
                )
            )
