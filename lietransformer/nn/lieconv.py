"""LieConv (Finzi et al., 2020; paper, App. G): convolution over a neighbourhood on the group."""

from collections.abc import Sequence
from itertools import pairwise

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as F

from lietransformer.checkpointing import recomputed
from lietransformer.nn.chunking import queries_at_once
from lietransformer.nn.norms import MaskedBatchNorm
from lietransformer.packing import Packing
from lietransformer.pairs import PairGeometry


class WeightNet(nn.Module):
    """The last hidden layer of the convolution kernel as a function of a pair's coordinates.

    Linear layers with swish after each of them, the last one included; with batch norm over
    all pairs of real elements before each swish where it is on.
    """

    def __init__(self, widths: Sequence[int], *, batch_norm: bool) -> None:
        super().__init__()
        self.widths = tuple(widths)
        self.layers = nn.ModuleList(nn.Linear(before, after) for before, after in pairwise(widths))
        self.norms = nn.ModuleList(MaskedBatchNorm(after) for after in widths[1:] if batch_norm)

    def forward(
        self,
        coordinates: Float[Tensor, "batch g key pair"],
        pairs: Bool[Tensor, "batch g key"],
    ) -> Float[Tensor, "batch g key kernel"]:
        """The kernel's last hidden layer for the pairs that count, and 0 for the others."""
        packing = Packing.of(pairs.flatten(1))
        if packing is None:
            return self._kernel(coordinates, pairs).masked_fill(~pairs[..., None], 0)
        rows = packing.pack(coordinates.flatten(1, 2))
        counted = pairs.new_ones(rows.shape[:2])
        return packing.unpack(self._kernel(rows, counted)).unflatten(1, pairs.shape[1:])

    def _kernel(
        self, x: Float[Tensor, "*points pair"], counted: Bool[Tensor, "*points"]
    ) -> Float[Tensor, "*points kernel"]:
        for number, layer in enumerate(self.layers):
            x = layer(x)
            if self.norms:
                x = self.norms[number](x, counted)
            x = F.silu(x)
        return x


class LieConv(nn.Module):
    """f_out(g) = 1/|nbhd(g)| Σ_{g'} k(ν log(g⁻¹g')) f(g')  (App. G).

    k(·) = W·φ(·), a matrix that is linear in the 16 outputs of the weight net φ. Summing
    φ(g⁻¹g') ⊗ f(g') over the neighbourhood first, and applying W to the sum, needs memory for
    one outer product per element instead of one matrix per pair: the PointConv trick.
    Depends on group elements through g⁻¹g' alone, hence equivariant.

    With many pairs, φ is there for some queries at a time only, and computed again for the
    backward pass; but not where batch norm takes its moments over all pairs.
    """

    def __init__(
        self,
        in_width: int,
        out_width: int,
        pair_dimension: int,
        *,
        kernel_widths: Sequence[int] = (32, 32, 16),
        batch_norm: bool = False,
    ) -> None:
        super().__init__()
        self._in_width = in_width
        self.weight_net = WeightNet([pair_dimension, *kernel_widths], batch_norm=batch_norm)
        self.linear = nn.Linear(kernel_widths[-1] * in_width, out_width)

    def forward(
        self,
        features: Float[Tensor, "batch g width"],
        mask: Bool[Tensor, "batch g"],
        geometry: PairGeometry,
    ) -> Float[Tensor, "batch g out"]:
        packing = geometry.packing
        if packing is not None:
            features, mask = packing.unpack(features), packing.mask
        rows = None if self._sees_all_pairs else queries_at_once(geometry, self._kept(geometry))
        if rows is None:
            sums, neighbours = self._sums(features, mask, geometry), _neighbours(geometry)
            if packing is not None:
                neighbours = neighbours.expand(*mask.shape, 1)
                sums, neighbours = packing.pack(sums), packing.pack(neighbours)
            return self.linear(sums) / neighbours
        parts = zip(mask.split(rows, dim=1), geometry.split(rows), strict=True)
        whole = torch.cat(
            [recomputed(self._convolve, features, queries, pairs) for queries, pairs in parts],
            dim=1,
        )
        return whole if packing is None else packing.pack(whole)

    def _convolve(
        self,
        features: Float[Tensor, "batch n width"],
        mask: Bool[Tensor, "batch g"],
        geometry: PairGeometry,
    ) -> Float[Tensor, "batch g out"]:
        """The convolution at some queries, whose mask and pairs are given."""
        return self.linear(self._sums(features, mask, geometry)) / _neighbours(geometry)

    def _sums(
        self,
        features: Float[Tensor, "batch n width"],
        mask: Bool[Tensor, "batch g"],
        geometry: PairGeometry,
    ) -> Float[Tensor, "batch g products"]:
        """Σ_{g'} φ(g⁻¹g') ⊗ f(g') over the neighbourhood of each query."""
        kernel = self._kernel(mask, geometry)
        if geometry.indices is None:
            # All queries share their keys: one product per example, not one per query.
            outer = kernel.mT.flatten(1, 2) @ features
            outer = outer.unflatten(1, (kernel.shape[1], kernel.shape[-1]))
        else:
            outer = kernel.mT @ geometry.keys_of(features[None])[0]
        return outer.flatten(-2)

    @property
    def _sees_all_pairs(self) -> bool:
        return self.training and len(self.weight_net.norms) > 0

    def _kept(self, geometry: PairGeometry) -> int:
        """About how many numbers of each pair wait for the backward pass."""
        *_, kernel_width = widths = self.weight_net.widths[1:]
        numbers = 2 * sum(widths) + kernel_width  # before and after swish, and the masked kernel
        return numbers if geometry.indices is None else numbers + self._in_width

    def _kernel(self, mask: Tensor, geometry: PairGeometry) -> Tensor:
        return self.weight_net(geometry.coordinates, geometry.mask & mask[:, :, None])

    def forward_naively(
        self,
        features: Float[Tensor, "batch g width"],
        mask: Bool[Tensor, "batch g"],
        geometry: PairGeometry,
    ) -> Float[Tensor, "batch g out"]:
        """The same by one matrix k(g⁻¹g') for each pair: for tests and the study of its cost."""
        kernel = self._kernel(mask, geometry)
        weight = self.linear.weight.unflatten(1, (kernel.shape[-1], features.shape[-1]))
        matrices = (kernel @ weight.transpose(0, 1).flatten(1)).unflatten(-1, weight.shape[::2])
        values = geometry.keys_of(features[None])[0]
        convolved = (matrices @ values[..., None])[..., 0].sum(dim=2)
        return (convolved + self.linear.bias) / _neighbours(geometry)


def _neighbours(geometry: PairGeometry) -> Float[Tensor, "batch g 1"]:
    """|nbhd(g)|, at least 1."""
    return geometry.mask.sum(dim=-1, keepdim=True).clamp(min=1).to(geometry.coordinates.dtype)
