"""The SetTransformer (Lee et al., 2019), the paper's baseline for constellations."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lietransformer.clouds import PointCloud
from lietransformer.errors import require_at_least_one
from lietransformer.models.base import check_input
from lietransformer.nn.set_attention import AttentionPooling, InducedSelfAttention, SelfAttention


@dataclass(frozen=True)
class SetTransformerConfig:
    """Everything that defines a SetTransformer.

    Attributes:
        space_dimension: of the positions, which are input like any other feature.
        input_width: number of features of a point.
        use_features: whether it sees the features at all, or positions only.
        seeds: number of seed vectors, each of which yields outputs of its own.
        outputs_per_seed: number of outputs of each.
        width: d, the feature width of all layers.
        encoder_layers: attention layers before pooling.
        decoder_layers: attention layers among the pooled vectors.
        heads: number of heads, which must divide the width.
        inducing_points: learnt points that stand between the elements of the set in the
            encoder; None for attention between all pairs.
    """

    space_dimension: int
    input_width: int
    use_features: bool
    seeds: int
    outputs_per_seed: int
    width: int
    encoder_layers: int
    decoder_layers: int
    heads: int
    inducing_points: int | None = None

    def __post_init__(self) -> None:
        for name in (
            "space_dimension",
            "input_width",
            "seeds",
            "outputs_per_seed",
            "encoder_layers",
            "decoder_layers",
        ):
            require_at_least_one(name, getattr(self, name))
        require_at_least_one("inducing_points", self.inducing_points)
        if self.heads < 1 or self.width < 1 or self.width % self.heads:
            raise ValueError(
                f"the number of heads must divide the width, got width={self.width} and "
                f"heads={self.heads}"
            )


class SetTransformer(nn.Module):
    """Self-attention on the set, pooling by attention, self-attention among the seeds.

    Invariant to permutations and padding, and to nothing else: positions are plain features.
    """

    is_random = False

    def __init__(self, config: SetTransformerConfig) -> None:
        super().__init__()
        self.config = config
        width, heads = config.width, config.heads
        first = config.space_dimension + (config.input_width if config.use_features else 0)
        self.encoder = nn.ModuleList(
            self._encoder_layer(first if number == 0 else width)
            for number in range(config.encoder_layers)
        )
        self.pooling = AttentionPooling(width, heads, config.seeds)
        self.decoder = nn.ModuleList(
            SelfAttention(width, width, heads) for _ in range(config.decoder_layers)
        )
        self.output = nn.Linear(width, config.outputs_per_seed)

    def _encoder_layer(self, in_width: int) -> nn.Module:
        config = self.config
        if config.inducing_points is None:
            return SelfAttention(in_width, config.width, config.heads)
        return InducedSelfAttention(in_width, config.width, config.heads, config.inducing_points)

    def forward(
        self,
        cloud: PointCloud,
        *,
        generator: torch.Generator | None = None,  # noqa: ARG002 – as every model takes it
    ) -> Float[Tensor, "batch out"]:
        """The outputs of all seeds, one after another, for every example."""
        check_input(self, cloud, self.config.input_width, self.config.space_dimension)
        cloud = cloud.cleaned()
        x = cloud.positions
        if self.config.use_features:
            x = torch.cat([x, cloud.features], dim=-1)
        for layer in self.encoder:
            x = layer(x, cloud.mask)
        x = self.pooling(x, cloud.mask)
        everything = torch.ones_like(x[..., 0], dtype=torch.bool)
        for layer in self.decoder:
            x = layer(x, everything)
        return self.output(x).flatten(1)
