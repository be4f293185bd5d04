"""Samples of the stabilisers follow the Haar measure: their moments are those of theory."""

import pytest
import torch

from lietransformer.groups import get_group
from tests.cases import seeded

COUNT = 200_000
# Five standard errors of a mean of numbers in [−1, 1].
TOLERANCE = 5 / COUNT**0.5


def stabiliser_rotations(name: str, size: int) -> torch.Tensor:
    samples = get_group(name).sample_stabiliser(COUNT, generator=seeded(0), dtype=torch.float64)
    return samples[:, :size, :size]


@pytest.mark.parametrize("name", ["SE(2)", "SO(3)"])
def test_circular_stabilisers(name: str) -> None:
    rotations = stabiliser_rotations(name, 2)
    cosine, sine = rotations[:, 0, 0], rotations[:, 1, 0]
    for moment, expected in [
        (cosine, 0.0),
        (sine, 0.0),
        (cosine**2, 1 / 2),
        (cosine * sine, 0.0),
        (cosine**4, 3 / 8),
        (4 * cosine**3 - 3 * cosine, 0.0),
    ]:
        assert abs(moment.mean().item() - expected) < TOLERANCE


def test_rotations_of_space() -> None:
    rotations = stabiliser_rotations("SE(3)", 3)
    assert rotations.mean(0).abs().max() < TOLERANCE
    # E[R_ij R_kl] = δ_ik δ_jl / 3
    flat = rotations.flatten(1)
    second = flat.T @ flat / COUNT
    assert (second - torch.eye(9, dtype=second.dtype) / 3).abs().max() < TOLERANCE
    # Moments of the character: the number of times the trivial representation occurs in the
    # tensor powers of the representation of spin 1.
    trace = rotations.diagonal(dim1=-2, dim2=-1).sum(-1)
    for power, expected in [(1, 0), (2, 1), (3, 1), (4, 3)]:
        bound = 5 * (trace**power).std().item() / COUNT**0.5
        assert abs((trace**power).mean().item() - expected) < bound
    determinants = torch.linalg.det(rotations[:100])
    torch.testing.assert_close(determinants, torch.ones_like(determinants))


@pytest.mark.parametrize("name", ["C5", "D3", "T(2)xC4", "T(2)xD4"])
def test_finite_stabilisers_are_sampled_evenly(name: str) -> None:
    group = get_group(name)
    elements = group.stabiliser_elements(dtype=torch.float64)
    samples = group.sample_stabiliser(COUNT, generator=seeded(0), dtype=torch.float64)
    distance = (samples[:, None] - elements[None]).abs().amax((-1, -2))
    frequencies = (distance < 1e-9).double().mean(0)
    assert (frequencies - 1 / len(elements)).abs().max() < TOLERANCE
    assert abs(frequencies.sum().item() - 1) < 1e-12


@pytest.mark.parametrize("name", ["SO(2)", "SO(3)", "SE(2)", "SE(3)", "T(2)xD3", "R+xSO(2)"])
def test_samples_depend_on_the_generator_alone(name: str) -> None:
    group = get_group(name)
    first = group.sample(7, generator=seeded(1), dtype=torch.float64)
    torch.manual_seed(99)
    again = group.sample(7, generator=seeded(1), dtype=torch.float64)
    other = group.sample(7, generator=seeded(2), dtype=torch.float64)
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
