"""The residual block of the LieTransformer (paper, Figure 1)."""

from typing import Literal

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from lietransformer.nn.attention import AttentionConfig, LieSelfAttention
from lietransformer.pairs import PairGeometry

NormKind = Literal["layer", "none"]


class LieTransformerBlock(nn.Module):
    """x += attention(LN(x)); x += MLP(LN(x)), with swish after both layers of the MLP.

    Equivariant: attention is, and LayerNorm and MLP act on each element by itself (App. H).
    """

    def __init__(
        self,
        width: int,
        heads: int,
        pair_dimension: int,
        attention: AttentionConfig,
        norm: NormKind = "layer",
    ) -> None:
        super().__init__()
        normalise = norm == "layer"
        self.attention_norm = nn.LayerNorm(width) if normalise else nn.Identity()
        self.attention = LieSelfAttention(width, heads, pair_dimension, attention)
        self.mlp_norm = nn.LayerNorm(width) if normalise else nn.Identity()
        self.mlp = nn.ModuleList([nn.Linear(width, width), nn.Linear(width, width)])

    def forward(
        self, features: Float[Tensor, "batch g width"], geometry: PairGeometry
    ) -> Float[Tensor, "batch g width"]:
        features = features + self.attention(self.attention_norm(features), geometry)
        hidden = self.mlp_norm(features)
        for layer in self.mlp:
            hidden = F.silu(layer(hidden))
        return features + hidden
