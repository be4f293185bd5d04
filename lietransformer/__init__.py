"""LieTransformer: equivariant self-attention for Lie groups."""

from importlib.metadata import version

__version__ = version("lietransformer")
