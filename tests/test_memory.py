"""Attention to neighbourhoods needs memory in proportion to their size, not to all pairs.

Attention to all needs some for all pairs, but not for all channels of each.
"""

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from lietransformer.clouds import PointCloud
from lietransformer.experiments.cost.cost import peak_bytes
from lietransformer.experiments.cost.steps import training_step
from lietransformer.kernels import SWITCH
from lietransformer.lift import LiftConfig
from lietransformer.models import (
    GraphNetwork,
    GraphNetworkConfig,
    LieResNet,
    LieResNetConfig,
    LieTransformer,
    LieTransformerConfig,
    SetTransformer,
    SetTransformerConfig,
)
from lietransformer.nn import AttentionConfig
from lietransformer.pairs import NeighbourhoodConfig
from tests.cases import seeded

LIMIT_IN_GIB = 1.5

# In a process of its own, whose peak memory is that of this one job (and of importing torch).
PROGRAM = textwrap.dedent(
    """
    import re
    import sys
    from pathlib import Path

    import torch

    from lietransformer.lift import LiftConfig
    from lietransformer.models import LieTransformer, LieTransformerConfig
    from lietransformer.pairs import NeighbourhoodConfig
    from lietransformer.nn import AttentionConfig
    from lietransformer.clouds import PointCloud

    group, lift, content, combination, points = sys.argv[1:]
    config = LieTransformerConfig(
        group=group,
        input_width=1,
        output_width=1,
        width=64,
        layers=2,
        heads=8,
        attention=AttentionConfig(content, "mlp", combination),
        lift=LiftConfig() if lift == "exact" else LiftConfig(lift, samples=1),
        neighbourhood=NeighbourhoodConfig(ball=32),
    )
    torch.manual_seed(0)
    dimension = 3 if "3" in group else 2
    positions = torch.randn(1, int(points), dimension, requires_grad=True)
    model = LieTransformer(config)
    model(PointCloud(positions), generator=torch.Generator().manual_seed(0)).sum().backward()
    # Not ru_maxrss, in which a new process inherits the peak of the one that started it.
    peak = re.search(r"VmHWM:\\s+(.*) kB", Path("/proc/self/status").read_text())
    print(int(peak[1]) / 2**20)
    """
)


# By itself, malloc of glibc begins to keep large blocks when some have been freed, and the gaps
# that remain between them are now and then a quarter of the memory. From so many bytes on, a block
# is now always given back.
GIVING_BACK = {"MALLOC_MMAP_THRESHOLD_": "131072"}


def peak_memory_in_gib(*arguments: str) -> float:
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **GIVING_BACK},
    )
    return float(result.stdout)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("group", "lift", "content", "combination"),
    [
        ("T(2)", "exact", "dot_product", "additive"),
        ("SE(2)", "evenly_spaced", "dot_product", "additive"),
        ("SE(3)", "random", "linear_concat_linear", "mlp"),
        ("T(3)", "exact", "concat", "multiplicative"),
    ],
)
def test_two_thousand_points(group: str, lift: str, content: str, combination: str) -> None:
    """2,000 points, width 64, 8 heads, neighbourhoods of 32, forward and backward."""
    assert peak_memory_in_gib(group, lift, content, combination, "2000") < LIMIT_IN_GIB


@pytest.mark.slow
def test_memory_grows_in_proportion_to_the_points() -> None:
    none, some, many = (
        peak_memory_in_gib("T(2)", "exact", "dot_product", "additive", points)
        for points in ("10", "2000", "10000")
    )
    # Five times the points: five times the memory beyond that of the process itself (a fifth is
    # left for the allocator). Holding all pairs would take 25 times.
    assert many - none < 6 * (some - none)


def cloud_of(points: int) -> PointCloud:
    positions = torch.randn(1, points, 2, generator=seeded())
    return PointCloud(positions, torch.ones(1, points, 1))


def test_a_training_step_on_four_thousand_points_has_no_memory_for_all_pairs() -> None:
    """Counted, not timed: 60 MB, while a single number of each of all pairs would be 67 MB."""
    points, ball, width, heads, layers = 4096, 32, 16, 2, 2
    config = LieTransformerConfig(
        *("SE(2)", 1, 1, width, layers, heads),
        lift=LiftConfig("subgroup", samples=1),
        neighbourhood=NeighbourhoodConfig(ball=ball),
    )
    torch.manual_seed(0)
    step = training_step(LieTransformer(config), cloud_of(points), torch.zeros(1, 1))
    # Keys and values of each pair are there for every layer, with gradients for one; scores
    # in a few stages; and the features of each point in some more.
    of_a_pair = layers * (2 * width + 5 * heads) + 2 * width + 8
    of_a_point = 12 * layers * width
    assert peak_bytes(step) < 4 * points * (ball * of_a_pair + of_a_point)


class LargestTensor(TorchDispatchMode):
    """How many numbers the largest tensor holds that any operation makes."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.numbers = 0

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        result = function(*args, **(kwargs or {}))
        for tensor in tree_leaves(result):
            if isinstance(tensor, Tensor):
                # Of its memory: an expanded view has none of its own.
                held = tensor.untyped_storage().nbytes() // tensor.element_size()
                self.numbers = max(self.numbers, held)
        return result


def largest_tensor(model: nn.Module, points: int) -> int:
    """In a training step."""
    optimiser = torch.optim.Adam(model.parameters())
    with LargestTensor() as largest:
        F.mse_loss(*torch.broadcast_tensors(model(cloud_of(points)), torch.zeros(1, 1))).backward()
        optimiser.step()
    return largest.numbers


WIDTH = 128


def transformer(*attention: str) -> LieTransformer:
    config = AttentionConfig(*attention)  # type: ignore[arg-type]
    return LieTransformer(
        LieTransformerConfig("SE(2)", 1, 1, WIDTH, 1, 8, config, LiftConfig("subgroup", 1))
    )


@pytest.mark.parametrize(
    "build",
    [
        lambda: transformer("dot_product", "mlp", "additive"),
        lambda: transformer("linear_concat_linear", "plain", "mlp"),
        lambda: transformer("concat", "mlp", "multiplicative", "softmax"),
        lambda: LieResNet(LieResNetConfig("T(2)", 1, 1, WIDTH, 1)),
        lambda: SetTransformer(SetTransformerConfig(2, 1, True, 1, 1, WIDTH, 1, 1, 4)),
    ],
    ids=["additive", "MLP", "multiplicative", "LieConv", "SetTransformer"],
)
@pytest.mark.parametrize("is_replaced", [True, False])
def test_all_pairs_have_no_memory_for_all_channels(
    build: Callable[[], nn.Module], is_replaced: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the C code, where there is a compiler, and without it."""
    if not is_replaced:
        monkeypatch.setenv(SWITCH, "0")
    torch.manual_seed(0)
    points = 512
    assert largest_tensor(build(), points) < points**2 * WIDTH / 2


def test_a_graph_network_has_a_state_on_every_edge() -> None:
    """As it is defined; and the largest tensor is seen."""
    points = 48
    config = GraphNetworkConfig(2, 1, 1, "global", width=16, layers=1)
    assert largest_tensor(GraphNetwork(config), points) >= points**2 * config.width
