"""The fully-connected network that the paper compares with on springs."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from lietransformer.clouds import PointCloud
from lietransformer.errors import require_at_least_one
from lietransformer.models.base import check_input


@dataclass(frozen=True)
class FullyConnectedConfig:
    """Everything that defines a fully-connected network.

    Attributes:
        points: number of points of every example.
        space_dimension: of the positions.
        input_width: number of features of a point.
        output_width: number of outputs of an example.
        width: of the hidden layers.
        layers: number of hidden layers.
    """

    points: int
    space_dimension: int
    input_width: int
    output_width: int
    width: int = 256
    layers: int = 4

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            require_at_least_one(name, value)


class FullyConnected(nn.Module):
    """Positions and features of all points, flattened, through an MLP with swish.

    Has no symmetry: neither to permutations nor to any group. Points that are masked count
    as zeros.
    """

    is_random = False

    def __init__(self, config: FullyConnectedConfig) -> None:
        super().__init__()
        self.config = config
        inputs = config.points * (config.space_dimension + config.input_width)
        self.hidden = nn.ModuleList(
            nn.Linear(inputs if number == 0 else config.width, config.width)
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
        if cloud.positions.shape[1] != self.config.points:
            raise ValueError(
                f"the model takes {self.config.points} points in every example, got "
                f"{cloud.positions.shape[1]}. Build it for this number."
            )
        x = torch.cat([cloud.positions, cloud.features], dim=-1)
        x = x.masked_fill(~cloud.mask[..., None], 0).flatten(1)
        for layer in self.hidden:
            x = F.silu(layer(x))
        return self.output(x)
