"""A small point cloud, lifted to SE(2), and what one of its elements attends to."""

import math
from typing import Any

import torch
from torch import Tensor

from lietransformer.clouds import PointCloud
from lietransformer.experiments.symmetry.lifting_config import LiftingConfig
from lietransformer.groups import get_group
from lietransformer.lift import LiftConfig, lift
from lietransformer.machine import git_commit
from lietransformer.pairs import NeighbourhoodConfig, choose_neighbours
from lietransformer.rng import stream, uniform

SCHEMA_VERSION = 1
_GROUP = "SE(2)"


def example(config: LiftingConfig) -> dict[str, Any]:
    """Points; their lifts (x, y, θ); one lift, its ball, and the sample that attention sees.

    All of it comes from the code that models use.
    """
    group = get_group(_GROUP)
    cloud = PointCloud(_points(config))
    lifted = lift(
        *(cloud, group, LiftConfig("evenly_spaced", config.lift_samples)),
        generator=stream(config.seed, "lift"),
    )
    elements = lifted.elements[0]
    angles = torch.atan2(elements[:, 1, 0], elements[:, 0, 0])
    # In the middle, where its neighbours are on all sides.
    chosen = int((elements[:, :2, 2].norm(dim=-1) + angles.abs()).argmin())
    neighbours = {
        name: _neighbours(lifted, chosen, setting, config.seed)
        for name, setting in (
            ("ball", NeighbourhoodConfig(ball=config.ball)),
            ("sample", NeighbourhoodConfig(ball=config.ball, samples=config.samples)),
        )
    }
    return {
        "schema_version": SCHEMA_VERSION,
        "settings": config.model_dump(mode="json"),
        "group": _GROUP,
        "points": cloud.positions[0].tolist(),
        "elements": torch.cat([elements[:, :2, 2], angles[:, None]], dim=-1).tolist(),
        "chosen": chosen,
        **neighbours,
        "git_commit": git_commit(),
    }


def _points(config: LiftingConfig) -> Tensor:
    """Points around the origin, at equal angles, so that none hides another."""
    generator = stream(config.seed, "points")
    angles = torch.arange(config.points, dtype=torch.float64) * (math.tau / config.points)
    radii = 0.35 + 0.6 * uniform(
        config.points, generator=generator, dtype=torch.float64, device="cpu"
    )
    return (radii * torch.stack([angles.cos(), angles.sin()])).T[None]


def _neighbours(lifted: Any, chosen: int, setting: NeighbourhoodConfig, seed: int) -> list[int]:
    generator = stream(seed, "neighbours")
    indices, mask = choose_neighbours(lifted, get_group(_GROUP), setting, generator=generator)
    return sorted(int(i) for i in indices[0, chosen][mask[0, chosen]])
