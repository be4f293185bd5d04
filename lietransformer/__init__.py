"""LieTransformer: equivariant self-attention for Lie groups."""

from importlib.metadata import version
from typing import Any

__version__ = version("lietransformer")
__all__ = ["__version__", "load_model"]


def __getattr__(name: str) -> Any:
    """Import `load_model` on first use, so that importing the package does not import torch."""
    if name == "load_model":
        from lietransformer.archive.weights import load_model  # noqa: PLC0415

        return load_model
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
