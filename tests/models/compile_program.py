"""Compiles a force and a random model in one graph each, and compares with eager execution.

The backend leaves out the code generator, which would take a minute.
"""

import torch
from torch import Tensor
from torch.func import functional_call, grad

from lietransformer.clouds import PointCloud
from lietransformer.experiments.registry import get_preset
from lietransformer.lift import LiftConfig
from lietransformer.models import LieTransformer, LieTransformerConfig
from lietransformer.pairs import NeighbourhoodConfig


def compare_forces() -> None:
    """The gradient of the springs' potential: lift, pairs and network in one function."""
    model = get_preset("springs", "LieTransformer-SE2 small").build(seed=0)
    positions, features = torch.randn(4, 6, 2), torch.rand(4, 6, 2)

    def potential(parameters: dict[str, Tensor], positions: Tensor) -> Tensor:
        return functional_call(model, parameters, (PointCloud(positions, features),)).sum()

    force = grad(potential, argnums=1)
    compiled = torch.compile(force, fullgraph=True, backend="aot_eager")
    parameters = {name: value.detach() for name, value in model.named_parameters()}
    torch.testing.assert_close(compiled(parameters, positions), force(parameters, positions))


def compare_random_models() -> None:
    """What follows the random steps of a model with sampled lifts and neighbours."""
    config = LieTransformerConfig(
        group="SE(3)",
        input_width=1,
        output_width=1,
        width=8,
        layers=2,
        heads=2,
        lift=LiftConfig("random", samples=2),
        neighbourhood=NeighbourhoodConfig(ball=6, samples=3),
    )
    model = LieTransformer(config)
    generator = torch.Generator().manual_seed(0)
    lifted = model.lift(PointCloud(torch.randn(2, 8, 3)), generator=generator)
    arguments = (lifted.features, lifted.mask, model.pairs(lifted, generator=generator))
    compiled = torch.compile(model.forward_pairs, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(*arguments), model.forward_pairs(*arguments))


if __name__ == "__main__":
    torch.manual_seed(0)
    compare_forces()
    compare_random_models()
