"""The MLP of pairs in parts of the batch is that of the batch at once, and stores no pairs."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from lietransformer.nn import AttentionConfig, LieTransformerBlock, pair_mlp
from lietransformer.nn.scores import MLPCombination, PairwiseSum
from lietransformer.pairs import PairGeometry

pytestmark = pytest.mark.usefixtures("both_ways")

HEADS, BATCH, POINTS, CONTENT, LOCATION, HIDDEN = 2, 7, 5, 4, 3, 6
ROUNDING = 1e-12


@pytest.fixture(params=[1, 3], ids=["an example at a time", "three, and one at the end"])
def in_parts(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of so few examples that the small batches of these tests have several."""
    monkeypatch.setattr(
        pair_mlp, "_NUMBERS_AT_ONCE", request.param * HEADS * HIDDEN * POINTS * POINTS
    )


def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pair_mlp, "_NUMBERS_AT_ONCE", 2**40)


def random(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def combination(seed: int = 0) -> MLPCombination:
    torch.manual_seed(seed)
    module = MLPCombination(HEADS, CONTENT, LOCATION, HIDDEN).double()
    for parameter in module.parameters():  # large enough for swish to be curved
        parameter.data *= 3
    return module


def inputs(heads: int = 1) -> list[Tensor]:
    """Terms of queries and keys, and locations; shared by the heads, or for each of them."""
    content = [random(HEADS, BATCH, POINTS, CONTENT, seed=seed) for seed in (1, 2)]
    location = random(heads, LOCATION, BATCH, POINTS, POINTS, seed=3)
    return [tensor.requires_grad_() for tensor in (*content, location)]


def geometry(*, gathered: bool = False) -> PairGeometry:
    generator = torch.Generator().manual_seed(4)
    pairs = (BATCH, POINTS, POINTS)
    indices = torch.randint(POINTS, pairs, generator=generator) if gathered else None
    return PairGeometry(random(*pairs, LOCATION), torch.ones(pairs, dtype=torch.bool), indices)


def scores(module: nn.Module, pairs: PairGeometry) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    return lambda query, key, location: module(PairwiseSum(query, key), location, pairs)


def is_used(value: Tensor) -> bool:
    """Whether the node that the scores are a view of is that of the function in parts."""
    assert value.grad_fn is not None
    node = value.grad_fn.next_functions[0][0]
    return "InParts" in f"{node}"


def assert_close(found: Any, expected: Any) -> None:
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a, b, rtol=ROUNDING, atol=ROUNDING * b.abs().max().item())


def by_chance(like: Tensor) -> Tensor:
    return random(*like.shape, seed=5)


