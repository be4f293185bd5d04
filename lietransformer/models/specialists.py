"""Networks made for molecules, from torch_geometric: SchNet and DimeNet++.

They need the optional packages of `pip install 'lietransformer[specialists]'`. Their own
neighbour search and list of triplets want compiled extensions; molecules of QM9 are small
enough to find both among all pairs with torch alone. Both are as long as there are neighbours
and triplets: on a GPU, every step waits until the lengths are known.
"""

import importlib.util
import warnings
from dataclasses import dataclass
from typing import Any, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from lietransformer.clouds import PointCloud
from lietransformer.errors import require_at_least_one, require_choice
from lietransformer.groups.series import safe_norm
from lietransformer.models.base import check_input
from lietransformer.nn.spherical_basis import SphericalBasis

SpecialistKind = Literal["SchNet", "DimeNet++"]


@dataclass(frozen=True)
class SpecialistConfig:
    """A network made for molecules, with the settings that torch_geometric has for QM9.

    Attributes:
        kind: which one.
        elements: nuclear charges; the first so many features of an atom are the one-hot code
            of its element among these.
        input_width: number of features of an atom, of which only those are used.
        output_width: number of outputs of a molecule.
        cutoff: atoms further apart (Å) do not see each other.
    """

    kind: SpecialistKind
    elements: tuple[int, ...]
    input_width: int
    output_width: int
    cutoff: float

    def __post_init__(self) -> None:
        require_choice("kind", self.kind, SpecialistKind)
        require_at_least_one("output_width", self.output_width)
        if not self.elements or not all(1 <= charge <= 94 for charge in self.elements):
            raise ValueError(f"elements must be nuclear charges from 1 to 94, got {self.elements}")
        if not self.cutoff > 0:
            raise ValueError(f"cutoff must be above 0 (Å), got {self.cutoff}")
        if self.input_width < len(self.elements):
            raise ValueError(
                f"input_width must be at least {len(self.elements)}, one for each element, got "
                f"{self.input_width}. The first features are the one-hot code of the element."
            )


class Specialist(nn.Module):
    """SchNet or DimeNet++ behind the interface of the other models.

    Sees distances (and, DimeNet++, angles) between atoms only: exactly invariant to SE(3)
    and to reflections, to permutations and to padding. DimeNet++ has no value where two atoms
    coincide.
    """

    is_random = False
    charges: Tensor

    def __init__(self, config: SpecialistConfig) -> None:
        super().__init__()
        self.config = config
        self.register_buffer("charges", torch.tensor(config.elements), persistent=False)
        network = _SchNet if config.kind == "SchNet" else _DimeNet
        self.network = network(config.cutoff, config.output_width)

    def forward(
        self,
        cloud: PointCloud,
        *,
        generator: torch.Generator | None = None,  # noqa: ARG002 – as every model takes it
    ) -> Float[Tensor, "batch out"]:
        check_input(self, cloud, self.config.input_width, 3)
        element = cloud.features[..., : len(self.config.elements)].argmax(dim=-1)
        charges = self.charges[element][cloud.mask]
        positions = cloud.positions[cloud.mask]
        molecule = cloud.mask.nonzero()[:, 0]
        by_molecule = self.network(charges, positions, molecule)
        # What has no atoms has no row: the last molecules of a batch may be all padding.
        missing = len(cloud.mask) - len(by_molecule)
        return nn.functional.pad(by_molecule, (0, 0, 0, missing))


class _SchNet(nn.Module):
    """SchNet (Schütt et al., 2018) with the library's settings: 6 interactions of width 128."""

    def __init__(self, cutoff: float, output_width: int) -> None:
        super().__init__()
        self.network = _torch_geometric().SchNet(
            hidden_channels=128,
            num_filters=128,
            num_interactions=6,
            num_gaussians=50,
            cutoff=cutoff,
            interaction_graph=EdgesWithin(cutoff),
        )
        if output_width != 1:
            self.network.lin2 = nn.Linear(self.network.lin2.in_features, output_width)

    def forward(
        self,
        charges: Int[Tensor, "atoms"],
        positions: Float[Tensor, "atoms 3"],
        molecule: Int[Tensor, "atoms"],
    ) -> Float[Tensor, "molecules out"]:
        return self.network(charges, positions, molecule)


