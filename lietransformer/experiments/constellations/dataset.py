"""Constellations: count the instances of four patterns among the vertices (§4.1, App. I.1)."""

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from lietransformer.data.augmentation import draw_transformations, transform
from lietransformer.data.config import Augmentation
from lietransformer.data.writer import ArrayWriter, create_dataset
from lietransformer.experiments.constellations.plan import ConstellationsConfig
from lietransformer.progress import progress
from lietransformer.rng import normal, stream, uniform
from lietransformer.threads import one_thread

KIND = "constellations"
SPLITS = ("train", "validation", "test")
_EXAMPLES_AT_ONCE = 10_000
_TRANSFORMATIONS: tuple[Augmentation, ...] = ("T2", "SE2")


def _regular_polygon(vertices: int) -> Float[Tensor, "vertices 2"]:
    """The vertices-th roots of unity."""
    angles = 2 * math.pi * torch.arange(vertices, dtype=torch.float64) / vertices
    return torch.stack([angles.cos(), angles.sin()], dim=-1)


PATTERNS: dict[str, Tensor] = {
    "square": _regular_polygon(4),
    "triangle": _regular_polygon(3),
    "pentagon": _regular_polygon(5),
    "L": torch.tensor([(0, 0), (1, 0), (2, 0), (2, 1), (2, 2)], dtype=torch.float64),
}

# Variant release: how far a pattern is from the point that it is rotated about, along both axes,
# and by how much its place in the field is multiplied. The authors' code adds 2 to all three
# homogeneous coordinates of a polygon's vertices, which triples its translation.
_RELEASE_PLACEMENT = {"square": (2, 3), "triangle": (2, 3), "pentagon": (2, 3), "L": (1, 1)}


@dataclass(frozen=True, eq=False)
class Constellations:
    """Examples of one split. An instance is numbered pattern + 4·repetition.

    Attributes:
        positions: the vertices, in [−1, 1]²; 0 where a vertex is absent.
        mask: which vertices are there.
        instance: which instance a vertex belongs to; −1 where it is absent.
        counts: how many instances of each pattern there are, the target.
        present: which instances are there.
        angle: how far each instance was rotated.
        scale: how much each instance was enlarged.
        centre: where in the field each instance was put.
    """

    positions: Float[Tensor, "examples slots 2"]
    mask: Bool[Tensor, "examples slots"]
    instance: Int[Tensor, "examples slots"]
    counts: Int[Tensor, "examples patterns"]
    present: Bool[Tensor, "examples instances"]
    angle: Float[Tensor, "examples instances"]
    scale: Float[Tensor, "examples instances"]
    centre: Float[Tensor, "examples instances 2"]


