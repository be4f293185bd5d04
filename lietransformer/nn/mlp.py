"""Linear maps and MLPs with separate weights for each attention head."""

import math
from collections.abc import Sequence
from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F


def per_head_matmul(
    x: Float[Tensor, "#heads rows in_width"], weight: Float[Tensor, "heads in_width out_width"]
) -> Float[Tensor, "heads rows out_width"]:
    """x[m]·W[m] for every head m; heads that share x need one matrix product, not one each."""
    if x.shape[0] != 1:
        return torch.bmm(x, weight)
    heads, in_width, out_width = weight.shape
    joint = x[0] @ weight.transpose(0, 1).reshape(in_width, heads * out_width)
    return joint.unflatten(-1, (heads, out_width)).transpose(0, 1)


class PerHeadLinear(nn.Module):
    """y[m] = x[m]·W[m] + b[m] for every head m, the heads in the first axis."""

    def __init__(self, heads: int, in_width: int, out_width: int, *, bias: bool = True) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(heads, in_width, out_width))
        self.bias = nn.Parameter(torch.empty(heads, 1, out_width)) if bias else None
        # The same initialisation as nn.Linear, for each head by itself. (The authors' release
        # takes the number of outputs for that of inputs here.)
        bound = 1 / math.sqrt(in_width) if in_width else 0.0
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -bound, bound)

    def forward(
        self, x: Float[Tensor, "#heads rows in_width"]
    ) -> Float[Tensor, "heads rows out_width"]:
        y = per_head_matmul(x, self.weight)
        return y if self.bias is None else y + self.bias


class PerHeadMLP(nn.Module):
    """Linear layers with swish after each of them, the last one included."""

    def __init__(self, heads: int, widths: Sequence[int]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            PerHeadLinear(heads, before, after) for before, after in pairwise(widths)
        )

    def forward(
        self, x: Float[Tensor, "#heads rows in_width"]
    ) -> Float[Tensor, "heads rows out_width"]:
        for layer in self.layers:
            x = F.silu(layer(x))
        return x
