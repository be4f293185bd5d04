"""The groups and inputs that many tests go through."""

import itertools
from collections.abc import Iterable
from typing import Any, get_args

import torch
from allpairspy import AllPairs

from lietransformer.clouds import PointCloud
from lietransformer.groups import get_group
from lietransformer.lift import LiftConfig
from lietransformer.models import LieTransformer, LieTransformerConfig
from lietransformer.nn import AttentionConfig
from lietransformer.nn.attention import (
    CombinationKind,
    ContentKind,
    LocationKind,
    NormalisationKind,
)

# Groups whose lift is exact, and so is the invariance of a model.
EXACT_GROUPS = [
    "T(1)",
    "T(2)",
    "T(3)",
    "SO(2)",
    "C1",
    "C2",
    "C3",
    "C6",
    "D1",
    "D2",
    "D5",
    "T(2)xC1",
    "T(2)xC2",
    "T(2)xC3",
    "T(2)xC4",
    "T(2)xD1",
    "T(2)xD4",
    "R+xSO(2)",
    "Trivial(2)",
    "Trivial(3)",
]
SAMPLED_GROUPS = ["SE(2)", "SE(3)", "SO(3)"]
ALL_GROUPS = EXACT_GROUPS + SAMPLED_GROUPS

PRECISIONS = [torch.float32, torch.float64]


def pairwise(*axes: Iterable[Any]) -> list[tuple[Any, ...]]:
    """Few combinations in which any two values of different axes meet.

    A fault that takes three particular values to show can be missed; one of two cannot.
    """
    return [tuple(case) for case in AllPairs([list(axis) for axis in axes])]


def pairwise_attention(*axes: Iterable[Any]) -> list[tuple[Any, ...]]:
    """As `pairwise`, of the axes and the choices of attention, which stand last as one config."""
    before = len(tuple(axes))
    kinds = map(get_args, (ContentKind, LocationKind, CombinationKind, NormalisationKind))

    def is_valid(case: list[Any]) -> bool:
        chosen = case[before:]
        return len(chosen) < 3 or chosen[2] != "additive" or chosen[0] == "dot_product"

    cases = AllPairs([*map(list, axes), *map(list, kinds)], filter_func=is_valid)
    return [(*own[:before], _attention(*own[before:])) for own in cases]


def _attention(
    content: Any, location: Any, combination: Any, normalisation: Any
) -> AttentionConfig:
    return AttentionConfig(content, location, combination, normalisation, kernel_width=4)


def case_id(value: object) -> str | None:
    """How a value is named in the id of a test; None leaves it to pytest."""
    if isinstance(value, AttentionConfig):
        return describe(value)
    return str(value) if isinstance(value, torch.dtype) else None


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def default_lift(group: str) -> LiftConfig:
    return LiftConfig("random", samples=2) if group in SAMPLED_GROUPS else LiftConfig()


def small_config(group: str, **changes: object) -> LieTransformerConfig:
    settings: dict[str, object] = {
        "input_width": 2,
        "output_width": 3,
        "width": 8,
        "layers": 2,
        "heads": 2,
        "lift": default_lift(group),
        "attention": AttentionConfig(kernel_width=4),
    }
    return LieTransformerConfig(group, **{**settings, **changes})  # type: ignore[arg-type]


def build(group: str, dtype: torch.dtype = torch.float64, **changes: object) -> LieTransformer:
    """A small model whose output depends strongly on the geometry.

    Freshly initialised, some choices of attention hardly look at positions (by 1e-6 of the
    output), and an invariance test in float32 would pass whatever they did with them.
    """
    torch.manual_seed(0)
    model = LieTransformer(small_config(group, **changes)).to(dtype)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.mul_(3)
    return model


def random_cloud(
    group: str,
    *,
    batch: int = 3,
    points: int = 5,
    dtype: torch.dtype = torch.float64,
    seed: int = 0,
    masked: bool = True,
) -> PointCloud:
    """A random cloud for the group; with masked points (of wild values) unless told not to."""
    generator = seeded(seed)
    dimension = get_group(group).space_dimension
    positions = torch.randn(batch, points, dimension, generator=generator, dtype=dtype)
    features = torch.randn(batch, points, 2, generator=generator, dtype=dtype)
    mask = torch.ones(batch, points, dtype=torch.bool)
    if masked and points > 1:
        mask[0, -1] = False
        positions[0, -1] = 1e6
    return PointCloud(positions, features, mask)


def attention_choices() -> list[AttentionConfig]:
    """All 3×2×3×2 combinations of App. E."""
    return [
        AttentionConfig(*choice, kernel_width=4)
        for choice in itertools.product(
            get_args(ContentKind),
            get_args(LocationKind),
            get_args(CombinationKind),
            get_args(NormalisationKind),
        )
    ]


def is_possible(config: AttentionConfig) -> bool:
    return config.combination != "additive" or config.content == "dot_product"


def describe(config: AttentionConfig) -> str:
    return "-".join([config.content, config.location, config.combination, config.normalisation])
