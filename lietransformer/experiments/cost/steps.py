"""Time and peak memory of a training step of whole models, by the sizes it depends on."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from lietransformer.clouds import PointCloud
from lietransformer.experiments.cost.config import ComplexityConfig, StepSizes
from lietransformer.experiments.cost.cost import Step, cost_of
from lietransformer.lift import LiftConfig
from lietransformer.models import LieResNet, LieResNetConfig, LieTransformer, LieTransformerConfig
from lietransformer.models.base import LiftedModel
from lietransformer.nn.attention import AttentionConfig
from lietransformer.pairs import NeighbourhoodConfig
from lietransformer.rng import normal, stream

# A group whose stabiliser is sampled. With a subgroup for a sample the lift itself is not random.
_GROUP = "SE(2)"


def steps(config: ComplexityConfig, sizes: StepSizes) -> Iterator[dict[str, Any]]:
    """What a step of each model costs, and what finding the neighbours for it does."""
    generator = stream(config.seed, "clouds", *sizes.model_dump().values())
    shape = (sizes.batch, sizes.set_size)
    positions = normal(*shape, 2, generator=generator, dtype=torch.float32, device="cpu")
    features = normal(*shape, 1, generator=generator, dtype=torch.float32, device="cpu")
    target = normal(sizes.batch, 1, generator=generator, dtype=torch.float32, device="cpu")
    cloud = PointCloud(positions, features)
    built = models(config, sizes)
    named: dict[str, Step] = {
        name: training_step(model, cloud, target, seed=config.seed) for name, model in built.items()
    }
    named["neighbours"] = _search(built["LieTransformer"], cloud, seed=config.seed)
    for name, step in named.items():
        cost = cost_of(step, config.steps.repetitions)
        yield {"model": name, **sizes.model_dump(), **cost}


def models(config: ComplexityConfig, sizes: StepSizes) -> dict[str, LiftedModel]:
    """A LieTransformer and a network of LieConv of these sizes, with random weights."""
    lift = LiftConfig("subgroup", samples=sizes.lift_samples)
    neighbourhood = NeighbourhoodConfig(ball=2 * sizes.neighbourhood, samples=sizes.neighbourhood)
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(stream(config.seed, "weights").initial_seed())
        return {
            "LieTransformer": LieTransformer(
                LieTransformerConfig(
                    *(_GROUP, 1, 1, config.width, sizes.layers, config.heads),
                    attention=AttentionConfig(kernel_width=config.kernel_width),
                    lift=lift,
                    neighbourhood=neighbourhood,
                )
            ),
            "LieConv": LieResNet(
                LieResNetConfig(
                    *(_GROUP, 1, 1, config.width, sizes.layers),
                    lift=lift,
                    neighbourhood=neighbourhood,
                )
            ),
        }


def training_step(model: LiftedModel, cloud: PointCloud, target: Tensor, *, seed: int = 0) -> Step:
    """Forward, loss, backward and a step of Adam; the same neighbours are drawn each time."""
    optimiser = torch.optim.Adam(model.parameters())
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimiser.step()  # which makes its averages: a step of training finds them there
    optimiser.zero_grad()

    def step() -> None:
        output = model(cloud, generator=stream(seed, "neighbours"))
        F.mse_loss(output, target).backward()
        optimiser.step()
        optimiser.zero_grad()

    return step


def _search(model: LiftedModel, cloud: PointCloud, *, seed: int) -> Step:
    """The part of the step that finds the pairs, and their coordinates."""

    def step() -> None:
        model.pairs(model.lift(cloud), generator=stream(seed, "neighbours"))

    return step