class _DimeNet(nn.Module):
    """DimeNet++ (Gasteiger et al., 2020) with 4 blocks of width 128.

    Put together from the library's blocks, because its own class spends half a minute on
    deriving the spherical basis symbolically.
    """

    def __init__(self, cutoff: float, output_width: int) -> None:
        super().__init__()
        width, radial, spherical, blocks = 128, 6, 7, 4
        library = _torch_geometric().dimenet
        swish = nn.SiLU()
        self.edges = EdgesWithin(cutoff)
        self.radial = library.BesselBasisLayer(radial, cutoff, envelope_exponent=5)
        self.spherical = SphericalBasis(spherical, radial, cutoff, library.Envelope(5))
        self.embedding = library.EmbeddingBlock(radial, width, swish)
        self.interactions = nn.ModuleList(
            library.InteractionPPBlock(width, 64, 8, spherical, radial, 1, 2, swish)
            for _ in range(blocks)
        )
        self.outputs = nn.ModuleList(
            library.OutputPPBlock(radial, width, 256, output_width, 3, swish)
            for _ in range(blocks + 1)
        )

    def forward(
        self,
        charges: Int[Tensor, "atoms"],
        positions: Float[Tensor, "atoms 3"],
        molecule: Int[Tensor, "atoms"],
    ) -> Float[Tensor, "molecules out"]:
        (sender, receiver), length = self.edges(positions, molecule)
        incoming, outgoing = successive_edges(sender, receiver)
        vector = positions[receiver] - positions[sender]
        radial = self.radial(length)
        angle = _angle(vector[outgoing], vector[incoming])
        spherical = self.spherical(length, angle, incoming)
        message = self.embedding(charges, radial, receiver, sender)
        count = len(charges)
        atomic = self.outputs[0](message, radial, receiver, num_nodes=count)
        for interaction, output in zip(self.interactions, self.outputs[1:], strict=True):
            message = interaction(message, radial, spherical, incoming, outgoing)
            atomic = atomic + output(message, radial, receiver, num_nodes=count)
        molecules = int(molecule.max()) + 1 if count else 0
        total = atomic.new_zeros(molecules, atomic.shape[-1])
        return total.index_add(0, molecule, atomic)


def _angle(a: Float[Tensor, "*n 3"], b: Float[Tensor, "*n 3"]) -> Float[Tensor, "*n"]:
    """The angle between two vectors, accurate also where it is small."""
    sine = torch.linalg.cross(a, b, dim=-1).norm(dim=-1)
    return torch.atan2(sine, (a * b).sum(dim=-1))


class EdgesWithin(nn.Module):
    """Edges between different atoms of a molecule up to the cutoff, and their lengths."""

    def __init__(self, cutoff: float) -> None:
        super().__init__()
        self.cutoff = cutoff

    def forward(
        self, positions: Float[Tensor, "atoms 3"], molecule: Int[Tensor, "atoms"]
    ) -> tuple[Int[Tensor, "2 edges"], Float[Tensor, "edges"]]:
        """Sender and receiver of each edge, in the order of receivers, and its length.

        The atoms of a molecule must come one after another.
        """
        sizes = torch.bincount(molecule)
        first = sizes.cumsum(0) - sizes
        receiver, place = _runs(sizes[molecule])
        sender = first[molecule[receiver]] + place
        length = safe_norm(positions[receiver] - positions[sender])
        is_edge = (sender != receiver) & (length <= self.cutoff)
        return torch.stack([sender[is_edge], receiver[is_edge]]), length[is_edge]


def _runs(lengths: Int[Tensor, "runs"]) -> tuple[Int[Tensor, "items"], Int[Tensor, "items"]]:
    """Runs of the given lengths, one after another: for each item its run and its place in it."""
    run = torch.arange(len(lengths), device=lengths.device).repeat_interleave(lengths)
    begin = lengths.cumsum(0) - lengths
    return run, torch.arange(len(run), device=lengths.device) - begin[run]


def successive_edges(
    sender: Int[Tensor, "edges"], receiver: Int[Tensor, "edges"]
) -> tuple[Int[Tensor, "triplets"], Int[Tensor, "triplets"]]:
    """All pairs of edges k → j and j → i with k ≠ i: the number of the first and the second.

    Edges must come in the order of their receivers: those that arrive at j are then a run.
    """
    arriving = torch.bincount(receiver, minlength=int(sender.max()) + 1 if len(sender) else 0)
    begin = arriving.cumsum(0) - arriving
    second, place = _runs(arriving[sender])
    first = begin[sender[second]] + place
    forward = sender[first] != receiver[second]
    return first[forward], second[forward]


def _torch_geometric() -> Any:
    """The models of torch_geometric."""
    if importlib.util.find_spec("torch_geometric") is None:
        raise ImportError(
            "SchNet and DimeNet++ need the package torch_geometric. Run "
            "`pip install 'lietransformer[specialists]'`."
        )
    with warnings.catch_warnings():
        # torch_geometric compiles parts of itself with torch.jit, which is deprecated.
        warnings.simplefilter("ignore")
        from torch_geometric.nn import models  # noqa: PLC0415 – optional
    return models
