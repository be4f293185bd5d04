"""The residual network of LieConv layers that the paper compares with (Finzi et al., 2020)."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as F

from lietransformer.clouds import LiftedCloud
from lietransformer.dispatch import has_hooks
from lietransformer.errors import require_at_least_one, require_choice
from lietransformer.groups import PairFeatures, get_group
from lietransformer.lift import LiftConfig
from lietransformer.models.base import LiftedModel, packed_pairs
from lietransformer.nn.lieconv import LieConv
from lietransformer.nn.norms import MaskedBatchNorm
from lietransformer.nn.pooling import masked_mean
from lietransformer.packing import Packing
from lietransformer.pairs import NeighbourhoodConfig, PairGeometry, pairs_of_layers

BatchNormKind = Literal["batch", "none"]

_BOTTLENECK = 4
_FIRST_RADIUS = 2.0
_RADIUS_RATE = 0.5


@dataclass(frozen=True)
class LieResNetConfig:
    """Everything that defines a LieConv network.

    Attributes:
        group: what it is invariant to, by the name that `get_group` takes.
        input_width: number of features of a point.
        output_width: number of outputs of an example.
        width: k, the feature width between blocks; within a block it is a quarter of that.
        layers: number of residual blocks.
        lift: the sample Ĥ of the stabiliser.
        neighbourhood: which elements a convolution sums over.
        fill: the share of an example's elements that a ball should hold on average; its
            radius adapts to that while the model trains. None: the balls of `neighbourhood`.
        pair_features: "log" for ν∘log, "canonical" for the canonical lift (App. F).
        norm: "batch" for masked batch norm, "none" for none.
    """

    group: str
    input_width: int
    output_width: int
    width: int
    layers: int
    lift: LiftConfig = field(default_factory=LiftConfig)
    neighbourhood: NeighbourhoodConfig = field(default_factory=NeighbourhoodConfig)
    fill: float | None = None
    pair_features: PairFeatures = "log"
    norm: BatchNormKind = "none"

    def __post_init__(self) -> None:
        require_choice("pair features", self.pair_features, PairFeatures)
        require_choice("norm", self.norm, BatchNormKind)
        require_at_least_one("input_width", self.input_width)
        require_at_least_one("output_width", self.output_width)
        require_at_least_one("layers", self.layers)
        self.lift.samples_for(get_group(self.group))
        if self.width < _BOTTLENECK or self.width % _BOTTLENECK:
            raise ValueError(f"the width must be a multiple of {_BOTTLENECK}, got {self.width}")
        if self.fill is not None and not 0 < self.fill <= 1:
            raise ValueError(f"fill must be above 0 and at most 1, or None, got {self.fill}")
        ball, radius = self.neighbourhood.ball, self.neighbourhood.radius
        if self.fill is not None and (ball is not None or radius is not None):
            raise ValueError(
                f"give either a fill, to which the radius adapts, or a ball or a radius; got "
                f"fill={self.fill}, ball={ball} and radius={radius}"
            )


class BottleneckBlock(nn.Module):
    """x += Linear ∘ swish ∘ LieConv ∘ swish ∘ Linear ∘ swish(x), batch norm before each swish.

    The convolution is between features of a quarter of the width.
    """

    def __init__(self, width: int, pair_dimension: int, *, batch_norm: bool) -> None:
        super().__init__()
        narrow = width // _BOTTLENECK
        self.narrow = nn.Linear(width, narrow)
        self.convolution = LieConv(narrow, narrow, pair_dimension, batch_norm=batch_norm)
        self.widen = nn.Linear(narrow, width)
        self.norms = nn.ModuleList(
            MaskedBatchNorm(norm_width) for norm_width in (width, narrow, narrow) if batch_norm
        )

    def forward(
        self,
        features: Float[Tensor, "batch g width"],
        mask: Bool[Tensor, "batch g"],
        geometry: PairGeometry,
    ) -> Float[Tensor, "batch g width"]:
        x = self.narrow(self._activate(0, features, mask))
        x = self.convolution(self._activate(1, x, mask), mask, geometry)
        return features + self.widen(self._activate(2, x, mask))

    def _activate(self, number: int, x: Tensor, mask: Tensor) -> Tensor:
        return F.silu(self.norms[number](x, mask) if self.norms else x)


class LieResNet(LiftedModel):
    """Embedding, bottleneck blocks of LieConv, a linear map, and the mean over the group.

    Invariant as every `LiftedModel` is (with batch norm: in evaluation; in training, the
    examples of a batch depend on each other).
    """

    radius: Tensor | None

    @property
    def updates_buffers(self) -> bool:
        """Whether a forward pass in training changes more than gradients."""
        return self.radius is not None or self.norm is not None

    def __init__(self, config: LieResNetConfig) -> None:
        super().__init__(config)
        self.config = config
        batch_norm = config.norm == "batch"
        pair_dimension = self.group.pair_dimension(config.pair_features)
        self.embedding = nn.Linear(config.input_width, config.width)
        self.blocks = nn.ModuleList(
            BottleneckBlock(config.width, pair_dimension, batch_norm=batch_norm)
            for _ in range(config.layers)
        )
        self.norm = MaskedBatchNorm(config.width) if batch_norm else None
        self.output = nn.Linear(config.width, config.output_width)
        # One radius for all layers: they see the same distances and would adapt alike.
        adapts = config.fill is not None
        self.register_buffer("radius", torch.tensor(_FIRST_RADIUS) if adapts else None)

    def pairs(
        self, lifted: LiftedCloud, *, generator: torch.Generator | None = None
    ) -> list[PairGeometry]:
        pairs = pairs_of_layers(
            lifted,
            self.group,
            self.config.neighbourhood,
            layers=self.config.layers,
            kind=self.config.pair_features,
            generator=generator,
            radius=self.radius,
        )
        if self.training and self.radius is not None:
            self._adapt_radius(lifted.mask, pairs[0])
        return pairs

    @torch.no_grad()
    def _adapt_radius(self, mask: Tensor, geometry: PairGeometry) -> None:
        """Move the radius towards one at which balls hold the wanted share of the elements."""
        assert geometry.ball_sizes is not None
        assert self.radius is not None
        assert self.config.fill is not None
        count = mask.sum(dim=1, keepdim=True).clamp(min=1)
        shares = (geometry.ball_sizes / count).masked_fill(~mask, 0)
        elements = mask.sum()
        missing = self.config.fill - shares.sum() / elements.clamp(min=1)
        self.radius += _RADIUS_RATE * missing * (elements > 0)
        self.radius.clamp_(min=1e-3)

    def layers_on_group(
        self,
        features: Float[Tensor, "batch g width"],
        mask: Bool[Tensor, "batch g"],
        pairs: Sequence[PairGeometry],
    ) -> Float[Tensor, "batch g out"]:
        takes_rows = all(type(block) is BottleneckBlock for block in self.blocks)
        packing = Packing.of(mask) if takes_rows and not has_hooks(self.blocks) else None
        if packing is not None:
            features, mask = packing.pack(features), mask[mask][None]
            pairs = packed_pairs(pairs, packing)
        x = self.embedding(features)
        for block, geometry in zip(self.blocks, pairs, strict=True):
            x = block(x, mask, geometry)
        return x if packing is None else packing.unpack(x)

    def pool(
        self, features: Float[Tensor, "batch g width"], mask: Bool[Tensor, "batch g"]
    ) -> Float[Tensor, "batch out"]:
        x = features if self.norm is None else self.norm(features, mask)
        return masked_mean(self.output(F.silu(x)), mask)
