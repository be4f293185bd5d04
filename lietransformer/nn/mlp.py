"""Linear maps and MLPs with separate weights for each attention head."""

import math
from collections.abc import Sequence
from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from lietransformer.dispatch import replaceable


def per_head_matmul(
    weight: Float[Tensor, "heads in_width out_width"], x: Float[Tensor, "#heads in_width columns"]
) -> Float[Tensor, "heads out_width columns"]:
    """W[m]ᵀ·x[m] for every head m; heads that share x need one matrix product, not one each."""
    if x.shape[0] != 1:
        return torch.bmm(weight.mT, x)
    return (weight.mT.flatten(0, 1) @ x[0]).unflatten(0, weight.shape[::2])


class PerHeadLinear(nn.Module):
    """y[m] = W[m]ᵀ·x[m] + b[m] for every head m, the heads in the first axis.

    What the map acts on are columns. There are as many as pairs, thousands for each number of
    the width: elementwise functions then run over long rows, whatever the width.

    Args:
        heads: M.
        in_width, out_width: of each head.
        bias: whether there is a b[m].
        fan: weights and biases start uniform in ±1/√fan. Left out: the inputs, as in nn.Linear.
    """

    def __init__(
        self,
        heads: int,
        in_width: int,
        out_width: int,
        *,
        bias: bool = True,
        fan: int | None = None,
    ) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(heads, in_width, out_width))
        self.bias = nn.Parameter(torch.empty(heads, 1, out_width)) if bias else None
        fan = in_width if fan is None else fan
        bound = 1 / math.sqrt(fan) if fan else 0.0
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -bound, bound)

    def forward(
        self, x: Float[Tensor, "#heads in_width columns"]
    ) -> Float[Tensor, "heads out_width columns"]:
        y = per_head_matmul(self.weight, x)
        return y if self.bias is None else y + self.bias.mT


class PerHeadMLP(nn.Module):
    """Linear layers with swish after each of them, the last one included.

    Layers start uniform in ±1/√outputs, not ±1/√inputs: the authors' release passes the transposed
    weights to the initialiser, and the scale of its scores at the start follows from that.
    """

    def __init__(self, heads: int, widths: Sequence[int]) -> None:
        super().__init__()
        self.widths = tuple(widths)
        self.layers = nn.ModuleList(
            PerHeadLinear(heads, before, after, fan=after) for before, after in pairwise(widths)
        )

    def forward(
        self, x: Float[Tensor, "#heads in_width columns"]
    ) -> Float[Tensor, "heads out_width columns"]:
        return through_layers(self, x)

    def kept(self, x: Float[Tensor, "#heads in_width columns"]) -> int:
        """How many numbers of each column and head wait for the backward pass."""
        return 0 if through_layers.is_replaced(self, x) else 2 * sum(self.widths[1:])

    def layer_parameters(self) -> list[Tensor]:
        """Weight and bias of each layer, in the order of the layers."""
        found: list[Tensor] = []
        for layer in self.layers:
            assert isinstance(layer, PerHeadLinear)
            # By their names: `parameters()` of a parametrised layer are others, in another order.
            weight, bias = layer.weight, layer.bias
            assert bias is not None
            found += [weight, bias]
        return found


@replaceable
def through_layers(
    mlp: PerHeadMLP, x: Float[Tensor, "#heads in_width columns"]
) -> Float[Tensor, "heads out_width columns"]:
    """Swish after each of the layers."""
    for layer in mlp.layers:
        x = F.silu(layer(x))
    return x


def per_head_mlp(x: Tensor, *parameters: Tensor) -> Tensor:
    """Swish after each linear map, given weight and bias of each."""
    for weight, bias in zip(parameters[::2], parameters[1::2], strict=True):
        x = F.silu(per_head_matmul(weight, x) + bias.mT)
    return x
