"""exp and log against scipy's matrix functions, from the generators of each algebra."""

import math

import numpy as np
import pytest
import scipy.linalg
import torch

from lietransformer.groups import get_group
from tests.groups.test_laws import coordinates_within


def matrix_unit(size: int, *entries: tuple[int, int, float]) -> np.ndarray:
    matrix = np.zeros((size, size))
    for row, column, value in entries:
        matrix[row, column] = value
    return matrix


PLANE_ROTATION = ((1, 0, 1.0), (0, 1, -1.0))
SPACE_ROTATIONS = (
    ((2, 1, 1.0), (1, 2, -1.0)),
    ((0, 2, 1.0), (2, 0, -1.0)),
    ((1, 0, 1.0), (0, 1, -1.0)),
)
# ν⁻¹ of each unit vector of coordinates.
GENERATORS = {
    "T(1)": [matrix_unit(2, (0, 1, 1.0))],
    "T(2)": [matrix_unit(3, (i, 2, 1.0)) for i in range(2)],
    "T(3)": [matrix_unit(4, (i, 3, 1.0)) for i in range(3)],
    "SO(2)": [matrix_unit(2, *PLANE_ROTATION)],
    "SE(2)": [
        *(matrix_unit(3, (i, 2, 1.0)) for i in range(2)),
        matrix_unit(3, *PLANE_ROTATION),
    ],
    "SO(3)": [matrix_unit(3, *entries) for entries in SPACE_ROTATIONS],
    "SE(3)": [
        *(matrix_unit(4, (i, 3, 1.0)) for i in range(3)),
        *(matrix_unit(4, *entries) for entries in SPACE_ROTATIONS),
    ],
    "R+xSO(2)": [np.eye(2), matrix_unit(2, *PLANE_ROTATION)],
}


@pytest.mark.parametrize("radius", [0.0, 1e-9, 1e-3, 1.0, 0.99 * math.pi])
@pytest.mark.parametrize("name", GENERATORS)
def test_exp_and_log_agree_with_scipy(name: str, radius: float) -> None:
    group = get_group(name)
    coordinates = coordinates_within(name, radius, 8, seed=int(1000 * radius))
    for vector in coordinates:
        algebra = np.einsum("i,ijk->jk", vector.numpy(), np.array(GENERATORS[name]))
        exponential = scipy.linalg.expm(algebra)
        element = group.exp(vector)
        np.testing.assert_allclose(element.numpy(), exponential, rtol=1e-12, atol=1e-12)
        logarithm = scipy.linalg.logm(exponential)
        ours = np.einsum(
            "i,ijk->jk",
            group.log_coordinates(torch.tensor(exponential)).numpy(),
            np.array(GENERATORS[name]),
        )
        np.testing.assert_allclose(ours, np.real(logarithm), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("order", [1, 2, 3, 4, 7])
def test_cyclic_groups_are_the_exponential_of_their_coordinates(order: int) -> None:
    group = get_group(f"C{order}")
    elements = group.stabiliser_elements(dtype=torch.float64)
    assert len(elements) == order
    angles = group.log_coordinates(elements)[:, 0]
    assert (angles > -math.pi).all()
    assert (angles <= math.pi).all()
    for element, angle in zip(elements, angles, strict=True):
        expected = scipy.linalg.expm(float(angle) * GENERATORS["SO(2)"][0])
        np.testing.assert_allclose(element.numpy(), expected, atol=1e-14)


@pytest.mark.parametrize("name", ["T(2)xC4", "T(2)xD3"])
def test_motions_of_finite_groups_have_the_logarithm_of_se2(name: str) -> None:
    group, motions = get_group(name), get_group("SE(2)")
    elements = group.sample(50, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    elements = elements[torch.linalg.det(elements) > 0]
    torch.testing.assert_close(
        group.log_coordinates(elements)[:, :3], motions.log_coordinates(elements)
    )
