"""Batch normalisation of padded sets."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn


class MaskedBatchNorm(nn.Module):
    """y = γ·(x − E[x])/√(Var[x] + ε) + β, moments over all real points of the batch (App. H).

    As `nn.BatchNorm1d` on the real points alone: running averages replace the moments in
    evaluation. What padded points hold does not matter, and they stay finite. Computed in the
    precision of the parameters, also under autocast. Acts on each point in the same way, hence
    equivariant in evaluation; in training all examples of a batch depend on each other.
    """

    updates_buffers = True

    running_mean: Tensor
    running_variance: Tensor

    def __init__(self, width: int, *, epsilon: float = 1e-5, momentum: float = 0.1) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width))
        self.register_buffer("running_mean", torch.zeros(width))
        self.register_buffer("running_variance", torch.ones(width))
        self.epsilon = epsilon
        self.momentum = momentum

    def forward(
        self, x: Float[Tensor, "*points width"], mask: Bool[Tensor, "*points"]
    ) -> Float[Tensor, "*points width"]:
        precise = x.to(self.running_mean.dtype).masked_fill(~mask[..., None], 0)
        if self.training:
            mean, variance = self._moments(precise, mask)
        else:
            mean, variance = self.running_mean, self.running_variance
        scale = self.weight * (variance + self.epsilon).rsqrt()
        return ((precise - mean) * scale + self.bias).to(x.dtype)

    def _moments(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        points = tuple(range(x.ndim - 1))
        count = mask.sum().clamp(min=1)
        mean = x.sum(dim=points) / count
        centred = (x - mean).masked_fill(~mask[..., None], 0)
        variance = centred.square().sum(dim=points) / count
        with torch.no_grad():
            unbiased = variance * (count / (count - 1).clamp(min=1))
            # One point has no variance to learn from, and none no mean.
            momentum = self.momentum * (count > 1).to(x.dtype)
            self.running_mean.lerp_(mean, momentum)
            self.running_variance.lerp_(unbiased, momentum)
        return mean, variance
