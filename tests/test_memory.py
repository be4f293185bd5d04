"""Attention to neighbourhoods needs memory in proportion to their size, not to all pairs."""

import subprocess
import sys
import textwrap

import pytest

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
    from lietransformer.neighbourhood import NeighbourhoodConfig
    from lietransformer.nn import AttentionConfig
    from lietransformer.types import PointCloud

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


def peak_memory_in_gib(*arguments: str) -> float:
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments], capture_output=True, text=True, check=True
    )
    return float(result.stdout)


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


def test_memory_grows_in_proportion_to_the_points() -> None:
    none, some, many = (
        peak_memory_in_gib("T(2)", "exact", "dot_product", "additive", points)
        for points in ("10", "2000", "10000")
    )
    # Five times the points: five times the memory beyond that of the process itself (half as
    # much again is left for the allocator). Holding all pairs would take 25 times.
    assert many - none < 7.5 * (some - none)
