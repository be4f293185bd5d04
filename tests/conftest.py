"""Settings of the whole suite."""

import os
from collections.abc import Iterator

import jaxtyping
import pytest
import torch
from hypothesis import settings

# Small tensors: the suite gains from more processes, not from more threads in each.
torch.set_num_threads(1)

# Nothing may depend on the clock, and continuous integration must be repeatable.
settings.register_profile("local", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")


@pytest.fixture
def without_shape_checks() -> Iterator[None]:
    """Run as users do: without the shape checks of the test suite, which would speak first."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)
