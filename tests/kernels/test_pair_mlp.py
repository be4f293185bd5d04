"""The MLP of pairs with terms of queries and keys in C is that of PyTorch."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import pytest
import torch
from torch import Tensor

from lietransformer.clouds import PointCloud
from lietransformer.kernels import SWITCH
from lietransformer.kernels import build as library
from lietransformer.kernels import pair_mlp as kernel
from lietransformer.models.lie_transformer import LieTransformer, LieTransformerConfig
from lietransformer.nn import AttentionConfig
from lietransformer.nn.pair_mlp import all_examples, pair_mlp
from lietransformer.pairs import PairGeometry
from tests.requirements import needs_compiler

pytestmark = needs_compiler

HEADS, WIDTH, HIDDEN = 3, 3, 16
ROUNDING = 1e-5
NAMES = ("query", "key", "location", "of_location", "w2", "b2", "w3", "b3")


@dataclass(frozen=True)
class Case:
    """What the MLP is given."""

    tensors: list[Tensor]
    counts: Tensor | None = None
    indices: Tensor | None = None

    def __call__(self, *tensors: Tensor) -> Tensor:
        """What is tested, of the tensors of this case unless others are given."""
        query, key, location, *parameters = tensors or self.tensors
        first, *rest = parameters
        return pair_mlp(query, key, location, self.geometry, first, rest)

    @property
    def geometry(self) -> PairGeometry:
        location = self.tensors[2]
        batch, queries, keys = location.shape[2:]
        counts = torch.full((batch,), keys) if self.counts is None else self.counts
        mask = torch.arange(keys) < counts[:, None]
        coordinates = location.new_zeros(batch, queries, keys, 1)
        return PairGeometry(coordinates, mask[:, None], self.indices)

    def by_pytorch(self, *tensors: Tensor) -> Tensor:
        query, key, location, *parameters = tensors or self.tensors
        return all_examples(query, key, location, self.indices, *parameters)

    def map(self, function: Callable[[Tensor], Tensor]) -> "Case":
        return replace(self, tensors=[function(tensor) for tensor in self.tensors])

    @property
    def exact(self) -> "Case":
        return self.map(lambda x: x.detach().double().requires_grad_(x.requires_grad))


def case(
    batch: int = 5,
    queries: int = 5,
    keys: int | None = None,
    *,
    shared: bool = True,
    width: int = WIDTH,
    hidden: int = HIDDEN,
    wanted: tuple[str, ...] = NAMES,
    seed: int = 0,
) -> Case:
    generator = torch.Generator().manual_seed(seed)
    keys = queries if keys is None else keys
    shapes = (
        (HEADS, batch, queries, hidden),
        (HEADS, batch, keys, hidden),
        (1 if shared else HEADS, width, batch, queries, keys),
        (HEADS, width, hidden),
        (HEADS, hidden, hidden),
        (HEADS, 1, hidden),
        (HEADS, hidden, 1),
        (HEADS, 1, 1),
    )
    tensors = [torch.randn(shape, generator=generator) for shape in shapes]
    tensors[4] /= hidden**0.5
    return Case([x.requires_grad_(name in wanted) for x, name in zip(tensors, NAMES, strict=True)])


def is_used(value: Tensor) -> bool:
    return value.grad_fn is not None and "PairMLP" in value.grad_fn.name()


def direction(like: Tensor) -> Tensor:
    return (1 + torch.arange(like.numel()).cos()).view_as(like).to(like.dtype)


def results(function: Callable[..., Tensor], tensors: list[Tensor]) -> list[Tensor]:
    """The values and their gradients by all that wants them."""
    value = function(*tensors)
    wanted = [tensor for tensor in tensors if tensor.requires_grad]
    return [value, *torch.autograd.grad((value * direction(value)).sum(), wanted)]


def assert_close(found: Any, expected: Any) -> None:
    for a, b in zip(found, expected, strict=True):
        assert a.shape == b.shape
        assert a.numel() == 0 or (a - b).abs().max() <= ROUNDING * b.abs().max()


def assert_agrees(given: Case) -> None:
    assert is_used(given())
    found = results(given, given.tensors)
    assert_close(found, results(given.exact.by_pytorch, given.exact.tensors))


@pytest.mark.parametrize("shared", [True, False], ids=["shared locations", "of each head"])
@pytest.mark.parametrize("batch", [1, 3, 35])
@pytest.mark.parametrize("points", [1, 5, 16, 17, 29, 40])
def test_values_and_gradients_agree(points: int, batch: int, shared: bool) -> None:
    assert_agrees(case(batch, points, shared=shared))


@pytest.mark.parametrize(
    ("queries", "keys"),
    [(3, 20), (20, 3), (2, 401), (401, 2), (2, 192)],
    ids=lambda count: f"{count}",
)
def test_as_many_queries_as_may_be(queries: int, keys: int) -> None:
    assert_agrees(case(2, queries, keys))


@pytest.mark.parametrize(("width", "hidden"), [(1, 1), (1, 5), (6, 12), (32, 32)])
def test_widths(width: int, hidden: int) -> None:
    assert_agrees(case(width=width, hidden=hidden))


@pytest.mark.parametrize("shared", [True, False], ids=["shared locations", "of each head"])
@pytest.mark.parametrize("name", NAMES)
def test_gradients_by_one_thing_alone(name: str, shared: bool) -> None:
    assert_agrees(case(shared=shared, wanted=(name,)))


def test_gradients_by_all_but_the_location() -> None:
    assert_agrees(case(wanted=tuple(name for name in NAMES if name != "location")))


@pytest.mark.parametrize(("batch", "points"), [(0, 5), (2, 0), (0, 0)])
def test_nothing_to_compute(batch: int, points: int) -> None:
    given = case(batch, points)
    value, *gradients = results(given, given.tensors)
    assert is_used(given())
    assert value.shape == (HEADS, 1, batch, points, points)
    assert not any(gradient.any() for gradient in gradients)


def test_tensors_in_another_order_in_memory() -> None:
    def backwards(x: Tensor) -> Tensor:
        order = tuple(reversed(range(x.ndim)))
        turned = x.detach().permute(order).contiguous().permute(order)
        return turned.requires_grad_()

    given = case(4, 6, 6, shared=False).map(backwards)
    assert not any(x.is_contiguous() for x in given.tensors[:5])
    assert_agrees(given)


def test_gradients_in_another_order_in_memory() -> None:
    given = case(4, 6, 7)
    value, exact = given(), given.exact.by_pytorch()
    weight = direction(value.transpose(0, -1)).transpose(0, -1)
    assert_close(
        torch.autograd.grad(value, given.tensors, weight),
        torch.autograd.grad(given.exact.by_pytorch(*given.tensors), given.tensors, weight),
    )
    assert_close([value], [exact])


def test_numbers_do_not_depend_on_the_threads() -> None:
    given, before, found = case(21, 18), torch.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            # Not the sums that PyTorch makes of all numbers, which do.
            value = given()
            found.append([value, *torch.autograd.grad(value, given.tensors, direction(value))])
    finally:
        torch.set_num_threads(before)
    for result in found[1:]:
        assert all(torch.equal(a, b) for a, b in zip(result, found[0], strict=True))


def counted(counts: list[int], points: int, *, shared: bool = True) -> tuple[Case, Tensor]:
    """Elements of which only some are real, and the pairs of those that are."""
    number = torch.tensor(counts)
    is_real = torch.arange(points) < number[:, None]
    given = replace(case(len(counts), points, shared=shared), counts=number)
    return given, is_real[:, :, None] & is_real[:, None]


@pytest.mark.parametrize("shared", [True, False], ids=["shared locations", "of each head"])
@pytest.mark.parametrize("counts", [[5, 0, 16, 17, 1, 33], [4], [0, 0]])
def test_pairs_of_real_elements_alone(counts: list[int], shared: bool) -> None:
    given, is_real = counted(counts, 40, shared=shared)
    exact = given.exact
    found = results(given, given.tensors)
    assert_close(found, results(lambda *x: exact.by_pytorch(*x) * is_real, exact.tensors))


def test_what_is_not_real_may_be_anything() -> None:
    given, is_real = counted([3, 0, 7], 8)
    expected = results(given, given.tensors)
    with torch.no_grad():
        query, key, location, *_ = given.tensors
        absent = ~is_real.any(dim=-1)
        query[:, absent] = key[:, absent] = torch.nan
        location[:, :, ~is_real] = torch.nan
    found = results(given, given.tensors)
    assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))


@pytest.mark.parametrize("counts", [None, [5, 3, 0]], ids=["all", "some are real"])
def test_gradients_of_gradients_agree(counts: list[int] | None) -> None:
    given, is_real = counted(counts or [5, 5, 5], 5)
    given = given if counts else replace(given, counts=None)

    def second(function: Callable[[], Tensor], tensors: list[Tensor]) -> list[Tensor]:
        total = (function() * is_real).square().sum()
        slopes = torch.autograd.grad(total, tensors, create_graph=True)
        squares = sum((slope.square().sum() for slope in slopes), torch.zeros(()))
        return list(torch.autograd.grad(squares, tensors))

    exact = given.exact
    assert_close(second(given, given.tensors), second(exact.by_pytorch, exact.tensors))


def test_functional_gradients_agree() -> None:
    given = case(wanted=())
    places = tuple(range(len(NAMES)))
    found, expected = (
        torch.func.grad(lambda *x, f=f: f(*x).square().sum(), argnums=places)(*given.tensors)
        for f in (given, given.by_pytorch)
    )
    assert_close(found, expected)


def test_mapped_parameters_agree() -> None:
    one, other = case(), case(seed=1)
    fixed = one.tensors[:3]
    stacked = [torch.stack(both) for both in zip(one.tensors[3:], other.tensors[3:], strict=True)]
    found = torch.func.vmap(lambda *parameters: one(*fixed, *parameters))(*stacked)
    assert_close(found, [one(), other(*fixed, *other.tensors[3:])])


# PyTorch's own rules of forward differentiation are written in a way that it warns of itself.
@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:DeprecationWarning")
def test_tangents_agree() -> None:
    tensors = tuple(case(wanted=()).tensors)
    tangents = tuple(map(direction, tensors))
    found, expected = (torch.func.jvp(f, tensors, tangents) for f in (case(), case().by_pytorch))
    assert_close(found, expected)


def test_where_it_does_not_apply() -> None:
    given = case()
    assert is_used(given())
    assert not is_used(given.exact())
    assert not is_used(given.map(lambda x: x.to("meta"))())
    assert not is_used(case(hidden=33)())
    assert not is_used(case(width=33)())
    indices = torch.arange(5).flip(0).expand(5, 5, 5)
    gathered = replace(given, indices=indices)
    assert not is_used(gathered())
    assert_close([gathered()], [gathered.by_pytorch()])
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert not is_used(given())


@pytest.mark.parametrize("widths", [(16, 1), (16, 8, 1), (16, 16, 2), (16, 16, 16, 1)])
def test_other_layers(widths: tuple[int, ...]) -> None:
    rest = [
        torch.randn(shape)
        for before, after in pairwise(widths)
        for shape in ((HEADS, before, after), (HEADS, 1, after))
    ]
    given = Case([*case().tensors[:4], *rest])
    assert not is_used(given())
    assert_close([given()], [given.by_pytorch()])


@pytest.fixture
def _forgetful() -> Iterator[None]:
    """What has been compiled before or is compiled in between is not known."""
    for function in (kernel.compiled, library.load):
        function.cache_clear()
    yield
    for function in (kernel.compiled, library.load):
        function.cache_clear()


@pytest.mark.usefixtures("_forgetful")
def test_without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SWITCH, "0")
    given = case()
    assert not is_used(given())
    assert_close([given()], [given.exact.by_pytorch()])


def test_a_model_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    attention = AttentionConfig("linear_concat_linear", "plain", "mlp")
    config = LieTransformerConfig(
        "T(3)", input_width=1, output_width=2, width=24, layers=2, heads=3, attention=attention
    )
    torch.manual_seed(0)
    model = LieTransformer(config)
    mask = torch.arange(9) < torch.tensor([4, 9, 1])[:, None]
    cloud = PointCloud(torch.randn(3, 9, 3), torch.randn(3, 9, 1), mask)
    found, parameters = [], list(model.parameters())
    supported = kernel.supported
    for is_allowed in (True, False):
        asked: list[bool] = []

        def ask(*given: Any, is_allowed: bool = is_allowed, asked: list[bool] = asked) -> bool:
            asked.append(is_allowed and supported(*given))
            return asked[-1]

        monkeypatch.setattr(kernel, "supported", ask)
        out = model(cloud)
        found.append([out, *torch.autograd.grad(out.square().sum(), parameters)])
        assert asked == [is_allowed] * config.layers
    for a, b in zip(*found, strict=True):
        assert (a - b).abs().max() <= 1e-4 * b.abs().max()
