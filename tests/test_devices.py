"""Everything follows the device of its input.

No GPU is needed to show it: PyTorch refuses to mix the "meta" device with the CPU much as it
refuses to mix a GPU with it, so a stray tensor made on the CPU is an error here too.
"""

import pytest
import torch

from lietransformer.groups import get_group
from lietransformer.pairs import NeighbourhoodConfig
from tests.cases import ALL_GROUPS, build, random_cloud, seeded


def test_mixing_devices_is_an_error() -> None:
    with pytest.raises(RuntimeError):
        torch.ones(2) + torch.ones(2, device="meta")


@pytest.mark.parametrize("name", ALL_GROUPS)
def test_groups(name: str) -> None:
    group = get_group(name)
    options = {"dtype": torch.float64, "device": "meta"}
    g = group.sample(4, generator=seeded(), **options)  # type: ignore[arg-type]
    points = torch.empty(4, group.space_dimension, device="meta")
    samples = group.sample_stabiliser(4, 2, generator=seeded(), **options)  # type: ignore[arg-type]
    for result in (
        group.identity(4, **options),  # type: ignore[arg-type]
        group.exp(group.log_coordinates(g)),
        group.relative(g, g),
        group.canonical_coordinates(g),
        group.distance(g, g),
        group.act(g.float(), points),
        group.lift(points.double(), samples),
        group.orbit_invariants(g.float(), points),
    ):
        assert result.device.type == "meta"


@pytest.mark.parametrize(
    "neighbourhood", [NeighbourhoodConfig(), NeighbourhoodConfig(ball=3, samples=2)]
)
@pytest.mark.parametrize("name", ALL_GROUPS)
def test_models_and_their_gradients(name: str, neighbourhood: NeighbourhoodConfig) -> None:
    model = build(name, neighbourhood=neighbourhood).to("meta")
    output = model(random_cloud(name).to("meta"), generator=seeded())
    assert output.device.type == "meta"
    output.sum().backward()
