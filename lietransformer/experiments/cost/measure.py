"""Time and peak memory of one layer, forward and backward, by set size and neighbourhood."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from lietransformer.clouds import PointCloud
from lietransformer.experiments.cost.config import ComplexityConfig
from lietransformer.experiments.cost.cost import Step, cost_of
from lietransformer.experiments.cost.steps import steps
from lietransformer.groups import get_group
from lietransformer.lift import LiftConfig, lift
from lietransformer.machine import describe_machine, git_commit
from lietransformer.nn.attention import AttentionConfig, LieSelfAttention
from lietransformer.nn.lieconv import LieConv
from lietransformer.pairs import NeighbourhoodConfig, PairGeometry, pair_geometry
from lietransformer.progress import progress
from lietransformer.rng import normal, stream

SCHEMA_VERSION = 2
# Its elements are points, so that the set has exactly the size that is asked for. How a layer's
# cost grows does not depend on the group: it sees pairs of elements.
_GROUP = "T(2)"

Layer = Callable[[Tensor], Tensor]


def measure(config: ComplexityConfig) -> dict[str, Any]:
    """Seconds and megabytes of each layer and of training steps, and all that they follow from.

    For layers, the neighbourhoods are found before the clock starts: in a model that is done once
    for all of them. A training step finds its own.
    """
    started = time.monotonic()
    sizes, step_sizes = config.sizes(), config.steps.sizes()
    measurements, training = [], []
    total = len(sizes) + len(step_sizes)
    with progress(total=total, description="complexity", unit=" sizes") as bar:
        for size, neighbourhood in sizes:
            measurements += list(_at(config, size, neighbourhood))
            bar.update()
        for each in step_sizes:
            training += list(steps(config, each))
            bar.update()
    return {
        "schema_version": SCHEMA_VERSION,
        "settings": config.model_dump(mode="json"),
        "measurements": measurements,
        "steps": training,
        "threads": torch.get_num_threads(),
        "seconds": time.monotonic() - started,
        "git_commit": git_commit(),
        "machine": describe_machine(torch.device("cpu")),
    }


def _at(config: ComplexityConfig, size: int, neighbourhood: int) -> Iterator[dict[str, Any]]:
    """All layers at one size."""
    generator = stream(config.seed, "cloud", size, neighbourhood)
    positions = normal(1, size, 2, generator=generator, dtype=torch.float32, device="cpu")
    lifted = lift(PointCloud(positions), get_group(_GROUP), LiftConfig())
    geometry = pair_geometry(
        lifted, get_group(_GROUP), NeighbourhoodConfig(ball=neighbourhood), kind="log"
    )
    features = normal(1, size, config.width, generator=generator, dtype=torch.float32, device="cpu")
    for name, layer, parameters in layers(config, size, neighbourhood, geometry, lifted.mask):
        cost = cost_of(_step(layer, features, parameters), config.repetitions)
        yield {"layer": name, "set_size": size, "neighbourhood": neighbourhood, **cost}


def layers(
    config: ComplexityConfig, size: int, neighbourhood: int, geometry: PairGeometry, mask: Tensor
) -> Iterator[tuple[str, Layer, list[nn.Parameter]]]:
    """Layers of the same width, with random weights."""
    pair_dimension = geometry.coordinates.shape[-1]
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(stream(config.seed, "weights").initial_seed())
        attention = LieSelfAttention(
            config.width,
            config.heads,
            pair_dimension,
            AttentionConfig(kernel_width=config.kernel_width),
        )
        convolution = LieConv(
            *(config.width, config.width, pair_dimension),
            kernel_widths=(32, 32, config.kernel_width),
        )
    yield "LieSelfAttention", lambda f: attention(f, geometry), list(attention.parameters())
    weights = list(convolution.parameters())
    yield "LieConv", lambda f: convolution(f, mask, geometry), weights
    if size * neighbourhood <= config.naive_pairs:
        yield (
            *("LieConv without the PointConv trick",),
            lambda f: convolution.forward_naively(f, mask, geometry),
            weights,
        )


def _step(layer: Layer, features: Tensor, parameters: list[nn.Parameter]) -> Step:
    """The layer and its gradients, as in training."""
    given = features.clone().requires_grad_()

    def step() -> None:
        torch.autograd.grad(layer(given).sum(), [given, *parameters])

    return step
