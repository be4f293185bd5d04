"""Random numbers that are drawn from an explicit generator and nothing else.

The numbers are drawn on the generator's device and then moved, so that a CPU generator
gives the same stream whether the model runs on a CPU or on a GPU.
"""

import math
import zlib

import numpy as np
import numpy.random  # now, not when it is first used: see `undisturbed`
import torch
from jaxtyping import Float
from torch import Tensor

from lietransformer.errors import explain


def stream(seed: int, *purpose: int | str) -> torch.Generator:
    """A generator for one purpose, independent of those for every other seed and purpose.

    `stream(seed, "order", 7)` is the same wherever and whenever it is asked for, so what
    epoch 7 needs can be drawn without the epochs before it.
    """
    # As a spawn key, (1,) and (1, 0) differ; as plain entropy they would not.
    key = [zlib.crc32(part.encode()) if isinstance(part, str) else part for part in purpose]
    sequence = np.random.SeedSequence(seed, spawn_key=key)
    return torch.Generator().manual_seed(int(sequence.generate_state(1, np.uint64)[0]))


def uniform(
    *shape: int, generator: torch.Generator, dtype: torch.dtype, device: torch.device | str
) -> Float[Tensor, "..."]:
    """Numbers uniform in [0, 1)."""
    drawn = torch.rand(shape, generator=generator, dtype=dtype, device=generator.device)
    return drawn.to(device)


def uniform_angle(
    *shape: int, generator: torch.Generator, dtype: torch.dtype, device: torch.device | str
) -> Float[Tensor, "..."]:
    """Angles uniform in [0, 2π)."""
    return 2 * math.pi * uniform(*shape, generator=generator, dtype=dtype, device=device)


def normal(
    *shape: int, generator: torch.Generator, dtype: torch.dtype, device: torch.device | str
) -> Float[Tensor, "..."]:
    """Standard normal numbers."""
    drawn = torch.randn(shape, generator=generator, dtype=dtype, device=generator.device)
    return drawn.to(device)


def require_generator(generator: torch.Generator | None, *, purpose: str) -> torch.Generator:
    """The generator, or an error that says what needs one."""
    if generator is None:
        raise ValueError(
            explain(
                expected=f"a torch.Generator for {purpose}",
                found="generator=None",
                remedy="pass generator=torch.Generator().manual_seed(seed)",
            )
        )
    return generator
