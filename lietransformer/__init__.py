"""LieTransformer: equivariant self-attention for Lie groups (Hutchinson et al., ICML 2021).

    import lietransformer as lt

    config = lt.LieTransformerConfig(group="SE(2)", input_width=1, output_width=4, width=32,
                                     layers=2, heads=4, lift=lt.LiftConfig("evenly_spaced", 2))
    model = lt.LieTransformer(config)

The names below are the public interface. They are imported on first use, so that
`import lietransformer` does not import torch.
"""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lietransformer import groups as groups
    from lietransformer.archive.weights import load_model as load_model
    from lietransformer.clouds import LiftedCloud as LiftedCloud
    from lietransformer.clouds import PointCloud as PointCloud
    from lietransformer.experiments.registry import get_preset as get_preset
    from lietransformer.experiments.registry import presets as presets
    from lietransformer.groups import Group as Group
    from lietransformer.groups import get_group as get_group
    from lietransformer.groups import register_group as register_group
    from lietransformer.lift import LiftConfig as LiftConfig
    from lietransformer.models import LieResNet as LieResNet
    from lietransformer.models import LieResNetConfig as LieResNetConfig
    from lietransformer.models import LieTransformer as LieTransformer
    from lietransformer.models import LieTransformerConfig as LieTransformerConfig
    from lietransformer.nn.attention import AttentionConfig as AttentionConfig
    from lietransformer.nn.attention import LieSelfAttention as LieSelfAttention
    from lietransformer.nn.lieconv import LieConv as LieConv
    from lietransformer.pairs import NeighbourhoodConfig as NeighbourhoodConfig

__version__ = version("lietransformer")

_HOMES = {
    "AttentionConfig": "nn.attention",
    "Group": "groups",
    "LieConv": "nn.lieconv",
    "LieResNet": "models",
    "LieResNetConfig": "models",
    "LieSelfAttention": "nn.attention",
    "LieTransformer": "models",
    "LieTransformerConfig": "models",
    "LiftConfig": "lift",
    "LiftedCloud": "clouds",
    "NeighbourhoodConfig": "pairs",
    "PointCloud": "clouds",
    "get_group": "groups",
    "get_preset": "experiments.registry",
    "load_model": "archive.weights",
    "presets": "experiments.registry",
    "register_group": "groups",
}
__all__ = ["__version__", "groups"]
__all__ += list(_HOMES)


def __getattr__(name: str) -> Any:
    if name == "groups":
        return import_module("lietransformer.groups")
    if name in _HOMES:
        return getattr(import_module(f"lietransformer.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
