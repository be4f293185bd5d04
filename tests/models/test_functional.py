"""The model as a pure function of its parameters: what forces and vmapped seeds are made of."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.func import functional_call, grad, stack_module_state, vmap

from lietransformer.clouds import PointCloud
from lietransformer.experiments.registry import get_preset
from lietransformer.models import LieTransformer
from tests.cases import seeded

POSITIONS = torch.randn(4, 6, 2, generator=seeded(0), dtype=torch.float64)
FEATURES = torch.rand(4, 6, 2, generator=seeded(1), dtype=torch.float64)


def build(name: str, seed: int) -> LieTransformer:
    model = get_preset("springs", name).build(seed=seed).double()
    assert isinstance(model, LieTransformer)
    return model


@pytest.mark.parametrize("name", ["LieTransformer-T2 small", "LieTransformer-SE2 small"])
def test_the_force_is_the_same_by_functional_and_by_ordinary_differentiation(name: str) -> None:
    model = build(name, 0)

    def potential(parameters: dict[str, Tensor], positions: Tensor) -> Tensor:
        return functional_call(model, parameters, (PointCloud(positions, FEATURES),)).sum()

    functional = grad(potential, argnums=1)(dict(model.named_parameters()), POSITIONS)
    positions = POSITIONS.clone().requires_grad_()
    (ordinary,) = torch.autograd.grad(model(PointCloud(positions, FEATURES)).sum(), positions)
    torch.testing.assert_close(functional, ordinary)
    functional.square().sum().backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())


@pytest.mark.parametrize("name", ["LieTransformer-T2 small", "LieTransformer-SE2 small"])
def test_several_seeds_at_once_are_the_seeds_one_by_one(name: str) -> None:
    models = [build(name, seed) for seed in range(3)]
    parameters, buffers = stack_module_state(list(models))

    def one(parameters: dict[str, Tensor], buffers: dict[str, Tensor]) -> Tensor:
        cloud = PointCloud(POSITIONS, FEATURES)
        return functional_call(models[0], (parameters, buffers), (cloud,))

    together = vmap(one)(parameters, buffers)
    for model, output in zip(models, together, strict=True):
        torch.testing.assert_close(model(PointCloud(POSITIONS, FEATURES)), output)


@pytest.mark.slow
def test_what_is_compiled_compiles_as_one_graph() -> None:
    """In another process: the shape checks of the test suite cannot be traced."""
    program = Path(__file__).with_name("compile_program.py")
    subprocess.run([sys.executable, program], check=True)
