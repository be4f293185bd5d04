"""Random numbers that are drawn from an explicit generator and nothing else.

The numbers are drawn on the generator's device and then moved, so that a CPU generator
gives the same stream whether the model runs on a CPU or on a GPU.
"""

import math
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.random  # now, not when it is first used: see `undisturbed`
import torch
from jaxtyping import Float, Int
from torch import Tensor

from lietransformer.device import send


def stream(seed: int, *purpose: int | str) -> torch.Generator:
    """A generator for one purpose, independent of those for every other seed and purpose.

    `stream(seed, "order", 7)` is the same wherever and whenever it is asked for, so what
    epoch 7 needs can be drawn without the epochs before it.
    """
    # As a spawn key, (1,) and (1, 0) differ; as plain entropy they would not.
    key = [zlib.crc32(part.encode()) if isinstance(part, str) else part for part in purpose]
    sequence = np.random.SeedSequence(seed, spawn_key=key)
    return torch.Generator().manual_seed(int(sequence.generate_state(1, np.uint64)[0]))


@dataclass(frozen=True)
class Request:
    """What a function below is asked for: numbers of a kind, in a shape.

    Attributes:
        kind: uniform in [0, 1), standard normal, or whole numbers below `bound`.
        shape: of the tensor.
        dtype: of its numbers.
        bound: of whole numbers.
    """

    kind: Literal["uniform", "normal", "integers"]
    shape: tuple[int, ...]
    dtype: torch.dtype
    bound: int = 0

    def draw(self, generator: torch.Generator) -> Tensor:
        """The numbers, on the generator's device."""
        device, dtype = generator.device, self.dtype
        if self.kind == "uniform":
            return torch.rand(self.shape, generator=generator, dtype=dtype, device=device)
        if self.kind == "normal":
            return torch.randn(self.shape, generator=generator, dtype=dtype, device=device)
        return torch.randint(
            self.bound, self.shape, generator=generator, dtype=dtype, device=device
        )


class Listener(torch.Generator):
    """A stand-in generator that records what is asked for; its numbers are zeros.

    Attributes:
        requests: one after the other.
    """

    def __init__(self) -> None:
        super().__init__()
        self.requests: list[Request] = []


class Drawn(torch.Generator):
    """A stand-in generator: numbers drawn before, in the order of asking."""

    def __new__(cls, tensors: Iterable[Tensor]) -> "Drawn":  # noqa: ARG004
        return super().__new__(cls)

    def __init__(self, tensors: Iterable[Tensor]) -> None:
        super().__init__()
        self._tensors = iter(tensors)

    def next(self) -> Tensor:
        """The next numbers."""
        return next(self._tensors)


def uniform(
    *shape: int, generator: torch.Generator, dtype: torch.dtype, device: torch.device | str
) -> Float[Tensor, "..."]:
    """Numbers uniform in [0, 1)."""
    return _answer(Request("uniform", shape, dtype), generator, device)


def uniform_angle(
    *shape: int, generator: torch.Generator, dtype: torch.dtype, device: torch.device | str
) -> Float[Tensor, "..."]:
    """Angles uniform in [0, 2π)."""
    return 2 * math.pi * uniform(*shape, generator=generator, dtype=dtype, device=device)


def normal(
    *shape: int, generator: torch.Generator, dtype: torch.dtype, device: torch.device | str
) -> Float[Tensor, "..."]:
    """Standard normal numbers."""
    return _answer(Request("normal", shape, dtype), generator, device)


def integers(
    bound: int, *shape: int, generator: torch.Generator, device: torch.device | str
) -> Int[Tensor, "..."]:
    """Whole numbers uniform in 0 … bound − 1."""
    return _answer(Request("integers", shape, torch.int64, bound), generator, device)


def _answer(request: Request, generator: torch.Generator, device: torch.device | str) -> Tensor:
    if isinstance(generator, Drawn):
        return generator.next()
    if isinstance(generator, Listener):
        generator.requests.append(request)
        return torch.zeros(request.shape, dtype=request.dtype, device=device)
    return send(request.draw(generator), device)


def require_generator(generator: torch.Generator | None, *, purpose: str) -> torch.Generator:
    """The generator, or an error that says what needs one."""
    if generator is None:
        raise ValueError(
            f"a torch.Generator is needed for {purpose}: pass "
            "generator=torch.Generator().manual_seed(seed)"
        )
    return generator
