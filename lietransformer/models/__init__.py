"""LieTransformer and the models it is compared with."""

from lietransformer.models.fully_connected import FullyConnected, FullyConnectedConfig
from lietransformer.models.graph_network import GraphNetwork, GraphNetworkConfig
from lietransformer.models.lie_resnet import LieResNet, LieResNetConfig
from lietransformer.models.lie_transformer import LieTransformer, LieTransformerConfig
from lietransformer.models.registry import ModelConfig, build_model, count_parameters
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
    "SetTransformer",
    "SetTransformerConfig",
    "Specialist",
    "SpecialistConfig",
    "build_model",
    "count_parameters",
]
