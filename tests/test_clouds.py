"""Point clouds: defaults, conversions, and what is refused with which words."""

import pytest
import torch

from lietransformer.clouds import LiftedCloud, PointCloud


def test_defaults_are_constant_features_and_all_points() -> None:
    cloud = PointCloud(torch.zeros(2, 5, 3, dtype=torch.float64))
    assert torch.equal(cloud.features, torch.ones(2, 5, 1, dtype=torch.float64))
    assert cloud.mask.all()
    assert cloud.mask.shape == (2, 5)


def test_precision_changes_numbers_and_leaves_masks() -> None:
    cloud = PointCloud(torch.zeros(2, 5, 3)).to(dtype=torch.float64)
    assert cloud.positions.dtype == cloud.features.dtype == torch.float64
    assert cloud.mask.dtype == torch.bool
    assert PointCloud(torch.zeros(2, 5, 3)).to("meta").positions.device.type == "meta"


def test_padding_is_cleaned_of_anything() -> None:
    positions = torch.full((1, 2, 2), torch.nan)
    positions[0, 0] = 1.0
    cloud = PointCloud(positions, positions, torch.tensor([[True, False]])).cleaned()
    assert torch.equal(cloud.positions, torch.ones(1, 2, 2))
    assert torch.equal(cloud.features, torch.tensor([[[1.0, 1.0], [0.0, 0.0]]]))


def test_a_cloud_of_padding_is_cleaned_to_zeros() -> None:
    cloud = PointCloud(torch.full((1, 2, 2), torch.nan), mask=torch.zeros(1, 2, dtype=torch.bool))
    assert torch.equal(cloud.cleaned().positions, torch.zeros(1, 2, 2))


@pytest.mark.usefixtures("without_shape_checks")
@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((torch.zeros(5, 2),), ValueError, r"positions must have shape .*got \(5, 2\)"),
        ((torch.zeros(1, 5, 2, dtype=torch.long),), TypeError, "got torch.int64"),
        ((torch.zeros(1, 5, 2).half(),), TypeError, "float32 or float64, got torch.float16"),
        ((torch.zeros(1, 5, 2).to(torch.bfloat16),), TypeError, "use torch.autocast"),
        (
            (torch.zeros(1, 5, 2), torch.zeros(1, 5, 1, device="meta")),
            ValueError,
            "features must be on cpu like positions, got meta",
        ),
        (([[[0.0, 1.0]]],), TypeError, "got list"),
        (
            (torch.zeros(2, 5, 2), torch.zeros(2, 4, 1)),
            ValueError,
            r"features must .* of positions, \(2, 5\), got \(2, 4\)",
        ),
        ((torch.zeros(2, 5, 2), torch.zeros(2, 5)), ValueError, "features must have shape"),
        (
            (torch.zeros(2, 5, 2), torch.zeros(2, 5, 1).double()),
            TypeError,
            "features must have the dtype of positions",
        ),
        (
            (torch.zeros(2, 5, 2), None, torch.ones(2, 5)),
            TypeError,
            r"torch.bool, True for real points, got torch.float32. Convert it",
        ),
        (
            (torch.zeros(2, 5, 2), None, torch.ones(2, 6, dtype=torch.bool)),
            ValueError,
            r"mask must .* of positions, \(2, 5\)",
        ),
        (
            (torch.zeros(2, 5, 2), None, torch.ones(2, 5, 1, dtype=torch.bool)),
            ValueError,
            "mask must have shape",
        ),
    ],
)
def test_mistakes(arguments: tuple[object, ...], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        PointCloud(*arguments)  # type: ignore[arg-type]


@pytest.mark.usefixtures("without_shape_checks")
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"elements": torch.eye(3).expand(2, 3, 3)}, "elements must have shape"),
        ({"features": torch.zeros(2, 3, 1)}, r"features must .* of elements, \(2, 4\)"),
        ({"orbits": torch.zeros(1, 4, 0)}, r"orbits must .* of elements, \(2, 4\)"),
        ({"mask": torch.ones(1, 4, dtype=torch.bool)}, r"mask must .* of elements, \(2, 4\)"),
    ],
)
def test_mistakes_in_lifted_clouds(changes: dict[str, torch.Tensor], message: str) -> None:
    tensors = {
        "elements": torch.eye(3).expand(2, 4, 3, 3),
        "features": torch.zeros(2, 4, 1),
        "orbits": torch.zeros(2, 4, 0),
        "mask": torch.ones(2, 4, dtype=torch.bool),
    }
    LiftedCloud(**tensors)
    with pytest.raises(ValueError, match=message):
        LiftedCloud(**{**tensors, **changes})
