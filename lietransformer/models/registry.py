"""Building a model from its settings, whichever kind they are of."""

from torch import nn

from lietransformer.models.fully_connected import FullyConnected, FullyConnectedConfig
from lietransformer.models.graph_network import GraphNetwork, GraphNetworkConfig
from lietransformer.models.lie_resnet import LieResNet, LieResNetConfig
from lietransformer.models.lie_transformer import LieTransformer, LieTransformerConfig
from lietransformer.models.set_transformer import SetTransformer, SetTransformerConfig
from lietransformer.models.specialists import Specialist, SpecialistConfig

ModelConfig = (
    LieTransformerConfig
    | LieResNetConfig
    | SetTransformerConfig
    | FullyConnectedConfig
    | GraphNetworkConfig
    | SpecialistConfig
)

_MODELS: dict[type[ModelConfig], type[nn.Module]] = {
    LieTransformerConfig: LieTransformer,
    LieResNetConfig: LieResNet,
    SetTransformerConfig: SetTransformer,
    FullyConnectedConfig: FullyConnected,
    GraphNetworkConfig: GraphNetwork,
    SpecialistConfig: Specialist,
}


def build_model(config: ModelConfig) -> nn.Module:
    """The model that these settings define, with freshly drawn parameters."""
    if type(config) not in _MODELS:
        raise TypeError(
            "a model is built from the settings of one of "
            f"{', '.join(m.__name__ for m in _MODELS.values())}, got {type(config).__name__}"
        )
    return _MODELS[type(config)](config)


def count_parameters(model: nn.Module) -> int:
    """Number of trainable numbers."""
    return sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)
