"""Lifting: from points of the space to elements of the group (paper, §3.1)."""

import math
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from lietransformer.clouds import LiftedCloud, PointCloud
from lietransformer.errors import require_choice
from lietransformer.groups import Group
from lietransformer.precision import in_full_precision
from lietransformer.rng import require_generator, uniform_angle

LiftScheme = Literal["exact", "random", "evenly_spaced", "subgroup"]


@dataclass(frozen=True)
class LiftConfig:
    """How the finite sample Ĥ of the stabiliser is chosen.

    Attributes:
        scheme: "exact", every element of a finite stabiliser; "random", Haar-uniform per
            point; "evenly_spaced", a circle's angles at equal steps plus one random offset
            per point; "subgroup", for SE(2), the same steps without an offset, so Ĥ = Cₖ for
            all points: nothing is random, and a model is exactly invariant to T(2) ⋊ Cₖ but
            not to other rotations.
        samples: |Ĥ|. With "exact" it follows from the group and is left out.
    """

    scheme: LiftScheme = "exact"
    samples: int | None = None

    def __post_init__(self) -> None:
        require_choice("lift scheme", self.scheme, LiftScheme)
        if self.scheme != "exact" and (self.samples is None or self.samples < 1):
            raise ValueError(
                f'scheme "{self.scheme}" needs at least 1 lift sample, got samples={self.samples}. '
                "Set samples, for example samples=2."
            )

    @property
    def is_random(self) -> bool:
        """Whether lifting draws random numbers."""
        return self.scheme in ("random", "evenly_spaced")

    def samples_for(self, group: Group) -> int:
        """|Ĥ| for this group; an error where group and scheme do not go together."""
        if self.scheme == "exact":
            order = group.stabiliser_order
            if order is None:
                raise ValueError(
                    f"an exact lift needs a finite stabiliser, but that of {group.name} is "
                    'continuous. Set scheme to "random" or "evenly_spaced", and samples.'
                )
            if self.samples not in (None, order):
                raise ValueError(
                    f"an exact lift to {group.name} has {order} samples, its whole stabiliser, got "
                    f"samples={self.samples}. Leave samples out of an exact lift."
                )
            return order
        if self.scheme != "random" and not group.has_circular_stabiliser:
            raise ValueError(
                f'scheme "{self.scheme}" needs a group whose stabiliser is a circle, got '
                f'{group.name}. Use SE(2) or SO(3), or the scheme "exact" or "random".'
            )
        if self.scheme == "subgroup" and group.translation_dimension != group.space_dimension:
            raise ValueError(
                'scheme "subgroup" needs a group with all translations, such as SE(2), got '
                f"{group.name}, where the same Ĥ for all points has no symmetry. Use the scheme "
                '"random" or "evenly_spaced".'
            )
        assert self.samples is not None  # checked on construction
        return self.samples


def choose_stabiliser_samples(
    group: Group,
    config: LiftConfig,
    points: Float[Tensor, "batch n space"],
    generator: torch.Generator | None,
) -> Float[Tensor, "batch ones_or_n samples m m"]:
    """Ĥ for every point; its own axis is 1 long where all points share the same Ĥ."""
    samples = config.samples_for(group)
    dtype, device = points.dtype, points.device
    if config.scheme == "exact":
        elements = group.stabiliser_elements(dtype=dtype, device=device)
        return elements.expand(len(points), 1, *elements.shape)
    if config.scheme == "random":
        generator = require_generator(generator, purpose=f"random lift samples of {group.name}")
        return group.sample_stabiliser(
            *points.shape[:2], samples, generator=generator, dtype=dtype, device=device
        )
    steps = torch.arange(samples, dtype=dtype, device=device) * (2 * math.pi / samples)
    if config.scheme == "subgroup":
        elements = group.stabiliser_rotation(steps)
        return elements.expand(len(points), 1, *elements.shape)
    generator = require_generator(generator, purpose=f"the lift offsets of {group.name}")
    offsets = uniform_angle(*points.shape[:2], 1, generator=generator, dtype=dtype, device=device)
    return group.stabiliser_rotation(offsets + steps)


@in_full_precision
def lift(
    cloud: PointCloud,
    group: Group,
    config: LiftConfig,
    *,
    generator: torch.Generator | None = None,
) -> LiftedCloud:
    """(x_i, f_i) ↦ (g, f_i) for g ∈ s(x_i)Ĥ (Eq. 5, with Ĥ ⊂ H finite as in §3.2).

    The |Ĥ| lifts of one point are neighbours in the result. Exactly equivariant where Ĥ is
    the whole stabiliser, in distribution where it is sampled, and to T(2) ⋊ Cₖ where it is
    the subgroup Cₖ.
    """
    cloud = cloud.cleaned()
    stabiliser = choose_stabiliser_samples(group, config, cloud.positions, generator)
    samples = stabiliser.shape[2]
    elements = group.lift(cloud.positions, stabiliser)
    positions = cloud.positions[:, :, None].expand(-1, -1, samples, -1)
    return LiftedCloud(
        elements=elements.flatten(1, 2),
        features=cloud.features.repeat_interleave(samples, dim=1),
        orbits=group.orbit_invariants(elements, positions).flatten(1, 2),
        mask=cloud.mask.repeat_interleave(samples, dim=1),
    )
