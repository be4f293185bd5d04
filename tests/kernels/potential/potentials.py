"""Potentials, and their force with its gradients in two ways."""

import torch
from torch import Tensor

from lietransformer.clouds import PointCloud
from lietransformer.dynamics.hamiltonian import gradient
from lietransformer.kernels import potential as second_order
from lietransformer.models.lie_resnet import LieResNet, LieResNetConfig
from lietransformer.models.lie_transformer import LieTransformer, LieTransformerConfig

ROUNDING = 5e-5
PLAIN = LieTransformerConfig("T(2)", input_width=2, output_width=1, width=24, layers=3, heads=3)
CONVOLUTION = LieResNetConfig("T(2)", input_width=2, output_width=1, width=24, layers=3)

Config = LieTransformerConfig | LieResNetConfig
Model = LieTransformer | LieResNet


def untrained(config: Config) -> Model:
    return LieTransformer(config) if isinstance(config, LieTransformerConfig) else LieResNet(config)


def potential(config: Config) -> Model:
    torch.manual_seed(0)
    model = untrained(config)
    for parameter in model.parameters():  # large enough for positions to matter in every layer
        parameter.data = 1.5 * parameter.data + 0.1 * torch.randn_like(parameter)
    return model


def inputs(config: Config, batch: int = 4, points: int = 5) -> tuple[Tensor, ...]:
    space = 3 if config.group == "T(3)" else 2
    torch.manual_seed(1)
    positions, direction = torch.randn(2, batch, points, space)
    return positions, torch.rand(batch, points, config.input_width) + 0.5, direction


def by_pytorch(
    model: Model, positions: Tensor, features: Tensor, direction: Tensor
) -> list[Tensor]:
    """The force and the gradients of its product with the direction, in double precision."""
    twin = untrained(model.config)
    twin.load_state_dict(model.state_dict())
    twin.double()
    q = positions.double().requires_grad_()
    force = gradient(lambda q: twin(PointCloud(q, features.double())), q)
    wanted = [q, *twin.parameters()]
    total = (force * direction.double()).sum()
    return [force, *torch.autograd.grad(total, wanted, materialize_grads=True)]


def by_passes(model: Model, positions: Tensor, features: Tensor, direction: Tensor) -> list[Tensor]:
    q = positions.clone().requires_grad_()
    assert second_order.applies(model, q, features)
    force = second_order.Potential(model, features).gradient(q)
    wanted = [q, *model.parameters()]
    return [force, *torch.autograd.grad((force * direction).sum(), wanted)]


def assert_agree(model: Model, found: list[Tensor], expected: list[Tensor]) -> None:
    names = ["force", "positions", *(name for name, _ in model.named_parameters())]
    for name, a, b in zip(names, found, expected, strict=True):
        assert (a - b).abs().max() <= ROUNDING * b.abs().max(), name
    unused = [name for name, b in zip(names, expected, strict=True) if not b.any()]
    # A constant added to V changes no force; and all else has been tested.
    assert unused == [names[-1]]
    assert names[-1].endswith("output.bias")