def generate(config: ConstellationsConfig, path: Path) -> None:
    """Write the three splits and the transformed copies of the test split, piece by piece."""
    sizes = {split: getattr(config, split) for split in SPLITS}
    with (
        create_dataset(
            path, kind=KIND, config=config.model_dump(mode="json"), seed=config.seed
        ) as file,
        progress(total=sum(sizes.values()), description=KIND, unit=" examples") as bar,
        one_thread(),
    ):
        for split, size in sizes.items():
            arrays: dict[str, ArrayWriter] = {}
            for piece, first in enumerate(range(0, size, _EXAMPLES_AT_ONCE)):
                # Each split has streams of its own, so none can repeat another's examples.
                generator = stream(config.seed, KIND, split, piece)
                count = min(_EXAMPLES_AT_ONCE, size - first)
                examples = draw(config, count, generator=generator)
                values = _stored(split, examples, config.seed, piece)
                if not arrays:
                    arrays = {
                        name: file.array(
                            name, (size * len(value) // count, *value.shape[1:]), value.dtype.str
                        )
                        for name, value in values.items()
                    }
                for name, value in values.items():
                    arrays[name].append(value)
                bar.update(count)


def draw(config: ConstellationsConfig, count: int, *, generator: torch.Generator) -> Constellations:
    """Random examples.

    Instances are rotated, scaled and placed; vertices get noise; each example is scaled to
    [−1, 1], both axes alike, so that shapes keep their proportions; vertices are shuffled, the
    absent ones among them. Variant text takes the extremes of the vertices that are present;
    variant release those of all slots, and puts polygons into a field three times as wide as
    that of the L, which therefore always lies in the lower left.
    """
    names = list(PATTERNS) * config.repetitions
    is_release = config.variant == "release"
    placement = [_RELEASE_PLACEMENT[name] if is_release else (0, 1) for name in names]
    templates = [
        PATTERNS[name] + offset for name, (offset, _) in zip(names, placement, strict=True)
    ]
    spread = torch.tensor([[factor] for _, factor in placement], dtype=torch.float64)
    template = torch.cat(templates)
    owner = torch.cat([torch.full((len(t),), i) for i, t in enumerate(templates)])

    present = _draw_presence(config.keep_probability, count, len(templates), generator)
    angle = (
        config.rotation * math.pi * (2 * _uniform(count, len(templates), generator=generator) - 1)
    )
    scale = 1 + config.upscale * _uniform(count, len(templates), generator=generator)
    centre = spread * config.field * _uniform(count, len(templates), 2, generator=generator)
    noise = config.noise * normal(
        count, len(template), 2, generator=generator, dtype=torch.float64, device="cpu"
    )

    cosine, sine = angle.cos()[:, owner], angle.sin()[:, owner]
    x, y = template.unbind(-1)
    rotated = torch.stack([cosine * x - sine * y, sine * x + cosine * y], dim=-1)
    positions = scale[:, owner, None] * rotated + centre[:, owner] + noise
    mask = present[:, owner]
    positions = _to_unit_square(positions, torch.ones_like(mask) if is_release else mask)
    positions = torch.where(mask[..., None], positions, 0)
    instance = torch.where(mask, owner, -1)

    order = _uniform(count, len(template), generator=generator).argsort(dim=1)
    return Constellations(
        positions=positions.take_along_dim(order[..., None], dim=1),
        mask=mask.take_along_dim(order, dim=1),
        instance=instance.take_along_dim(order, dim=1),
        counts=present.unflatten(1, (config.repetitions, len(PATTERNS))).sum(dim=1),
        present=present,
        angle=angle,
        scale=scale,
        centre=centre,
    )


def _draw_presence(
    probability: float, count: int, instances: int, generator: torch.Generator
) -> Bool[Tensor, "count instances"]:
    """Each instance is there with the given probability; an example without any is redrawn."""
    present = torch.zeros(count, instances, dtype=torch.bool)
    while len(empty := (~present.any(dim=1)).nonzero()[:, 0]):
        present[empty] = _uniform(len(empty), instances, generator=generator) < probability
    return present


def _to_unit_square(
    positions: Float[Tensor, "examples slots 2"], counts: Bool[Tensor, "examples slots"]
) -> Float[Tensor, "examples slots 2"]:
    """Scale each example to [−1, 1] by the extremes of the vertices that count."""
    lowest = torch.where(counts[..., None], positions, math.inf).amin(dim=(1, 2), keepdim=True)
    highest = torch.where(counts[..., None], positions, -math.inf).amax(dim=(1, 2), keepdim=True)
    return 2 * (positions - lowest) / (highest - lowest) - 1


def _uniform(*shape: int, generator: torch.Generator) -> Tensor:
    return uniform(*shape, generator=generator, dtype=torch.float64, device="cpu")


def _stored(split: str, examples: Constellations, seed: int, piece: int) -> dict[str, np.ndarray]:
    """What is written of some examples; of test examples also the transformed copies."""
    narrow = {"instance": np.int16, "counts": np.int16}
    values = {}
    for name, tensor in vars(examples).items():
        array = tensor.numpy()
        values[f"{split}/{name}"] = array.astype(narrow.get(name, array.dtype))
    labels = {name: values[f"{split}/{name}"] for name in ("mask", "instance", "counts")}
    for kind in _TRANSFORMATIONS if split == "test" else ():
        elements = draw_transformations(
            kind,
            len(examples.positions),
            generator=stream(seed, KIND, split, piece, kind),
            dtype=torch.float64,
        )
        moved = transform(examples.positions, elements, kind)
        moved = torch.where(examples.mask[..., None], moved, 0)
        copy = {"positions": moved.numpy(), "transformation": elements.numpy(), **labels}
        untransformed = {
            "positions": examples.positions.numpy(),
            "transformation": np.broadcast_to(np.eye(3), elements.shape),
            **labels,
        }
        for name, array in copy.items():
            values[f"test_{kind}_all/{name}"] = array
            # Alternating, so that the first rows are a mixture too.
            both = np.stack([untransformed[name], array], axis=1)
            values[f"test_{kind}/{name}"] = both.reshape(-1, *array.shape[1:])
    return values
