"""Models, and the paper's by name."""

from lietransformer.models.fully_connected import FullyConnected, FullyConnectedConfig
from lietransformer.models.graph_network import GraphNetwork, GraphNetworkConfig
from lietransformer.models.lie_resnet import LieResNet, LieResNetConfig
from lietransformer.models.lie_transformer import LieTransformer, LieTransformerConfig
from lietransformer.models.presets import Preset, count_parameters, get_preset, presets
from lietransformer.models.registry import ModelConfig, build_model
from lietransformer.models.set_transformer import SetTransformer, SetTransformerConfig
from lietransformer.models.specialists import Specialist, SpecialistConfig

__all__ = [
    "FullyConnected",
    "FullyConnectedConfig",
    "GraphNetwork",
    "GraphNetworkConfig",
    "LieResNet",
    "LieResNetConfig",
    "LieTransformer",
    "LieTransformerConfig",
    "ModelConfig",
    "Preset",
    "SetTransformer",
    "SetTransformerConfig",
    "Specialist",
    "SpecialistConfig",
    "build_model",
    "count_parameters",
    "get_preset",
    "presets",
]
