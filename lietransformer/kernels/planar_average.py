"""`planar_average.c`: Σ_g' k_l(g⁻¹g')·v(g') over thousands of elements of SE(2), in float64."""

import ctypes

import torch
from torch import Tensor
from torch.nn import functional as F

from lietransformer.groups import Group
from lietransformer.groups.se2 import SE2
from lietransformer.groups.so2 import half_turn_margin, rotation_angle
from lietransformer.kernels import build as library
from lietransformer.kernels import head_mlp
from lietransformer.nn.attention import LieSelfAttention
from lietransformer.nn.scores import MLPLocation

_KEYS_AT_ONCE = 32  # LANES·VECTORS of planar_average.c


def supported(layer: LieSelfAttention, value: Tensor, elements: Tensor, group: Group) -> bool:
    """Whether the C code is there, and can compute `location_sums` of these."""
    tensors = (value, elements)
    return (
        isinstance(group, SE2)
        and all(tensor.device.type == "cpu" for tensor in tensors)
        and all(tensor.dtype == torch.float64 for tensor in tensors)
        and isinstance(layer.location, MLPLocation)
        and _load(layer.location.mlp.layer_parameters(), value) is not None
    )


def compute(
    layer: LieSelfAttention,
    value: Tensor,
    elements: Tensor,
    group: Group,  # noqa: ARG001 – SE(2)
) -> Tensor:
    """`location_sums`, to rounding."""
    assert isinstance(layer.location, MLPLocation)
    layers = layer.location.mlp.layer_parameters()
    code = _load(layers, value)
    assert code is not None  # `supported` has been asked
    heads, count, _ = value.shape
    angle = rotation_angle(elements[:, :2, :2])
    rows = [*elements[:, :2, 2].unbind(-1), angle, (angle / 2).cos(), (angle / 2).sin()]
    padding = -count % _KEYS_AT_ONCE
    table = torch.stack(rows)
    arrays = [
        torch.cat([table, table[:, :1].expand(-1, padding)], dim=1),
        head_mlp.packed(layers),
        F.pad(value.mT, (0, padding)).contiguous(),
        torch.empty_like(value, memory_format=torch.contiguous_format),
    ]
    sizes = (heads, count, count + padding, torch.get_num_threads())
    code.average(
        *map(ctypes.c_long, sizes),
        ctypes.c_double(half_turn_margin(torch.float64)),
        *(ctypes.c_void_p(array.data_ptr()) for array in arrays),
    )
    return arrays[-1]


def _load(layers: list[Tensor], value: Tensor) -> ctypes.CDLL | None:
    hidden, width = layers[0].shape[2], value.shape[2]
    if max(hidden, width) > head_mlp.WIDEST:
        return None
    return library.load("planar_average.c", (("HIDDEN", hidden), ("VALUES", width)))
