"""The MLP of pairs in C is the MLP of pairs in PyTorch."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from lietransformer.nn.mlp import PerHeadLinear, PerHeadMLP, per_head_mlp, through_layers
from tests.requirements import needs_compiler

pytestmark = needs_compiler

HEADS = 3
WIDTHS = (2, 12, 12, 1)
ROUNDING = 3e-6


def mlp(*widths: int, seed: int = 0) -> PerHeadMLP:
    torch.manual_seed(seed)
    module = PerHeadMLP(HEADS, widths)
    for parameter in module.parameters():  # large enough for swish to be curved
        parameter.data *= 3
    return module


def coordinates(columns: int, width: int = 2, seed: int = 1) -> Tensor:
    return torch.randn(1, width, columns, generator=torch.Generator().manual_seed(seed))


def in_pytorch(module: PerHeadMLP) -> Callable[[Tensor], Tensor]:
    """The same module, one layer after the other."""

    def run(x: Tensor) -> Tensor:
        for layer in module.layers:
            x = torch.nn.functional.silu(layer(x))
        return x

    return run


def is_used(module: PerHeadMLP, x: Tensor) -> bool:
    return through_layers.is_replaced(module, x)


def assert_close(found: Any, expected: Any) -> None:
    for a, b in zip(found, expected, strict=True):
        assert (a - b).abs().max() <= ROUNDING * b.abs().max()


# The number of columns: of whole blocks and parts, one more, one less.
@pytest.mark.parametrize("columns", [1024, 1025, 4095, 4096, 4097, 9000])
@pytest.mark.parametrize("widths", [WIDTHS, (3, 16, 16, 1), (1, 5, 5, 4), (10, 32, 32, 2)])
def test_values_and_gradients_agree(columns: int, widths: tuple[int, ...]) -> None:
    module = mlp(*widths)
    x = coordinates(columns, widths[0]).requires_grad_()
    assert is_used(module, x)
    value, expected = module(x), in_pytorch(module)(x)
    assert value.grad_fn is not None
    assert "HeadMLP" in value.grad_fn.name()
    assert_close([value], [expected])
    weights = torch.randn(value.shape, generator=torch.Generator().manual_seed(2))
    inputs = [x, *module.parameters()]
    assert_close(
        torch.autograd.grad(value, inputs, weights), torch.autograd.grad(expected, inputs, weights)
    )


def test_swish_of_large_numbers() -> None:
    module = mlp(*WIDTHS)
    x = coordinates(2048) * torch.logspace(-6, 6, 2048)
    assert_close([module(x)], [in_pytorch(module)(x)])
    assert module(x).isfinite().all()


def test_what_is_not_a_number_stays_so() -> None:
    x = coordinates(2048)
    x[0, 0, 77] = torch.nan
    value = mlp(*WIDTHS)(x)
    assert value[:, :, 77].isnan().all()
    assert value.isnan().sum() == HEADS


def test_numbers_do_not_depend_on_the_threads() -> None:
    module, x = mlp(*WIDTHS), coordinates(30_000)
    before = torch.get_num_threads()
    results = []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            value = module(x)
            results.append([value, *torch.autograd.grad(value.sum(), list(module.parameters()))])
    finally:
        torch.set_num_threads(before)
    for result in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(result, results[0], strict=True))


def test_gradients_of_gradients_agree() -> None:
    module = mlp(*WIDTHS)
    x = coordinates(2000).requires_grad_()

    def second(function: Callable[[Tensor], Tensor]) -> tuple[Tensor, ...]:
        (slope,) = torch.autograd.grad(function(x).square().sum(), x, create_graph=True)
        return torch.autograd.grad(slope.square().sum(), [x, *module.parameters()])

    assert_close(second(module), second(in_pytorch(module)))


def test_functional_gradients_agree() -> None:
    module, x = mlp(*WIDTHS), coordinates(2000)
    found, expected = (
        torch.func.grad(lambda x, f=f: f(x).square().sum())(x) for f in (module, in_pytorch(module))
    )
    assert_close([found], [expected])


def test_mapped_parameters_agree() -> None:
    modules, x = [mlp(*WIDTHS, seed=seed) for seed in (0, 1)], coordinates(2000)
    parameters, _ = torch.func.stack_module_state(modules)
    values = torch.func.vmap(lambda p: torch.func.functional_call(modules[0], p, (x,)))(parameters)
    assert_close(values, [in_pytorch(module)(x) for module in modules])


# PyTorch's own rules of forward differentiation are written in a way that it warns of itself.
@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:DeprecationWarning")
def test_tangents_agree() -> None:
    module, x = mlp(*WIDTHS), coordinates(2000)
    found, expected = (
        torch.func.jvp(f, (x,), (torch.ones_like(x),)) for f in (module, in_pytorch(module))
    )
    assert_close(found, expected)


@pytest.mark.parametrize(
    ("change", "x"),
    [
        (lambda module: module.double(), coordinates(2000).double()),
        (lambda module: module, coordinates(100)),
        (lambda module: module, coordinates(2000).expand(HEADS, -1, -1)),
        (lambda module: module.to("meta"), coordinates(2000).to("meta")),
    ],
    ids=["float64", "few columns", "an input for each head", "another device"],
)
def test_what_it_is_not_made_for(change: Callable[[PerHeadMLP], PerHeadMLP], x: Tensor) -> None:
    module = change(mlp(*WIDTHS))
    assert not is_used(module, x)
    assert module(x).shape == (HEADS, 1, x.shape[-1])


@pytest.mark.parametrize("widths", [(2, 12, 1), (2, 12, 8, 1), (2, 64, 64, 1)])
def test_other_shapes_of_networks(widths: tuple[int, ...]) -> None:
    module, x = mlp(*widths), coordinates(2000)
    assert not is_used(module, x)
    assert_close([module(x)], [in_pytorch(module)(x)])


class Twice(nn.Module):
    """A parametrisation."""

    def forward(self, weight: Tensor) -> Tensor:
        return 2 * weight


@pytest.mark.parametrize("name", ["weight", "bias"])
@pytest.mark.parametrize("columns", [100, 2000])
def test_parametrised_layers_are_those_of_pytorch(name: str, columns: int) -> None:
    module, x = mlp(*WIDTHS), coordinates(columns)
    before = module(x)
    nn.utils.parametrize.register_parametrization(module.layers[1], name, Twice())
    assert not is_used(module, x)
    value, expected = module(x), in_pytorch(module)(x)
    assert torch.equal(value, expected)
    assert (value - before).abs().max() > 0.01
    parameters = list(module.parameters())
    assert_close(
        torch.autograd.grad(value.sum(), parameters),
        torch.autograd.grad(expected.sum(), parameters),
    )
    # Where others take the parameters and compute with them, they are those with the change.
    assert_close([per_head_mlp(x, *module.layer_parameters())], [expected])
    assert module.kept(x) == 2 * sum(WIDTHS[1:])


def test_hooks_of_layers_are_called() -> None:
    module, x, seen = mlp(*WIDTHS), coordinates(2000), []
    module.layers[1].register_forward_hook(lambda *_: seen.append(1))
    assert torch.equal(module(x), in_pytorch(module)(x))
    assert len(seen) == 2


def test_a_layer_without_bias() -> None:
    module, x = mlp(*WIDTHS), coordinates(2000)
    module.layers[1] = PerHeadLinear(HEADS, *WIDTHS[1:3], bias=False)
    assert torch.equal(module(x), in_pytorch(module)(x))


def test_autocast_rounds_as_before() -> None:
    module, x = mlp(*WIDTHS), coordinates(2000)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert not is_used(module, x)


def test_memory_for_the_backward_pass_is_the_input() -> None:
    saved: list[Tensor] = []

    def keep(tensor: Tensor) -> Tensor:
        saved.append(tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        mlp(*WIDTHS)(coordinates(5000))
    assert max(tensor.numel() for tensor in saved) == 2 * 5000
