"""The LieTransformer (paper, §3 and Figure 1)."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from jaxtyping import Bool, Float
from torch import Tensor, nn

from lietransformer.dispatch import has_hooks
from lietransformer.errors import require_at_least_one, require_choice
from lietransformer.groups import PairFeatures, get_group
from lietransformer.lift import LiftConfig
from lietransformer.models.base import LiftedModel, packed_pairs
from lietransformer.nn.attention import AttentionConfig, LieSelfAttention
from lietransformer.nn.block import LieTransformerBlock, NormKind
from lietransformer.nn.pooling import LinearThenPool, PoolThenMLP
from lietransformer.packing import Packing
from lietransformer.pairs import NeighbourhoodConfig, PairGeometry

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
        pairs: Sequence[PairGeometry],
    ) -> Float[Tensor, "batch g out"]:
        packing = Packing.of(mask) if self._blocks_take_rows else None
        if packing is None:
            return self._through_blocks(features, pairs)
        return packing.unpack(
            self._through_blocks(packing.pack(features), packed_pairs(pairs, packing))
        )

    def _through_blocks(self, features: Tensor, pairs: Sequence[PairGeometry]) -> Tensor:
        features = self.embedding(features)
        for block, geometry in zip(self.blocks, pairs, strict=True):
            features = block(features, geometry)
        return features

    @property
    def _blocks_take_rows(self) -> bool:
        """Whether all blocks are this package's, which can be given packed features."""
        return not has_hooks(self.blocks) and all(
            type(block) is LieTransformerBlock and type(block.attention) is LieSelfAttention
            for block in self.blocks
        )

    def pool(
        self, features: Float[Tensor, "batch g width"], mask: Bool[Tensor, "batch g"]
    ) -> Float[Tensor, "batch out"]:
        return self.head(features, mask)
