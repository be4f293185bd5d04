"""The paper's attention in one pass over the pairs, for training and evaluation on a CPU.

For scores q·k + MLP(location) and their plain average, C code takes a block of pairs from its
coordinates to its part of the output at once. Scores of all pairs are never stored, in neither
direction, and pairs with elements that are not real are not computed.
"""

import ctypes
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from lietransformer.dispatch import has_hooks
from lietransformer.kernels import build as library
from lietransformer.kernels import head_mlp
from lietransformer.kernels.autograd_fallback import Plain
from lietransformer.kernels.calling import call
from lietransformer.kernels.conditions import are_ordinary, is_wrapped, leading_keys
from lietransformer.nn.attention import LieSelfAttention, masked_average, side_by_side
from lietransformer.nn.mlp import per_head_mlp
from lietransformer.nn.scores import (
    AdditiveCombination,
    DotProductContent,
    MLPLocation,
    map_pairs,
)
from lietransformer.pairs import PairGeometry

# Loops over the channels of a head are unrolled in part, and their sums kept on the stack.
_WIDEST_HEAD = 64


def supported(layer: LieSelfAttention, joint: Tensor, geometry: PairGeometry) -> bool:
    """Whether the C code is there, and can compute `weighted_sums` of these."""
    mlp = location_parameters(layer)
    if mlp is None or geometry.indices is not None:
        return False
    tensors = (joint, geometry.coordinates, *mlp)
    return (
        are_ordinary(*tensors)
        and not any(map(is_wrapped, tensors))
        and leading_keys(geometry) is not None
        and _load(layer.value.out_features // layer.heads, mlp) is not None
    )


def compute(layer: LieSelfAttention, joint: Tensor, geometry: PairGeometry) -> Tensor:
    """`weighted_sums` of real queries, to rounding. Queries that are not real get zeros."""
    counts, mlp = leading_keys(geometry), location_parameters(layer)
    assert counts is not None
    assert mlp is not None
    first_rows = None if geometry.packing is None else counts.cumsum(dim=0) - counts
    sets = _Sets(counts, first_rows, geometry.coordinates.shape[2], layer.heads)
    plain = partial(_by_operations, layer, geometry)
    result: Tensor = _Attention.apply(  # type: ignore[no-untyped-call]
        plain, sets, joint, geometry.coordinates, *mlp
    )
    return result


def location_parameters(layer: LieSelfAttention) -> list[Tensor] | None:
    """Weights and biases of the location MLP, where the choices are those of the C code."""
    parts = (layer.content, layer.location, layer.combination)
    if (
        tuple(map(type, parts)) != (DotProductContent, MLPLocation, AdditiveCombination)
        or layer.normalisation != "constant"
        or layer.query.out_features != layer.value.out_features
        or has_hooks(*parts)
    ):
        return None
    assert isinstance(layer.location, MLPLocation)
    return head_mlp.layer_parameters(layer.location.mlp)


def _by_operations(
    layer: LieSelfAttention,
    geometry: PairGeometry,
    joint: Tensor,
    coordinates: Tensor,
    *mlp: Tensor,
) -> Tensor:
    """`weighted_sums` in PyTorch, as a function of all that it can be differentiated by."""
    query, key, value = layer.heads_of(joint)
    location = map_pairs(lambda x: per_head_mlp(x, *mlp), coordinates.movedim(-1, 0)[None])
    scores = layer.combination(layer.content(query, key, geometry), location, geometry)
    return side_by_side(masked_average(scores, geometry.mask) @ value)


@dataclass(frozen=True, eq=False)
class _Sets:
    """What the C code is told about sizes.

    Attributes:
        counts: of the real elements of each example.
        first_rows: of each example; None if all have as many.
        elements: of an example, real or not.
        heads: of attention.
    """

    counts: Tensor
    first_rows: Tensor | None
    elements: int
    heads: int

    def arguments(self, joint: Tensor, coordinates: Tensor, mlp: Any) -> tuple[int | Tensor, ...]:
        """What both functions begin with."""
        batch = len(self.counts)
        rows = self.first_rows
        if rows is None:
            rows = self.elements * torch.arange(batch)
        x = coordinates.movedim(-1, 0).contiguous()
        sizes = (batch, self.elements, self.heads, torch.get_num_threads())
        return (*sizes, self.counts, rows, x, joint.contiguous(), head_mlp.packed(mlp))

    def padded(self, rows: Tensor) -> Tensor:
        """Rows with an axis for examples, if they have none."""
        if self.first_rows is None:
            return rows
        return rows.new_zeros(*self.is_real.shape, rows.shape[-1]).masked_scatter(
            self.is_real[..., None], rows
        )

    def of_real(self, out: Tensor) -> Tensor:
        """What is not real left out, or zero, as the C code has it."""
        if self.first_rows is None:
            return out * self.is_real[..., None]
        return out[self.is_real][None]

    @property
    def is_real(self) -> Tensor:
        return torch.arange(self.elements) < self.counts[:, None]


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, plain: Plain, sets: _Sets, joint: Tensor, coordinates: Tensor, *mlp: Tensor
    ) -> Tensor:
        ctx.plain, ctx.sets = plain, sets
        ctx.save_for_backward(joint, coordinates, *mlp)
        out = joint.new_zeros(*joint.shape[:-1], joint.shape[-1] // 3)
        code = _code(out.shape[-1] // sets.heads, mlp)
        given = sets.arguments(joint, coordinates, mlp)
        call(code.value, *given, _scratch(code, sets.elements), out)
        return out

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        joint, coordinates, *mlp = ctx.saved_tensors
        sets: _Sets = ctx.sets
        if torch.is_grad_enabled():  # the gradient is to be differentiated in turn
            return None, None, *_by_pytorch(ctx, gradient)
        by_joint = torch.zeros_like(joint, memory_format=torch.contiguous_format)
        by_x = None
        if ctx.needs_input_grad[3]:
            by_x = joint.new_zeros(coordinates.movedim(-1, 0).shape)
        code = _code(joint.shape[-1] // 3 // sets.heads, mlp)
        *sizes, packed = sets.arguments(joint, coordinates, mlp)
        assert isinstance(packed, Tensor)
        by_mlp = joint.new_empty(len(sets.counts), *packed.shape)
        given = (*sizes, packed, gradient.contiguous(), _scratch(code, sets.elements))
        call(code.gradient, *given, by_joint, by_mlp, by_x)
        by_coordinates = None if by_x is None else by_x.movedim(0, -1)
        by_parameters = head_mlp.unpacked(by_mlp.sum(dim=0), like=mlp)
        return None, None, by_joint, by_coordinates, *by_parameters


def _by_pytorch(ctx: Any, gradient: Tensor) -> list[Tensor | None]:
    """The gradients of what is differentiable, themselves differentiable."""
    joint, *others = inputs = ctx.saved_tensors
    wanted = [tensor for tensor in inputs if tensor.requires_grad]
    out = ctx.sets.of_real(ctx.plain(ctx.sets.padded(joint), *others))
    found = iter(torch.autograd.grad(out, wanted, gradient, create_graph=True))
    return [next(found) if tensor.requires_grad else None for tensor in inputs]


def _scratch(code: ctypes.CDLL, elements: int) -> Tensor:
    code.scratch_size.restype = ctypes.c_long
    size = int(code.scratch_size(ctypes.c_long(elements)))
    return torch.empty(torch.get_num_threads(), size)


def _code(head_width: int, mlp: Any) -> ctypes.CDLL:
    code = _load(head_width, mlp)
    assert code is not None  # `supported` has been asked
    return code


def _load(head_width: int, mlp: Any) -> ctypes.CDLL | None:
    """The code for layers and heads of these widths; None where C cannot be used."""
    widths = head_mlp.widths(mlp)
    if widths is None or widths[-1] != 1 or head_width > _WIDEST_HEAD:
        return None
    names = ("IN", "HIDDEN", "OUT")
    return library.load("attention.c", (*zip(names, widths, strict=True), ("C", head_width)))
