"""Networks made for molecules: their symmetries, and the library they come from."""

import sys
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from lietransformer.clouds import PointCloud
from lietransformer.groups import get_group
from lietransformer.models import Specialist, SpecialistConfig
from lietransformer.models.specialists import EdgesWithin, _torch_geometric, successive_edges
from lietransformer.nn.spherical_basis import SphericalBasis
from lietransformer.testing import (
    assert_invariant,
    assert_padding_invariant,
    assert_permutation_invariant,
    relative_error,
)
from tests.models.builders import molecules, specialist


@pytest.mark.parametrize("kind", ["SchNet", "DimeNet++"])
def test_specialists_see_distances_and_angles_only(kind: str) -> None:
    model, cloud = specialist(kind), molecules()
    output = model(cloud)
    assert output.shape == (3, 2)
    other = replace(cloud, positions=cloud.positions * 1.1)
    assert relative_error(model(other), output) > 1e-3
    assert_invariant(model, get_group("SE(3)"), cloud)
    torch.testing.assert_close(model(replace(cloud, positions=-cloud.positions)), output)
    assert_permutation_invariant(model, cloud)
    assert_padding_invariant(model, cloud)


@pytest.mark.parametrize("kind", ["SchNet", "DimeNet++"])
def test_molecules_of_a_batch_do_not_see_each_other(kind: str) -> None:
    model, cloud = specialist(kind), molecules()
    for row in range(3):
        alone = PointCloud(*(part[row : row + 1] for part in vars(cloud).values()))
        torch.testing.assert_close(model(alone)[0], model(cloud)[row])
    empty = cloud.mask.clone()
    empty[2] = False
    assert (model(replace(cloud, mask=empty))[2] == 0).all()


def test_what_is_beyond_the_cutoff_does_not_matter() -> None:
    for kind in ("SchNet", "DimeNet++"):
        model, cloud = specialist(kind, cutoff=2.0), molecules()
        far = cloud.positions.clone()
        far[0, 0] += torch.tensor([50.0, 0.0, 0.0])
        further = far.clone()
        further[0, 0] += torch.tensor([50.0, 9.0, 0.0])
        near = replace(cloud, positions=far)
        torch.testing.assert_close(model(near), model(replace(cloud, positions=further)))


def test_dimenet_is_the_one_of_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same parameters in the library's own class give the same numbers.

    Given the means to find edges and triplets, and a basis that is derived in no time.
    """
    library = _torch_geometric().dimenet
    edges = EdgesWithin(5.0)

    def radius_graph(positions: Tensor, *, batch: Tensor, **_: object) -> Tensor:
        return edges(positions, batch)[0]

    def triplets(edge_index: Tensor, **_: object) -> tuple[Tensor, ...]:
        sender, receiver = edge_index
        first, second = successive_edges(sender, receiver)
        return receiver, sender, receiver[second], sender[second], sender[first], first, second

    def basis(spherical: int, radial: int, cutoff: float, exponent: int) -> nn.Module:
        return SphericalBasis(spherical, radial, cutoff, library.Envelope(exponent))

    monkeypatch.setattr(library, "radius_graph", radius_graph)
    monkeypatch.setattr(library, "triplets", triplets)
    monkeypatch.setattr(library, "SphericalBasisLayer", basis)
    theirs = library.DimeNetPlusPlus(128, 2, 4, 64, 8, 256, 7, 6).double().eval()
    ours = specialist("DimeNet++").network
    assert isinstance(ours, nn.Module)
    names = {"radial": "rbf", "spherical": "sbf", "embedding": "emb"}
    names |= {"interactions": "interaction_blocks", "outputs": "output_blocks"}
    state = {}
    for key, value in ours.state_dict().items():
        first, _, rest = key.partition(".")
        state[f"{names[first]}.{rest}"] = value
    theirs.load_state_dict(state)
    cloud = molecules()
    charges = torch.tensor([1, 6, 7, 8, 9])[cloud.features.argmax(dim=-1)][cloud.mask]
    inputs = charges, cloud.positions[cloud.mask], cloud.mask.nonzero()[:, 0]
    torch.testing.assert_close(ours(*inputs), theirs(*inputs))


def test_schnet_is_the_one_of_the_library() -> None:
    theirs = _torch_geometric().SchNet(interaction_graph=EdgesWithin(10.0)).double()
    config = SpecialistConfig("SchNet", (1, 6, 7, 8, 9), 5, 1, 10.0)
    ours = Specialist(config).double()
    theirs.load_state_dict(
        {k.removeprefix("network.network."): v for k, v in ours.state_dict().items()}
    )
    cloud = molecules()
    charges = torch.tensor([1, 6, 7, 8, 9])[cloud.features.argmax(dim=-1)][cloud.mask]
    expected = theirs(charges, cloud.positions[cloud.mask], cloud.mask.nonzero()[:, 0])
    torch.testing.assert_close(ours(cloud), expected)


def test_molecules_without_atoms_anywhere_in_a_batch() -> None:
    for kind in ("SchNet", "DimeNet++"):
        model, cloud = specialist(kind), molecules()
        for empty in ([0], [1], [0, 1, 2]):
            mask = cloud.mask.clone()
            mask[empty] = False
            output = model(replace(cloud, mask=mask))
            assert (output[empty] == 0).all()
            rest = [row for row in range(3) if row not in empty]
            torch.testing.assert_close(output[rest], model(cloud)[rest])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cutoff": -1.0}, "cutoff must be above 0"),
        ({"elements": ()}, "nuclear charges from 1 to 94"),
        ({"elements": (1, 200)}, "nuclear charges from 1 to 94"),
        ({"input_width": 3}, "input_width must be at least 5"),
    ],
)
def test_impossible_specialists_are_refused(changes: dict[str, Any], message: str) -> None:
    config = SpecialistConfig("SchNet", (1, 6, 7, 8, 9), 5, 1, 5.0)
    with pytest.raises(ValueError, match=message):
        replace(config, **changes)


def test_without_the_optional_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch_geometric", None)
    with pytest.raises(ImportError, match=r"pip install 'lietransformer\[specialists\]'"):
        specialist("SchNet")
