"""Which elements each element attends to, and the geometry of those pairs (paper, §3.2)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import repeat

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F

from lietransformer.checkpointing import can_be_split, recomputed
from lietransformer.clouds import LiftedCloud
from lietransformer.errors import require_at_least_one
from lietransformer.groups import Group, PairFeatures
from lietransformer.packing import Packing
from lietransformer.precision import in_full_precision
from lietransformer.rng import require_generator, uniform

# Ties in distance are the rule on lattices and for finite groups (a turn by +θ is as far as
# one by −θ). They are broken by other invariants of the pair, because rounding or the order
# of the points would break them differently for a transformed or a permuted input. So
# distances that agree to this precision count as tied, with each other and with the radius:
# well above rounding, well below anything that matters.
_TIE = {torch.float32: 2e-5, torch.float64: 1e-9}

# A neighbourhood of at least this share of all elements is cheaper to compute as all pairs
# with a mask than to gather.
_DENSE_SHARE = 0.5

# Distances and features are computed for this many pairs at a time.
_PAIRS_AT_ONCE = 2**19


@dataclass(frozen=True)
class NeighbourhoodConfig:
    """nbhd_η(g): the ball around g, and how much of it is used.

    Attributes:
        ball: keep this many nearest elements (None: all). Chooses η so that each ball has
            the same size, as the paper does for QM9.
        radius: keep elements at most this far away (None: any distance). η itself. Without
            a ball that bounds their number, memory is in proportion to the largest one, and
            on a GPU to all elements.
        samples: use this many elements, drawn uniformly from the ball, independently for every
            query and anew in every layer (None: the whole ball).
    """

    ball: int | None = None
    radius: float | None = None
    samples: int | None = None

    def __post_init__(self) -> None:
        require_at_least_one("neighbourhood ball", self.ball)
        require_at_least_one("neighbourhood samples", self.samples)
        if self.radius is not None and not self.radius > 0:
            raise ValueError(
                f"neighbourhood radius must be above 0, or None for any distance, got {self.radius}"
            )

    def ball_is_everything(self, count: int) -> bool:
        """Whether each ball holds all of `count` elements."""
        return self.radius is None and (self.ball is None or self.ball >= count)

    def is_everything(self, count: int) -> bool:
        """Whether all of `count` elements attend to all."""
        return self.ball_is_everything(count) and (self.samples is None or self.samples >= count)

    @property
    def is_random(self) -> bool:
        """Whether choosing neighbours draws random numbers."""
        return self.samples is not None


@dataclass(frozen=True, eq=False)
class PairGeometry:
    """The pairs (g, g') that a layer sees.

    Attributes:
        coordinates: the features of each pair, a function of g⁻¹g' and the orbit
            invariants of g and g'.
        mask: which pairs count: g' is real and within the neighbourhood of g. The query
            axis is 1 long where all queries share their neighbours.
        indices: the position of g' in the cloud; None where the keys of every query are
            all elements in their order, of which the mask may leave out some.
        ball_sizes: how many elements each ball holds before any are sampled from it; None
            where every ball holds everything.
        packing: where the features that a layer is given are packed; None where they are padded.
    """

    coordinates: Float[Tensor, "batch g key pair"]
    mask: Bool[Tensor, "batch #g key"]
    indices: Int[Tensor, "batch g key"] | None = None
    ball_sizes: Int[Tensor, "batch g"] | None = None
    packing: Packing | None = None

    def packed(self, packing: Packing) -> "PairGeometry":
        """The same for features that are packed."""
        return replace(self, packing=packing)

    def split(self, queries: int) -> Iterator["PairGeometry"]:
        """The same pairs in chunks of `queries` queries; the last may be smaller."""
        coordinates = self.coordinates.split(queries, dim=1)
        is_shared = self.mask.shape[1] == 1
        masks = [self.mask] * len(coordinates) if is_shared else self.mask.split(queries, dim=1)
        for number, part in enumerate(coordinates):
            rows = slice(number * queries, (number + 1) * queries)
            indices = None if self.indices is None else self.indices[:, rows]
            sizes = None if self.ball_sizes is None else self.ball_sizes[:, rows]
            yield PairGeometry(part, masks[number], indices, sizes)

    def keys_of(
        self, values: Float[Tensor, "heads batch n width"]
    ) -> Float[Tensor, "heads batch ones_or_g key width"]:
        """The values at g' for each pair; the query axis is 1 long where queries share keys."""
        return keys_of(values, self.indices)


def keys_of(
    values: Float[Tensor, "heads batch n width"], indices: Int[Tensor, "batch g key"] | None
) -> Float[Tensor, "heads batch ones_or_g key width"]:
    """The values at g' for each pair, given the indices of a `PairGeometry`."""
    if indices is None:
        return values[:, :, None]
    heads, batch = values.shape[:2]
    # Heads count as further examples, so that each pair's values come out contiguous.
    indices = indices.expand(heads, *indices.shape).flatten(0, 1)
    return gather(values.flatten(0, 1), indices).unflatten(0, (heads, batch))


def gather(
    values: Float[Tensor, "batch n *rest"], indices: Int[Tensor, "batch g key"]
) -> Float[Tensor, "batch g key *rest"]:
    """values[b, indices[b, i, j]] as one flat look-up."""
    batch, count = values.shape[:2]
    offsets = count * torch.arange(batch, device=values.device)[:, None, None]
    flat = values.flatten(0, 1).index_select(0, (indices + offsets).flatten())
    return flat.unflatten(0, indices.shape)


def pair_geometry(
    lifted: LiftedCloud,
    group: Group,
    config: NeighbourhoodConfig,
    *,
    kind: PairFeatures = "log",
    generator: torch.Generator | None = None,
    radius: Float[Tensor, ""] | None = None,
) -> PairGeometry:
    """The pairs that one layer sees; see `pairs_of_layers`."""
    return pairs_of_layers(
        lifted, group, config, layers=1, kind=kind, generator=generator, radius=radius
    )[0]


@in_full_precision
def pairs_of_layers(
    lifted: LiftedCloud,
    group: Group,
    config: NeighbourhoodConfig,
    *,
    layers: int,
    kind: PairFeatures = "log",
    generator: torch.Generator | None = None,
    radius: Float[Tensor, ""] | None = None,
) -> list[PairGeometry]:
    """Choose the neighbourhood of each element and compute the features of the pairs.

    The balls are the same for all layers. Where they are sampled, every layer gets its own draw:
    drawn once for all, a pair that is missing would be missing from the whole network, and the
    noise of all layers would be one noise. Layers without sampling share one object.

    A `radius` that a model adapts while it trains takes the place of that in the config.

    Invariant: it depends on g⁻¹g' only. Subsampling is uniform, so what is averaged over
    the neighbourhood stays equivariant in distribution. Memory is in proportion to the
    number of elements times the number of neighbours; where these are half of all elements or
    more, to that of all pairs.
    """
    if config.is_random:
        generator = require_generator(generator, purpose="sampling neighbours")
    count = lifted.mask.shape[1]
    if radius is None and config.is_everything(count):
        everything = PairGeometry(_coordinates(lifted, None, group, kind), lifted.mask[:, None, :])
        return [everything] * layers
    draws = layers if config.is_random else 1
    chosen, ball_sizes = _choose(lifted, group, config, generator, radius, draws)
    geometries = []
    coordinates: Tensor | None = None
    for indices, mask in chosen:
        if indices.shape[-1] < _DENSE_SHARE * count:
            own = _coordinates(lifted, indices, group, kind)
            geometries.append(PairGeometry(own, mask, indices, ball_sizes))
            continue
        if coordinates is None:
            coordinates = _coordinates(lifted, None, group, kind)
        # Padding is scattered to an extra element, which is dropped.
        nobody = torch.zeros(*mask.shape[:2], count + 1, dtype=torch.bool, device=mask.device)
        dense = nobody.scatter(-1, indices.masked_fill(~mask, count), mask)[..., :count]
        geometries.append(PairGeometry(coordinates, dense, None, ball_sizes))
    return geometries if config.is_random else geometries * layers


def _coordinates(
    lifted: LiftedCloud, indices: Tensor | None, group: Group, kind: PairFeatures
) -> Tensor:
    """The features of all pairs, or of those with the given keys."""
    batch, count = lifted.mask.shape
    pairs_of_a_query = batch * (count if indices is None else indices.shape[-1])
    if count * pairs_of_a_query <= _PAIRS_AT_ONCE or not can_be_split():
        return _pair_features(lifted.elements, lifted.orbits, indices, lifted, group, kind)
    # On the way to few numbers for each pair there are matrices.
    rows = max(1, _PAIRS_AT_ONCE // pairs_of_a_query)
    queries = zip(lifted.elements.split(rows, dim=1), lifted.orbits.split(rows, dim=1), strict=True)
    keys = repeat(None) if indices is None else indices.split(rows, dim=1)
    parts = [
        recomputed(_pair_features, *query, key, lifted, group, kind)
        for query, key in zip(queries, keys, strict=False)
    ]
    return torch.cat(parts, dim=1)


def _pair_features(
    elements: Tensor,
    orbits: Tensor,
    indices: Tensor | None,
    lifted: LiftedCloud,
    group: Group,
    kind: PairFeatures,
) -> Tensor:
    """The features of the pairs of some elements with all, or with those of the given indices."""
    if indices is None:
        keys, key_orbits = lifted.elements[:, None], lifted.orbits[:, None]
    else:
        keys, key_orbits = gather(lifted.elements, indices), gather(lifted.orbits, indices)
    coordinates = group.pair_coordinates(elements[:, :, None], keys, kind)
    if group.orbit_dimension == 0:
        return coordinates
    shape = (*coordinates.shape[:-1], group.orbit_dimension)
    both = (orbits[:, :, None].expand(shape), key_orbits.expand(shape))
    return torch.cat([coordinates, *both], dim=-1)


@torch.no_grad()
def choose_neighbours(
    lifted: LiftedCloud,
    group: Group,
    config: NeighbourhoodConfig,
    *,
    generator: torch.Generator | None = None,
) -> tuple[Int[Tensor, "batch g key"], Bool[Tensor, "batch g key"]]:
    """Indices of the neighbours of every element, and a mask of the valid ones.

    Which ones a sample holds depends on the generator and on the shape of the batch.
    """
    ((indices, mask),), _ = _choose(lifted, group, config, generator)
    return indices, mask


@torch.no_grad()
def _choose(
    lifted: LiftedCloud,
    group: Group,
    config: NeighbourhoodConfig,
    generator: torch.Generator | None,
    radius: Tensor | None = None,
    draws: int = 1,
) -> tuple[list[tuple[Tensor, Tensor]], Tensor]:
    """Indices and mask of the neighbours for each draw, and the sizes of the balls."""
    batch, count = lifted.mask.shape
    rows = max(1, _PAIRS_AT_ONCE // max(1, batch * count))
    chunks: list[list[tuple[Tensor, Tensor]]] = [[] for _ in range(draws)]
    sizes = []
    for start in range(0, count, rows):
        indices, mask = _ball(lifted, slice(start, start + rows), group, config, radius)
        sizes.append(mask.sum(dim=-1))
        for own in chunks:
            if config.samples is None:
                own.append((indices, mask))
            else:
                drawing = require_generator(generator, purpose="sampling neighbours")
                own.append(_subsample(indices, mask, config.samples, drawing))
    if not sizes:
        nobody = torch.empty(batch, 0, 0, dtype=torch.long, device=lifted.mask.device)
        return [(nobody, nobody.bool())] * draws, nobody.sum(dim=-1)
    joined = []
    for own in chunks:
        indices_of_chunks, masks_of_chunks = zip(*own, strict=True)
        joined.append((_joined(indices_of_chunks), _joined(masks_of_chunks)))
    return joined, torch.cat(sizes, dim=1)


def _joined(chunks: Sequence[Tensor]) -> Tensor:
    """One after another, with zeros where a chunk has fewer neighbours than the others."""
    most = max(chunk.shape[-1] for chunk in chunks)
    return torch.cat([F.pad(chunk, (0, most - chunk.shape[-1])) for chunk in chunks], dim=1)


def _ball(
    lifted: LiftedCloud,
    queries: slice,
    group: Group,
    config: NeighbourhoodConfig,
    radius: Tensor | None,
) -> tuple[Tensor, Tensor]:
    batch, count = lifted.mask.shape
    if radius is None and config.ball_is_everything(count):
        shape = (batch, lifted.mask[:, queries].shape[1], count)
        indices = torch.arange(count, device=lifted.mask.device).expand(shape)
        return indices, lifted.mask[:, None, :].expand(shape)
    ranking = _ranking(lifted, queries, group, config.radius if radius is None else radius)
    size = min(count, config.ball or count)
    if config.ball is None and config.samples is None and ranking.shape[1] < count:
        # The radius alone bounds a ball. In a set that is not looked at as a whole, it is worth
        # knowing the largest one; but not where that means to wait for a GPU, whose steps could
        # not be recorded any more.
        is_known = ranking.device.type == "cpu" and can_be_split()
        size = max(1, int(ranking.isfinite().sum(dim=-1).max())) if is_known else count
    nearest, indices = ranking.topk(size, dim=-1, largest=False)
    return indices, nearest.isfinite()


def _ranking(
    lifted: LiftedCloud, queries: slice, group: Group, radius: Tensor | float | None
) -> Tensor:
    """Distance of every element from the chosen queries, infinite where it does not count."""
    coordinates = group.pair_coordinates(
        lifted.elements[:, queries, None], lifted.elements[:, None, :]
    )
    orbit_difference = lifted.orbits[:, queries, None] - lifted.orbits[:, None, :]
    distance = group.distance_of_coordinates(coordinates, orbit_difference)
    tie = _TIE[distance.dtype]
    excluded = ~lifted.mask[:, None, :]
    if radius is not None:
        excluded = excluded | (distance > radius * (1 + tie))
    # Coincident points differ in their features alone; if not even there, either will do.
    ranking = distance + tie * (
        _number(coordinates) + _number(orbit_difference) + _number(lifted.features)[:, None, :]
    )
    return ranking.masked_fill(excluded, torch.inf)


def _number(vectors: Tensor) -> Tensor:
    """A number in (−1, 1) for each vector, different for different ones but by accident."""
    direction = torch.arange(1, vectors.shape[-1] + 1, dtype=vectors.dtype, device=vectors.device)
    return (vectors * direction.cos()).sum(-1).tanh()


def _subsample(
    indices: Tensor, mask: Tensor, samples: int, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """A uniform sample without replacement of each ball, drawn for every query on its own."""
    lottery = uniform(
        *mask.shape, generator=generator, dtype=torch.float32, device=mask.device
    ).masked_fill(~mask, -1)
    drawn, places = lottery.topk(min(samples, mask.shape[-1]), dim=-1)
    return indices.gather(-1, places), drawn >= 0