@pytest.mark.usefixtures("in_parts")
@pytest.mark.parametrize("heads", [1, HEADS], ids=["shared locations", "locations of each head"])
@pytest.mark.parametrize("gathered", [False, True], ids=["all keys", "gathered keys"])
def test_values_and_gradients_agree(
    heads: int, gathered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, tensors = combination(), inputs(heads)
    results = []
    for _ in range(2):
        value = scores(module, geometry(gathered=gathered))(*tensors)
        gradients = torch.autograd.grad(value, [*tensors, *module.parameters()], by_chance(value))
        results.append((value, *gradients))
        at_once(monkeypatch)
    (in_parts, *_), (whole, *_) = results
    assert is_used(in_parts)
    assert not is_used(whole)
    assert_close(*results)


@pytest.mark.usefixtures("in_parts")
@pytest.mark.parametrize("wanted", range(9))
def test_gradients_by_one_thing_alone(wanted: int, monkeypatch: pytest.MonkeyPatch) -> None:
    module, tensors = combination(), inputs()
    everything = [*tensors, *module.parameters()]
    assert len(everything) == 9
    for number, tensor in enumerate(everything):
        tensor.requires_grad_(number == wanted)
    found = []
    for _ in range(2):
        value = scores(module, geometry())(*tensors)
        found.append(torch.autograd.grad(value, everything[wanted], by_chance(value)))
        at_once(monkeypatch)
    assert_close(*found)


@pytest.mark.usefixtures("in_parts")
@pytest.mark.parametrize("gathered", [False, True], ids=["all keys", "gathered keys"])
def test_gradients_of_gradients_agree(gathered: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    module, tensors = combination(), inputs()
    everything = [*tensors, *module.parameters()]
    found = []
    for _ in range(2):
        value = scores(module, geometry(gathered=gathered))(*tensors)
        slopes = torch.autograd.grad(value.square().sum(), everything, create_graph=True)
        total = sum((slope.square().sum() for slope in slopes), torch.zeros(()))
        found.append(torch.autograd.grad(total, everything))
        at_once(monkeypatch)
    assert_close(*found)


@pytest.mark.usefixtures("in_parts")
def test_functional_gradients_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    module, tensors = combination(), [tensor.detach() for tensor in inputs()]
    found = []
    for _ in range(2):
        function = scores(module, geometry())
        gradient = torch.func.grad(lambda *x, f=function: f(*x).square().sum(), argnums=(0, 1, 2))
        found.append(gradient(*tensors))
        at_once(monkeypatch)
    assert_close(*found)


@pytest.mark.usefixtures("in_parts")
@pytest.mark.parametrize("gathered", [False, True], ids=["all keys", "gathered keys"])
def test_mapped_parameters_agree(gathered: bool) -> None:
    modules = [combination(seed) for seed in (0, 1)]
    query, key, location = inputs()
    pairs = geometry(gathered=gathered)
    parameters, _ = torch.func.stack_module_state(modules)

    def run(parameters: Any) -> Tensor:
        arguments = (PairwiseSum(query, key), location, pairs)
        return torch.func.functional_call(modules[0], parameters, arguments)

    values = torch.func.vmap(run)(parameters)
    assert_close(values, [scores(module, pairs)(query, key, location) for module in modules])


# PyTorch's own rules of forward differentiation are written in a way that it warns of itself.
@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:DeprecationWarning")
@pytest.mark.usefixtures("in_parts")
def test_tangents_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    tensors = tuple(tensor.detach() for tensor in inputs())
    tangents = tuple(by_chance(tensor) for tensor in tensors)
    found = []
    for _ in range(2):
        found.append(torch.func.jvp(scores(combination(), geometry()), tensors, tangents))
        at_once(monkeypatch)
    assert_close(*found)


@pytest.mark.usefixtures("in_parts")
def test_autocast_and_other_devices_go_by_the_rules_of_pytorch() -> None:
    module, tensors = combination(), inputs()
    assert is_used(scores(module, geometry())(*tensors))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert not is_used(scores(module, geometry())(*tensors))
    elsewhere = [tensor.to("meta") for tensor in tensors]
    assert not is_used(scores(module.to("meta"), geometry())(*elsewhere))


def saved_bytes(function: Callable[[], Tensor], known: Any) -> int:
    """Of all memory that is kept for the backward pass, but for that of tensors already known."""
    kept: dict[int, Tensor] = {}

    def keep(tensor: Tensor) -> Tensor:
        kept[tensor.untyped_storage().data_ptr()] = tensor
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        result = function()
    assert result.requires_grad
    for tensor in known:
        kept.pop(tensor.untyped_storage().data_ptr(), None)
    return sum(tensor.untyped_storage().nbytes() for tensor in kept.values())


def test_what_a_block_stores() -> None:
    """Of pairs, the weights of each head and one number; the rest is in proportion to points."""
    batch, points, width, heads, narrow, hidden = 16, 24, 32, 8, 4, 16
    config = AttentionConfig(
        "linear_concat_linear", "plain", "mlp", query_key_width=narrow, score_width=narrow
    )
    torch.manual_seed(0)
    block = LieTransformerBlock(width, heads, LOCATION, config)
    mask = torch.ones(batch, points, points, dtype=torch.bool)
    pairs = PairGeometry(torch.randn(*mask.shape, LOCATION), mask)
    features = torch.randn(batch, points, width)
    known = (features, pairs.coordinates, *block.parameters())
    stored = saved_bytes(lambda: block(features, pairs), known) / 4
    of_pairs = mask.numel() * (heads + 1)
    # Values, pooled values, the sum, what both norms give, and of the MLP three tensors; mean and
    # deviation of both norms; of queries and of keys: themselves, their scores, the hidden layer.
    of_points = batch * points * (8 * width + 4 + 2 * heads * (2 * narrow + hidden))
    joint_weight = width * (width + 2 * heads * narrow)
    assert stored <= of_pairs + of_points + joint_weight
    # A single hidden layer would be more than that.
    assert heads * hidden * mask.numel() > of_points + joint_weight
