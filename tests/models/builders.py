"""Small baselines whose output depends strongly on positions, for many tests."""

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import nn

from lietransformer.clouds import PointCloud
from lietransformer.models import (
    FullyConnected,
    FullyConnectedConfig,
    GraphNetwork,
    GraphNetworkConfig,
    LieResNet,
    LieResNetConfig,
    SetTransformer,
    SetTransformerConfig,
    Specialist,
    SpecialistConfig,
)
from tests.cases import default_lift, seeded


def enlarged(model: nn.Module, dtype: torch.dtype = torch.float64) -> nn.Module:
    """In evaluation, with parameters that make the output depend strongly on positions."""
    generator = seeded(5)
    model = model.to(dtype).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.mul_(3)
            if not parameter.any():  # some start at zero
                noise = torch.randn(parameter.shape, generator=generator)
                parameter.copy_(0.3 * noise.to(dtype))
    return model


def lie_resnet(name: str, dtype: torch.dtype = torch.float64, **changes: object) -> LieResNet:
    settings: dict[str, object] = {"width": 16, "layers": 2, "lift": default_lift(name)}
    torch.manual_seed(0)
    config = LieResNetConfig(name, 2, 3, **{**settings, **changes})  # type: ignore[arg-type]
    model = enlarged(LieResNet(config), dtype)
    assert isinstance(model, LieResNet)
    return model


def set_transformer(**changes: object) -> nn.Module:
    torch.manual_seed(0)
    config = SetTransformerConfig(2, 2, True, 3, 2, 16, 2, 2, 4)
    return enlarged(SetTransformer(replace(config, **changes)))  # type: ignore[arg-type]


def graph_network(**changes: object) -> nn.Module:
    torch.manual_seed(0)
    config = GraphNetworkConfig(2, 2, 3, "global", width=16, layers=2)
    return enlarged(GraphNetwork(replace(config, **changes)))  # type: ignore[arg-type]


def fully_connected() -> nn.Module:
    torch.manual_seed(0)
    return enlarged(FullyConnected(FullyConnectedConfig(5, 2, 2, 3, width=16)))


def molecules(dtype: torch.dtype = torch.float64) -> PointCloud:
    """Points at the distances of atoms, with the one-hot code of 5 elements."""
    generator = seeded()
    grid = torch.cartesian_prod(*[torch.arange(3.0)] * 3)[torch.randperm(27, generator=generator)]
    positions = 1.3 * grid[None, :7] + 0.2 * torch.randn(3, 7, 3, generator=generator)
    element = torch.randint(5, (3, 7), generator=generator)
    mask = torch.arange(7)[None] < torch.tensor([[7], [5], [6]])
    one_hot = nn.functional.one_hot(element, 5)
    return PointCloud(positions.to(dtype), one_hot.to(dtype), mask)


def specialist(kind: str, cutoff: float = 5.0) -> nn.Module:
    torch.manual_seed(0)
    config = SpecialistConfig(kind, (1, 6, 7, 8, 9), 5, 2, cutoff)  # type: ignore[arg-type]
    return enlarged(Specialist(config))


SMALL: dict[str, Callable[[], nn.Module]] = {
    "LieConv": lambda: lie_resnet("T(2)"),
    "LieConv with batch norm": lambda: lie_resnet("T(2)", norm="batch"),
    "SetTransformer": set_transformer,
    "graph network": graph_network,
    "fully-connected": fully_connected,
}
