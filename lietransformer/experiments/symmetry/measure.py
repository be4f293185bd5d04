"""The measurement of Figure 3: |logits(ux) − logits(x)| by the number of lift samples."""

import time
from typing import Any

import torch
from torch import Tensor

from lietransformer.clouds import PointCloud
from lietransformer.experiments.constellations.dataset import (
    KIND,
    PATTERNS,
    Constellations,
    draw,
)
from lietransformer.experiments.constellations.plan import ConstellationsConfig
from lietransformer.experiments.symmetry.attention import logits
from lietransformer.experiments.symmetry.config import InvarianceConfig
from lietransformer.groups import get_group
from lietransformer.lift import LiftConfig
from lietransformer.machine import describe_machine, git_commit, peak_memory_gb
from lietransformer.models import LieTransformer, LieTransformerConfig
from lietransformer.nn.attention import AttentionConfig
from lietransformer.progress import progress
from lietransformer.rng import stream

SCHEMA_VERSION = 1
_GROUP = "SE(2)"
# One of each pattern, all of them there.
_EXAMPLES = ConstellationsConfig(repetitions=1, keep_probability=1.0)
# For every pattern whether it is there 0 times or once.
_LOGITS = len(PATTERNS) * (_EXAMPLES.repetitions + 1)


def measure(config: InvarianceConfig) -> dict[str, Any]:
    """Errors for each number of lift samples and each run, and all that they follow from.

    A run is a model, an example and a rotation about the origin, the same ones for every number
    of lift samples. The lift samples of the example and of its rotated copy are drawn anew and
    independently each time: with the same ones, turned along, the error would be zero.
    """
    started = time.monotonic()
    numbers = config.lift_samples()
    errors = [[0.0] * config.runs for _ in numbers]
    work = config.runs * sum(number**2 for number in numbers)
    with progress(total=work, description="invariance", unit=" pairs") as bar:
        for run in range(config.runs):
            example = draw_example(config, run).positions
            turn = get_group(_GROUP).sample_stabiliser(
                1, generator=stream(config.seed, "rotation", run), dtype=torch.float64
            )
            copy = get_group(_GROUP).act(turn[:, None], example)
            for place, number in enumerate(numbers):
                errors[place][run] = _error(config, run, number, example, copy)
                bar.update(number**2)
    return {
        "schema_version": SCHEMA_VERSION,
        "settings": config.model_dump(mode="json"),
        "lift_samples": numbers,
        "errors": errors,
        "seconds": time.monotonic() - started,
        "peak_memory_gb": peak_memory_gb(),
        "git_commit": git_commit(),
        "machine": describe_machine(torch.device("cpu")),
    }


def draw_example(config: InvarianceConfig, run: int) -> Constellations:
    """The example of a run: 17 points."""
    return draw(_EXAMPLES, 1, generator=stream(config.seed, "example", run))


def build(config: InvarianceConfig, run: int, lift_samples: int) -> LieTransformer:
    """The model of a run, with random weights: those do not depend on the lift samples."""
    settings = LieTransformerConfig(
        group=_GROUP,
        input_width=1,
        output_width=_LOGITS,
        width=config.width,
        layers=config.layers,
        heads=config.heads,
        attention=AttentionConfig(kernel_width=config.kernel_width, normalisation="constant"),
        lift=LiftConfig(config.scheme, lift_samples),
        norm="none",
    )
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(stream(config.seed, "model", run).initial_seed())
        return LieTransformer(settings).double().eval()


def _error(
    config: InvarianceConfig, run: int, lift_samples: int, example: Tensor, copy: Tensor
) -> float:
    """max |logits(ux) − logits(x)| over the logits."""
    model = build(config, run, lift_samples)
    outputs = []
    for purpose, positions in (("lift of example", example), ("lift of copy", copy)):
        generator = stream(config.seed, purpose, run, lift_samples)
        cloud = PointCloud(positions, torch.ones_like(positions[..., :1]))
        outputs.append(logits(model, model.lift(cloud, generator=generator)))
    return float((outputs[1] - outputs[0]).abs().max())


def training_example() -> dict[str, Any]:
    """The picture beside the errors: the first example of D_train that has all four patterns."""
    config = ConstellationsConfig()
    # Examples depend on how many are drawn at once: draw all, as the generator does.
    train = draw(config, config.train, generator=stream(config.seed, KIND, "train", 0))
    index = int((train.counts > 0).all(dim=1).nonzero()[0, 0])
    mask = train.mask[index]
    instance = train.instance[index, mask].tolist()
    names = list(PATTERNS)
    return {
        "training_index": index,
        "positions": train.positions[index, mask].tolist(),
        "instance": instance,
        "pattern": [names[number % len(names)] for number in instance],
    }
