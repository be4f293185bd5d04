"""The LieTransformer (paper, §3 and Figure 1)."""

from dataclasses import dataclass, field
from typing import Literal

from jaxtyping import Bool, Float
from torch import Tensor, nn

from lietransformer.errors import require_at_least_one, require_choice
from lietransformer.groups import PairFeatures, get_group
from lietransformer.lift import LiftConfig
from lietransformer.models.base import LiftedModel
from lietransformer.neighbourhood import NeighbourhoodConfig, PairGeometry
from lietransformer.nn.attention import AttentionConfig
from lietransformer.nn.block import LieTransformerBlock, NormKind
from lietransformer.nn.pooling import LinearThenPool, PoolThenMLP

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


class LieTransformer(LiftedModel):
    """Lifting, L blocks of LieSelfAttention and MLP, invariant pooling (Figure 1).

    Invariant as every `LiftedModel` is.
    """

    def __init__(self, config: LieTransformerConfig) -> None:
        super().__init__(config)
        self.config = config
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

    def layers_on_group(
        self,
        features: Float[Tensor, "batch g width"],
        mask: Bool[Tensor, "batch g"],
        geometry: PairGeometry,
    ) -> Float[Tensor, "batch g out"]:
        if not self._is_fused(features, geometry):
            return self._through_blocks(features, geometry)
        # Where nothing depends on examples having equally many, elements that are not real are
        # left out: in constellations, that is half of them.
        rows = self._through_blocks(features[mask][None], geometry.of_rows())
        filled = rows.new_zeros(*mask.shape, rows.shape[-1])
        return filled.masked_scatter(mask[..., None], rows)

    def _through_blocks(self, features: Tensor, geometry: PairGeometry) -> Tensor:
        features = self.embedding(features)
        for block in self.blocks:
            features = block(features, geometry)
        return features

    def _is_fused(self, features: Tensor, geometry: PairGeometry) -> bool:
        return all(
            isinstance(block, LieTransformerBlock) and block.attention.is_fused(features, geometry)
            for block in self.blocks
        )

    def pool(
        self, features: Float[Tensor, "batch g width"], mask: Bool[Tensor, "batch g"]
    ) -> Float[Tensor, "batch out"]:
        return self.head(features, mask)
