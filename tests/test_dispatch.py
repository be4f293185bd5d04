"""The seam between the method and the code that replaces parts of it."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import lietransformer
from lietransformer.clouds import PointCloud
from lietransformer.dispatch import Replaceable, replaceable
from lietransformer.dynamics import PotentialDynamics, rollout
from lietransformer.kernels import SWITCH, dispatch
from lietransformer.models import LieTransformer, LieTransformerConfig
from lietransformer.nn import AttentionConfig
from tests.requirements import needs_compiler

PACKAGE = Path(lietransformer.__file__).parent
PLACES = (
    *("groups", "nn", "models", "dynamics", "testing", "experiments"),
    *("clouds.py", "lift.py", "pairs.py", "packing.py", "checkpointing.py", "rng.py"),
)
# Also torch's private names, on which it depends whether something can be replaced.
FOREIGN = re.compile(
    r"ctypes|\bnative\b|lietransformer\.kernels|\b(C code|in C)\b|\b_?(is_)?fused"
    r"|torch\._|forward_ad|_forward_(pre_)?hooks"
)


@pytest.mark.parametrize("name", PLACES)
def test_the_method_does_not_mention_what_replaces_it(name: str) -> None:
    place = PACKAGE / name
    files = [place] if place.is_file() else sorted(place.rglob("*.py"))
    assert files
    for file in files:
        lines = file.read_text().splitlines()
        assert [line for line in lines if FOREIGN.search(line)] == [], file


@pytest.mark.parametrize("name", dispatch.REPLACEMENTS)
def test_each_replacement_is_of_a_replaceable_function(name: str) -> None:
    module, _, function = name.rpartition(".")
    found = getattr(import_module(module), function)
    assert isinstance(found, Replaceable)
    assert found.name == name
    replacement = dispatch.find(name)
    assert replacement is not None
    assert callable(replacement.supported)
    assert callable(replacement.compute)


def test_a_function_without_replacement_is_its_plain_body() -> None:
    @replaceable
    def double(x: int, *, offset: int = 0) -> int:
        return 2 * x + offset

    assert not double.is_replaced(1)
    assert (double(1), double(1, offset=3), double.plain(1)) == (2, 5, 2)


class Half:
    """Replaces a function of even numbers."""

    @staticmethod
    def supported(x: int) -> bool:
        return x % 2 == 0

    @staticmethod
    def compute(x: int) -> int:
        return -x


def test_when_the_replacement_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    @replaceable
    def same(x: int) -> int:
        return x

    monkeypatch.delenv(SWITCH, raising=False)
    monkeypatch.setitem(dispatch.REPLACEMENTS, same.name, Half)
    assert [same(x) for x in (1, 2)] == [1, -2]
    assert [same.is_replaced(x) for x in (1, 2)] == [False, True]
    with monkeypatch.context() as patch:
        patch.setattr(torch.compiler, "is_compiling", lambda: True)
        assert same(2) == 2
    monkeypatch.setenv(SWITCH, "0")
    assert same(2) == 2
    assert not same.is_replaced(2)


PROGRAM = """
import sys
import torch
import lietransformer as lt

model = lt.LieTransformer(lt.LieTransformerConfig("T(2)", 1, 4, 16, 1, 2))
assert not [name for name in sys.modules if name.startswith("lietransformer.kernels.dispatch")]
model(lt.PointCloud(torch.randn(2, 5, 2), torch.ones(2, 5, 1))).sum().backward()
print(any(name.startswith("lietransformer.kernels.dispatch") for name in sys.modules))
"""


@pytest.mark.parametrize(("value", "expected"), [("1", "True"), ("0", "False")])
def test_kernels_are_loaded_on_first_use_if_at_all(value: str, expected: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, SWITCH: value},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == expected


def _model(attention: AttentionConfig, *, outputs: int = 3) -> LieTransformer:
    torch.manual_seed(0)
    config = LieTransformerConfig("T(2)", 2, outputs, 24, 3, 3, attention=attention)
    return LieTransformer(config)


def _outputs(attention: AttentionConfig) -> tuple[Tensor, nn.Module]:
    model = _model(attention)
    mask = torch.arange(20) < torch.tensor([4, 20, 0, 17])[:, None]
    generator = torch.Generator().manual_seed(1)
    positions, features = torch.randn(2, 4, 20, 2, generator=generator)
    return model(PointCloud(positions, features, mask)), model


def _trajectory() -> tuple[Tensor, nn.Module]:
    model = _model(AttentionConfig(), outputs=1)
    generator = torch.Generator().manual_seed(1)
    state = torch.randn(4, 2, 5, 2, generator=generator)
    masses, stiffness = 0.5 + torch.rand(2, 4, 5, generator=generator)
    field = PotentialDynamics(model).field(masses, stiffness)
    return rollout(field, state, step=0.05, states=3), model


CASES: dict[str, tuple[Callable[[], tuple[Tensor, nn.Module]], str]] = {
    "attention": (
        lambda: _outputs(AttentionConfig()),
        "lietransformer.nn.attention.weighted_sums",
    ),
    "per-head MLP": (
        lambda: _outputs(AttentionConfig(normalisation="softmax")),
        "lietransformer.nn.mlp.through_layers",
    ),
    "MLP of pairs": (
        lambda: _outputs(AttentionConfig("linear_concat_linear", "plain", "mlp")),
        "lietransformer.nn.pair_mlp.pair_mlp",
    ),
    "potential": (_trajectory, "lietransformer.dynamics.hamiltonian.potential_gradient"),
}


@needs_compiler
@pytest.mark.parametrize("name", CASES)
def test_both_ways_give_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run, function = CASES[name]
    original, calls = dispatch.REPLACEMENTS[function], []

    class Counted:
        supported = staticmethod(original.supported)

        @staticmethod
        def compute(*args: object) -> Tensor:
            calls.append(function)
            return original.compute(*args)

    monkeypatch.setitem(dispatch.REPLACEMENTS, function, Counted)
    monkeypatch.delenv(SWITCH, raising=False)
    results = []
    for is_replaced in (True, False):
        if not is_replaced:
            monkeypatch.setenv(SWITCH, "0")
        calls.clear()
        value, model = run()
        parameters = list(model.parameters())
        total = value.square().sum()
        gradients = torch.autograd.grad(total, parameters, materialize_grads=True)
        results.append([value, *gradients])
        assert bool(calls) == is_replaced
    for a, b in zip(*results, strict=True):
        # Softmax does not depend on the bias of the keys: its gradient is rounding alone.
        assert (a - b).abs().max() <= 1e-4 * b.abs().max() + 1e-9
