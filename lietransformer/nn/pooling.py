"""G-pooling (paper, App. H) and the two output heads of the paper's models."""

from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as F


def masked_mean(
    values: Float[Tensor, "batch g width"], mask: Bool[Tensor, "batch g"]
) -> Float[Tensor, "batch width"]:
    """f̄ = 1/|G_f| Σ_g f(g) over the real elements (App. H); zero for an empty set. Invariant."""
    total = values.masked_fill(~mask[..., None], 0).sum(dim=1)
    return total / mask.sum(dim=1, keepdim=True).clamp(min=1)


class PoolThenMLP(nn.Module):
    """Mean over the group, then swish and three linear layers: constellations and springs."""

    def __init__(self, width: int, output_width: int) -> None:
        super().__init__()
        self.hidden = nn.ModuleList([nn.Linear(width, width), nn.Linear(width, width)])
        self.output = nn.Linear(width, output_width)

    def forward(
        self, features: Float[Tensor, "batch g width"], mask: Bool[Tensor, "batch g"]
    ) -> Float[Tensor, "batch out"]:
        x = F.silu(masked_mean(features, mask))
        for layer in self.hidden:
            x = F.silu(layer(x))
        return self.output(x)


class LinearThenPool(nn.Module):
    """Swish and one linear layer on every element, then the mean: QM9 (App. I.2)."""

    def __init__(self, width: int, output_width: int) -> None:
        super().__init__()
        self.output = nn.Linear(width, output_width)

    def forward(
        self, features: Float[Tensor, "batch g width"], mask: Bool[Tensor, "batch g"]
    ) -> Float[Tensor, "batch out"]:
        return masked_mean(self.output(F.silu(features)), mask)
