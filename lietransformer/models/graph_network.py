"""The graph network that the paper compares with on springs (Sanchez-Gonzalez et al., 2019)."""

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as F

from lietransformer.clouds import PointCloud
from lietransformer.errors import require_at_least_one, require_choice
from lietransformer.models.base import check_input

ReadOut = Literal["global", "node"]


@dataclass(frozen=True)
class GraphNetworkConfig:
    """Everything that defines a graph network.

    Attributes:
        space_dimension: of the positions, which are input like any other feature.
        input_width: number of features of a point.
        output_width: number of outputs, of an example or of each point.
        read_out: "global" for outputs of the example, "node" for outputs of each point, which
            are then flattened.
        width: of all hidden layers.
        layers: number of rounds of updates.
    """

    space_dimension: int
    input_width: int
    output_width: int
    read_out: ReadOut
    width: int = 256
    layers: int = 4

    def __post_init__(self) -> None:
        require_choice("read_out", self.read_out, ReadOut)
        for name in ("space_dimension", "input_width", "output_width", "width", "layers"):
            require_at_least_one(name, getattr(self, name))


class _SplitLinear(nn.Module):
    """A linear map of several inputs side by side, Σᵢ xᵢWᵢ + b, without joining them.

    The inputs need not have the same leading axes, only ones that broadcast. So what belongs
    to a node is multiplied once per node, and not once per edge.
    """

    def __init__(self, in_widths: tuple[int, ...], out_width: int) -> None:
        super().__init__()
        self.joint = nn.Linear(sum(in_widths), out_width)
        self.in_widths = in_widths

    def forward(self, *inputs: Tensor) -> Tensor:
        weights = self.joint.weight.split(self.in_widths, dim=1)
        parts = (F.linear(x, weight) for x, weight in zip(inputs, weights, strict=True))
        return sum(parts, start=self.joint.bias)


class _Update(nn.Module):
    """Two linear layers with swish after each."""

    def __init__(self, in_widths: tuple[int, ...], width: int) -> None:
        super().__init__()
        self.first = _SplitLinear(in_widths, width)
        self.second = nn.Linear(width, width)

    def forward(self, *inputs: Tensor) -> Tensor:
        return F.silu(self.second(F.silu(self.first(*inputs))))


class GraphNetworkLayer(nn.Module):
    """e' = φₑ(e, v_receiver, v_sender, u); v' = φᵥ(Σe', v, u); u' = φᵤ(Σe', Σv', u).

    On the complete graph with self-loops, as dense tensors: edges are indexed by receiver and
    sender. Their states take memory for all channels of all pairs. Sums run over real points
    only. Permutation equivariant.
    """

    def __init__(self, edge_width: int, node_width: int, global_width: int, width: int) -> None:
        super().__init__()
        self.edge = _Update((edge_width, node_width, node_width, global_width), width)
        self.node = _Update((width, node_width, global_width), width)
        self.whole = _Update((width, width, global_width), width)

    def forward(
        self,
        edges: Float[Tensor, "batch receiver sender edge"],
        nodes: Float[Tensor, "batch n node"],
        whole: Float[Tensor, "batch whole"],
        mask: Bool[Tensor, "batch n"],
    ) -> tuple[Tensor, Tensor, Tensor]:
        absent = ~mask[..., None]
        edges = self.edge(edges, nodes[:, :, None], nodes[:, None], whole[:, None, None])
        received = edges.masked_fill(absent[:, None], 0).sum(dim=2)
        nodes = self.node(received, nodes, whole[:, None])
        whole = self.whole(
            received.masked_fill(absent, 0).sum(dim=1),
            nodes.masked_fill(absent, 0).sum(dim=1),
            whole,
        )
        return edges, nodes, whole


class GraphNetwork(nn.Module):
    """Layers of edge, node and global updates, and a linear map of the last state.

    Invariant to permutations and padding (outputs of points: equivariant), and to nothing
    else: positions are plain features.
    """

    is_random = False

    def __init__(self, config: GraphNetworkConfig) -> None:
        super().__init__()
        self.config = config
        node_width = config.space_dimension + config.input_width
        self.layers = nn.ModuleList(
            GraphNetworkLayer(1, node_width, 1, config.width)
            if number == 0
            else GraphNetworkLayer(config.width, config.width, config.width, config.width)
            for number in range(config.layers)
        )
        self.output = nn.Linear(config.width, config.output_width)

    def forward(
        self,
        cloud: PointCloud,
        *,
        generator: torch.Generator | None = None,  # noqa: ARG002 – as every model takes it
    ) -> Float[Tensor, "batch out"]:
        check_input(self, cloud, self.config.input_width, self.config.space_dimension)
        cloud = cloud.cleaned()
        nodes = torch.cat([cloud.positions, cloud.features], dim=-1)
        batch, count = cloud.mask.shape
        edges = nodes.new_ones(batch, count, count, 1)
        whole = nodes.new_ones(batch, 1)
        for layer in self.layers:
            edges, nodes, whole = layer(edges, nodes, whole, cloud.mask)
        if self.config.read_out == "global":
            return self.output(whole)
        return self.output(nodes).masked_fill(~cloud.mask[..., None], 0).flatten(1)
