"""The models of the springs experiment (App. I.3)."""

from collections.abc import Iterator
from dataclasses import replace

from lietransformer.experiments.preset import Preset
from lietransformer.lift import LiftConfig
from lietransformer.models.fully_connected import FullyConnectedConfig
from lietransformer.models.graph_network import GraphNetworkConfig
from lietransformer.models.lie_resnet import LieResNetConfig
from lietransformer.models.lie_transformer import LieTransformerConfig
from lietransformer.nn.attention import AttentionConfig


def presets() -> Iterator[Preset]:
    # App. I.3: 5 layers, 8 heads, d = 160; small: 3 layers, d = 80; dot product, 3-layer
    # location MLP of width 16, additive, constant normalisation.
    t2 = LieTransformerConfig(
        group="T(2)",
        input_width=2,  # mass and spring constant
        output_width=1,  # the potential
        width=160,
        layers=5,
        heads=8,
        attention=AttentionConfig(),
    )
    # LieConv with 384 channels in 4 layers, small: 192 in 3; all neighbours, no batch norm.
    conv_t2 = LieResNetConfig("T(2)", input_width=2, output_width=1, width=384, layers=4)
    # Ĥ = C₂ and the canonical lift: exactly equivariant to T(2) ⋊ C₂.
    lift = LiftConfig("subgroup", samples=2)
    se2 = replace(t2, group="SE(2)", lift=lift, pair_features="canonical")
    conv_se2 = replace(conv_t2, group="SE(2)", lift=lift, pair_features="canonical")
    for group, large in (("T2", t2), ("SE2", se2)):
        small = replace(large, layers=3, width=80)
        yield Preset("springs", f"LieTransformer-{group}", large, "potential")
        yield Preset("springs", f"LieTransformer-{group} small", small, "potential")
    for group, large_conv in (("T2", conv_t2), ("SE2", conv_se2)):
        small_conv = replace(large_conv, layers=3, width=192)
        yield Preset("springs", f"LieConv-{group}", large_conv, "potential")
        yield Preset("springs", f"LieConv-{group} small", small_conv, "potential")
    # Features of a point are (m, k); of a point of phase space (p, m, k).
    potential = FullyConnectedConfig(points=6, space_dimension=2, input_width=2, output_width=1)
    velocity = replace(potential, input_width=4, output_width=24)
    yield Preset("springs", "Fully-connected (Hamiltonian)", potential, "potential")
    yield Preset("springs", "Fully-connected (direct)", velocity, "velocity")
    hogn = GraphNetworkConfig(2, input_width=4, output_width=1, read_out="global")
    ogn = replace(hogn, output_width=4, read_out="node")
    yield Preset("springs", "Graph network (Hamiltonian)", hogn, "hamiltonian")
    yield Preset("springs", "Graph network (direct)", ogn, "velocity")
