"""Attention in C is that of PyTorch, and so are its gradients."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from lietransformer.clouds import PointCloud
from lietransformer.kernels import SWITCH
from lietransformer.kernels import attention as kernel
from lietransformer.kernels import build as library
from lietransformer.models.lie_transformer import LieTransformer, LieTransformerConfig
from lietransformer.nn.attention import AttentionConfig, LieSelfAttention, weighted_sums
from lietransformer.nn.scores import MLPLocation
from lietransformer.packing import Packing
from lietransformer.pairs import PairGeometry
from tests.requirements import needs_compiler

pytestmark = needs_compiler

WIDTH, HEADS, PAIR = 24, 3, 2


def attention(
    width: int = WIDTH, heads: int = HEADS, pair: int = PAIR, **choices: object
) -> LieSelfAttention:
    torch.manual_seed(0)
    return LieSelfAttention(width, heads, pair, AttentionConfig(kernel_width=5, **choices))  # type: ignore[arg-type]


def geometry(counts: list[int], elements: int, pair: int = PAIR) -> PairGeometry:
    torch.manual_seed(1)
    mask = torch.arange(elements) < torch.tensor(counts)[:, None]
    coordinates = torch.randn(len(counts), elements, elements, pair)
    return PairGeometry(coordinates, mask[:, None])


def packing_of(mask: Tensor) -> Packing:
    return Packing(mask, mask.flatten().nonzero()[:, 0])


def is_replaced(layer: LieSelfAttention, features: Tensor, pairs: PairGeometry) -> bool:
    return weighted_sums.is_replaced(layer, layer.project(features), pairs)


def results(
    layer: LieSelfAttention, features: Tensor, pairs: PairGeometry, *, rows: bool = False
) -> list[Tensor]:
    """The output for real elements, and the gradients by all that it depends on."""
    features = features.clone().requires_grad_()
    pairs = replace(pairs, coordinates=pairs.coordinates.clone().requires_grad_())
    mask = pairs.mask[:, 0]
    packed = (features[mask][None], pairs.packed(packing_of(mask)))
    out = layer(*packed)[0] if rows else layer(features, pairs)[mask]
    direction = 1 + torch.arange(out.numel(), dtype=out.dtype).cos().view_as(out)
    wanted = [features, pairs.coordinates, *layer.parameters()]
    return [out, *torch.autograd.grad((out * direction).sum(), wanted, materialize_grads=True)]


def assert_agree(found: list[Tensor], expected: list[Tensor]) -> None:
    for a, b in zip(found, expected, strict=True):
        assert (a - b).abs().max() <= 2e-5 * b.abs().max()


SETS = {
    "one set": ([7], 7),
    "one element": ([1, 1], 1),
    "sets of all sizes": ([5, 0, 16, 17, 1, 33], 40),
    "a set with many pairs": ([70], 70),
    "more keys than pairs at a time": ([1030], 1030),
}


@pytest.mark.parametrize("rows", [False, True], ids=["examples", "rows"])
@pytest.mark.parametrize("name", SETS)
def test_agrees_with_pytorch(name: str, rows: bool) -> None:
    layer, pairs = attention(), geometry(*SETS[name])
    features = torch.randn(*pairs.mask[:, 0].shape, WIDTH)
    assert is_replaced(layer, features, pairs)
    found = results(layer, features, pairs, rows=rows)
    exact = replace(pairs, coordinates=pairs.coordinates.double())
    assert not is_replaced(layer.double(), features.double(), exact)
    assert_agree(found, results(layer, features.double(), exact))


@pytest.mark.parametrize(("width", "heads", "pair"), [(8, 8, 3), (40, 2, 1), (64, 1, 6)])
def test_widths(width: int, heads: int, pair: int) -> None:
    layer, pairs = attention(width, heads, pair), geometry([9, 4], 9, pair)
    features = torch.randn(2, 9, width)
    assert is_replaced(layer, features, pairs)
    found = results(layer, features, pairs)
    exact = replace(pairs, coordinates=pairs.coordinates.double())
    assert_agree(found, results(layer.double(), features.double(), exact))


def test_numbers_do_not_depend_on_threads() -> None:
    layer, pairs = attention(), geometry([5, 16, 17, 1, 33], 40)
    features = torch.randn(5, 40, WIDTH)
    before, found = torch.get_num_threads(), []
    joint = layer.project(features).detach().requires_grad_()
    mlp = list(layer.location.parameters())
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            out = weighted_sums(layer, joint, pairs)
            found.append([out, *torch.autograd.grad(out.square().sum(), [joint, *mlp])])
    finally:
        torch.set_num_threads(before)
    for result in found[1:]:
        assert all(torch.equal(a, b) for a, b in zip(result, found[0], strict=True))


@pytest.mark.parametrize("rows", [False, True], ids=["examples", "rows"])
def test_second_derivatives(rows: bool) -> None:
    layer, pairs = attention(), geometry([6, 3], 8)
    features = torch.randn(2, 8, WIDTH)

    def second(layer: LieSelfAttention, features: Tensor, pairs: PairGeometry) -> list[Tensor]:
        given = replace(pairs, coordinates=pairs.coordinates.clone().requires_grad_())
        mask = pairs.mask[:, 0]
        if rows and features.dtype == torch.float32:
            out = layer(features[mask][None], given.packed(packing_of(mask)))[0]
        else:
            out = layer(features, given)[mask]
        (first,) = torch.autograd.grad(out.square().sum(), given.coordinates, create_graph=True)
        return list(torch.autograd.grad(first.square().sum(), list(layer.parameters())))

    found = second(layer, features, pairs)
    exact = replace(pairs, coordinates=pairs.coordinates.double())
    assert_agree(found, second(layer.double(), features.double(), exact))


def test_where_it_does_not_apply() -> None:
    pairs, features = geometry([6, 3], 8), torch.randn(2, 8, WIDTH)
    layer = attention()
    assert is_replaced(layer, features, pairs)
    assert not is_replaced(attention(normalisation="softmax"), features, pairs)
    assert not is_replaced(attention(combination="multiplicative"), features, pairs)
    assert not is_replaced(attention(location="plain"), features, pairs)
    assert not is_replaced(attention(query_key_width=4), features, pairs)
    last = replace(pairs, mask=pairs.mask.flip(-1))
    assert not is_replaced(layer, features, last)
    own = replace(pairs, mask=pairs.mask.expand(2, 8, 8))
    assert not is_replaced(layer, features, own)
    chosen = replace(pairs, indices=torch.zeros(2, 8, 8, dtype=torch.long))
    assert not is_replaced(layer, features, chosen)
    assert not kernel.supported(layer, layer.project(features).to("meta"), pairs)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert not is_replaced(layer, features, pairs)
    asked = []

    def ask(x: Tensor) -> Tensor:
        asked.append(is_replaced(layer, x[None], pairs))
        return x

    torch.func.vmap(ask)(features)
    assert asked == [False]
    layer.location.register_forward_hook(lambda *_: None)
    assert not is_replaced(layer, features, pairs)


def test_a_parametrised_mlp_of_locations() -> None:
    pairs, features = geometry([6, 3], 8), torch.randn(2, 8, WIDTH)
    layer = attention()
    assert isinstance(layer.location, MLPLocation)
    torch.nn.utils.parametrizations.weight_norm(layer.location.mlp.layers[1])
    assert not is_replaced(layer, features, pairs)
    plain = attention()  # of the same weights, which the norm leaves as they are
    assert is_replaced(plain, features, pairs)
    torch.testing.assert_close(
        layer(features, pairs)[pairs.mask[:, 0]], plain(features, pairs)[pairs.mask[:, 0]]
    )


def test_queries_without_bias() -> None:
    pairs, features = geometry([6, 3], 8), torch.randn(2, 8, WIDTH)
    layer, other = attention(), attention()
    other.query = torch.nn.Linear(WIDTH, WIDTH, bias=False)
    other.query.weight = layer.query.weight
    torch.nn.init.zeros_(layer.query.bias)
    torch.testing.assert_close(other(features, pairs), layer(features, pairs))


def test_without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "load", lambda *_: None)
    pairs, features = geometry([6, 3], 8), torch.randn(2, 8, WIDTH)
    assert not is_replaced(attention(), features, pairs)


def test_a_model_leaves_out_what_is_not_real(monkeypatch: pytest.MonkeyPatch) -> None:
    config = LieTransformerConfig(
        "T(2)", input_width=1, output_width=3, width=WIDTH, layers=2, heads=HEADS
    )
    torch.manual_seed(0)
    model = LieTransformer(config)
    mask = torch.arange(9) < torch.tensor([4, 9, 0])[:, None]
    cloud = PointCloud(torch.randn(3, 9, 2), torch.randn(3, 9, 1), mask)
    found = model(cloud)
    monkeypatch.setenv(SWITCH, "0")
    expected = model(cloud)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    by_rows, by_examples = (
        torch.autograd.grad(out.square().sum(), list(model.parameters()))
        for out in (found, expected)
    )
    assert_agree(list(by_rows), list(by_examples))
