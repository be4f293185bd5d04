"""What all models have in common: checks of their input, precision, files, functions."""

from pathlib import Path

import pytest
import torch
from torch import Tensor

from lietransformer.clouds import PointCloud
from lietransformer.lift import LiftConfig
from lietransformer.models import LieTransformer, LieTransformerConfig, build_model
from lietransformer.pairs import NeighbourhoodConfig
from lietransformer.testing import relative_error
from tests.cases import random_cloud, seeded
from tests.models.builders import (
    SMALL,
    fully_connected,
    graph_network,
    lie_resnet,
    molecules,
    set_transformer,
    specialist,
)


@pytest.mark.usefixtures("without_shape_checks")
def test_wrong_input_is_refused_by_every_model() -> None:
    for model in (set_transformer(), graph_network(), fully_connected(), lie_resnet("T(2)")):
        cloud = random_cloud("T(2)")
        with pytest.raises(ValueError, match="2 features per point"):
            model(PointCloud(cloud.positions))
        with pytest.raises(TypeError, match="as the model's parameters"):
            model(cloud.to(dtype=torch.float32))
        with pytest.raises(ValueError, match=r"points of dimension 2|2 coordinates"):
            model(PointCloud(torch.zeros(3, 5, 3).double(), cloud.features))
        with pytest.raises(TypeError, match="must be a PointCloud"):
            model(cloud.positions)
    with pytest.raises(ValueError, match="points of dimension 3"):
        specialist("SchNet")(PointCloud(torch.zeros(3, 7, 2).double(), molecules().features))


@pytest.mark.usefixtures("without_shape_checks")
def test_settings_of_no_model_are_refused() -> None:
    with pytest.raises(TypeError, match="settings of one of LieTransformer, LieResNet"):
        build_model(5)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", SMALL)
def test_training_under_autocast(name: str) -> None:
    model = SMALL[name]().float().train()
    cloud = random_cloud("T(2)", dtype=torch.float32, masked=False)
    with torch.autocast("cpu", torch.bfloat16):
        output = model(cloud)
    output.float().square().sum().backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())
    exact = SMALL[name]().float().train()(cloud)
    assert relative_error(output.float(), exact) < 0.1


@pytest.mark.parametrize("name", SMALL)
def test_weights_survive_a_file(name: str, tmp_path: Path) -> None:
    model, other = SMALL[name]().train(), SMALL[name]().train()
    cloud = random_cloud("T(2)", masked=False)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.01)
        model(cloud)  # running averages move
    torch.save(model.state_dict(), tmp_path / "model.pt")
    other.load_state_dict(torch.load(tmp_path / "model.pt", weights_only=True))
    torch.testing.assert_close(other.eval()(cloud), model.eval()(cloud))


@pytest.mark.parametrize("name", [name for name in SMALL if "norm" not in name])
def test_models_are_functions_of_their_parameters(name: str) -> None:
    """By functional_call, and for several seeds at once by vmap."""
    models = [SMALL[name](), SMALL[name]()]
    with torch.no_grad():
        for parameter in models[1].parameters():
            parameter.mul_(1.1)
    parameters, buffers = torch.func.stack_module_state(models)
    cloud = random_cloud("T(2)", masked=False)

    def call(values: dict[str, Tensor], others: dict[str, Tensor]) -> Tensor:
        return torch.func.functional_call(models[0], (values, others), (cloud,))

    together = torch.func.vmap(call)(parameters, buffers)
    torch.testing.assert_close(together, torch.stack([model(cloud) for model in models]))


@pytest.mark.parametrize("name", ["LieTransformer", "LieConv"])
def test_every_layer_sees_its_own_draw(name: str) -> None:
    """The same balls, but neighbours that are drawn anew in each layer."""
    sampled = NeighbourhoodConfig(ball=12, samples=4)
    model = (
        LieTransformer(LieTransformerConfig("T(2)", 2, 1, 8, 3, 2, neighbourhood=sampled)).double()
        if name == "LieTransformer"
        else lie_resnet("T(2)", layers=3, neighbourhood=sampled)
    )
    seen: list[Tensor] = []
    for block in model.blocks:
        block.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[-1].indices))
    cloud = random_cloud("T(2)", points=30, masked=False)
    model(cloud, generator=seeded())
    assert len(seen) == 3
    for one, other in ((0, 1), (0, 2), (1, 2)):
        assert not torch.equal(seen[one].sort().values, seen[other].sort().values)
    first, seen[:] = list(seen), []
    model(cloud, generator=seeded())  # evaluation repeats exactly
    assert all(torch.equal(a, b) for a, b in zip(first, seen, strict=True))


def test_lie_transformer_and_lie_conv_share_their_interface() -> None:
    """Same lift, same pairs, for the same settings and generator."""
    config = LieTransformerConfig("SE(2)", 2, 3, 8, 1, 2, lift=LiftConfig("evenly_spaced", 2))
    transformer = LieTransformer(config).double()
    conv = lie_resnet("SE(2)", lift=LiftConfig("evenly_spaced", 2))
    cloud = random_cloud("SE(2)")
    one, other = (model.lift(cloud, generator=seeded()) for model in (transformer, conv))
    torch.testing.assert_close(one.elements, other.elements)
    torch.testing.assert_close(
        transformer.pairs(one)[0].coordinates, conv.pairs(other)[0].coordinates
    )
