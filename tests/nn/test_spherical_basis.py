"""The basis of DimeNet against scipy's special functions and the library's own layer."""

import math
import warnings

import numpy as np
import scipy.special
import torch

from lietransformer.models.specialists import EdgesWithin, _torch_geometric, successive_edges
from lietransformer.nn.spherical_basis import (
    SphericalBasis,
    legendre,
    spherical_bessel,
    spherical_bessel_roots,
)
from tests.cases import seeded


def test_roots_are_zeros_in_order() -> None:
    roots = spherical_bessel_roots(7, 6)
    for order in range(7):
        np.testing.assert_allclose(scipy.special.spherical_jn(order, roots[order]), 0, atol=1e-13)
        assert (np.diff(roots[order]) > math.pi * 0.99).all()
    np.testing.assert_allclose(roots[1, :3], [4.493409458, 7.725251837, 10.904121659])


def test_bessel_and_legendre() -> None:
    z = torch.linspace(1, 25, 40, dtype=torch.float64)[:, None, None].expand(40, 7, 1)
    values = spherical_bessel(z)[..., 0]
    for order in range(7):
        expected = scipy.special.spherical_jn(order, z[:, 0, 0].numpy())
        np.testing.assert_allclose(values[:, order], expected, atol=1e-11)
    x = torch.linspace(-1, 1, 21, dtype=torch.float64)
    for order in range(7):
        expected = scipy.special.eval_legendre(order, x.numpy())
        np.testing.assert_allclose(legendre(x, 7)[:, order], expected, atol=1e-13)


def test_equals_the_layer_of_the_library() -> None:
    """At small order, where that is derived quickly; its roots are rounded to float32."""
    library = _torch_geometric().dimenet
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = library.SphericalBasisLayer(3, 2, 5.0, 5)
    ours = SphericalBasis(3, 2, 5.0, library.Envelope(5))
    length = torch.linspace(0.9, 4.9, 20, dtype=torch.float64)
    angle = torch.linspace(0, 3.1, 30, dtype=torch.float64)
    edge = torch.randint(20, (30,), generator=seeded())
    torch.testing.assert_close(
        ours(length, angle, edge), theirs(length, angle, edge), rtol=0, atol=1e-5
    )
    single = ours(length.float(), angle.float(), edge)
    torch.testing.assert_close(single.double(), ours(length, angle, edge), rtol=1e-4, atol=1e-5)


def test_edges_and_pairs_of_edges_against_loops() -> None:
    generator = seeded()
    positions = 1.2 * torch.randn(14, 3, generator=generator)
    molecule = torch.tensor([0] * 6 + [1] * 3 + [2] * 5)
    (sender, receiver), length = EdgesWithin(2.5)(positions, molecule)
    found = list(zip(sender.tolist(), receiver.tolist(), strict=True))
    expected = [
        (j, i)
        for i in range(14)
        for j in range(14)
        if i != j and molecule[i] == molecule[j] and (positions[i] - positions[j]).norm() <= 2.5
    ]
    assert found == expected
    torch.testing.assert_close(length, (positions[sender] - positions[receiver]).norm(dim=1))
    first, second = successive_edges(sender, receiver)
    triplets = {
        (*found[a], found[b][1]) for a, b in zip(first.tolist(), second.tolist(), strict=True)
    }
    by_loops = {(k, j, i) for k, j in expected for other, i in expected if other == j and i != k}
    assert triplets == by_loops
    assert len(first) == len(by_loops) > 10
    assert all(
        found[a][1] == found[b][0] for a, b in zip(first.tolist(), second.tolist(), strict=True)
    )


def test_no_edges_at_all() -> None:
    (sender, receiver), _ = EdgesWithin(0.1)(torch.randn(3, 3, generator=seeded()), torch.arange(3))
    first, second = successive_edges(sender, receiver)
    assert len(first) == len(second) == 0
