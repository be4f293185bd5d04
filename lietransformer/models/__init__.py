"""Models, and the paper's by name."""

from lietransformer.models.lie_transformer import LieTransformer, LieTransformerConfig
from lietransformer.models.presets import Preset, count_parameters, get_preset, presets

__all__ = [
    "LieTransformer",
    "LieTransformerConfig",
    "Preset",
    "count_parameters",
    "get_preset",
    "presets",
]
