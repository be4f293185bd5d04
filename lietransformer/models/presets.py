"""The paper's models by name, built to the settings of its experiments."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import nn

from lietransformer.errors import explain
from lietransformer.lift import LiftConfig
from lietransformer.models.fully_connected import FullyConnectedConfig
from lietransformer.models.graph_network import GraphNetworkConfig
from lietransformer.models.lie_resnet import LieResNetConfig
from lietransformer.models.lie_transformer import LieTransformerConfig
from lietransformer.models.registry import ModelConfig, build_model
from lietransformer.models.set_transformer import SetTransformerConfig
from lietransformer.models.specialists import SpecialistConfig
from lietransformer.neighbourhood import NeighbourhoodConfig
from lietransformer.nn.attention import AttentionConfig

SpringsPrediction = Literal["potential", "hamiltonian", "velocity"]
Prediction = SpringsPrediction | Literal["logits", "property"]


@dataclass(frozen=True)
class Preset:
    """A model of the paper.

    Attributes:
        task: "constellations", "springs" or "qm9".
        model: its name in the paper's tables and legends.
        config: everything needed to build it.
        predicts: what its outputs are. For springs: V(q), H(q, p) or (q̇, ṗ).
    """

    task: str
    model: str
    config: ModelConfig
    predicts: Prediction

    @property
    def group(self) -> str:
        """The group it is built to be invariant to; empty where it is built for none."""
        return getattr(self.config, "group", "")

    @property
    def size(self) -> str:
        """Layers × width, to tell the sizes of one model apart."""
        config = self.config
        if isinstance(config, SpecialistConfig):
            return ""
        if isinstance(config, SetTransformerConfig):
            return f"{config.encoder_layers}+{config.decoder_layers}x{config.width}"
        return f"{config.layers}x{config.width}"

    def build(self, *, seed: int) -> nn.Module:
        """The model with parameters drawn from the seed; the global random state stays."""
        with torch.random.fork_rng(devices=[]):
            # Not torch.manual_seed, which would seed other devices as well.
            torch.default_generator.manual_seed(seed)
            return build_model(self.config)

    @property
    def parameter_count(self) -> int:
        """The number of its parameters, found without allocating them where that is possible."""
        ours = not isinstance(self.config, SpecialistConfig)
        with torch.device("meta" if ours else "cpu"):
            return count_parameters(self.build(seed=0))


def count_parameters(model: nn.Module) -> int:
    """Number of trainable numbers."""
    return sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)


def _constellations() -> Iterator[Preset]:
    # App. I.1: 10 layers, 8 heads, d = 128, kernel dimension 12, one lift sample. The paper
    # does not name the normalisation; the authors' release has softmax as its default, with
    # pairwise distances as the default features. But the paper (and its parameter count) has
    # the feature 1 on every point, and on equal features softmax attention is blind to
    # geometry (see AttentionConfig). So it is constant here.
    t2 = LieTransformerConfig(
        group="T(2)",
        input_width=1,
        output_width=12,  # 4 patterns × (0, 1 or 2 instances)
        width=128,
        layers=10,
        heads=8,
        attention=AttentionConfig(kernel_width=12),
    )
    se2 = replace(t2, group="SE(2)", lift=LiftConfig("evenly_spaced", samples=1))
    yield Preset("constellations", "LieTransformer-T2", t2, "logits")
    yield Preset("constellations", "LieTransformer-SE2", se2, "logits")
    # One seed vector for each pattern, with three logits each.
    set_transformer = SetTransformerConfig(
        space_dimension=2,
        input_width=1,
        use_features=False,
        seeds=4,
        outputs_per_seed=3,
        width=128,
        encoder_layers=8,
        decoder_layers=8,
        heads=4,
    )
    yield Preset("constellations", "SetTransformer", set_transformer, "logits")


def _springs() -> Iterator[Preset]:
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


def _qm9() -> Iterator[Preset]:
    # App. I.2: 8 heads, d = 848, linear-concat-linear content, plain location, MLP
    # combination; T(3) with 13 layers, SE(3) with 30 layers and 2 lift samples. Queries and
    # keys are as narrow as the score they are mixed into, as in the authors' release.
    t3 = LieTransformerConfig(
        group="T(3)",
        input_width=15,  # 5 elements × [1, c, c²]
        output_width=1,
        width=848,
        layers=13,
        heads=8,
        attention=AttentionConfig(
            "linear_concat_linear", "plain", "mlp", query_key_width=26, score_width=26
        ),
        neighbourhood=NeighbourhoodConfig(ball=50, samples=25),
        head="linear_then_pool",
    )
    se3 = replace(
        t3,
        group="SE(3)",
        layers=30,
        lift=LiftConfig("random", samples=2),
        neighbourhood=NeighbourhoodConfig(ball=25, samples=20),
    )
    yield Preset("qm9", "LieTransformer-T3", t3, "property")
    yield Preset("qm9", "LieTransformer-SE3", se3, "property")
    conv_t3 = LieResNetConfig(
        "T(3)", input_width=15, output_width=1, width=1536, layers=6, norm="batch"
    )
    conv_se3 = replace(
        conv_t3,
        group="SE(3)",
        lift=LiftConfig("random", samples=4),
        fill=0.5,
        neighbourhood=NeighbourhoodConfig(samples=25),
    )
    yield Preset("qm9", "LieConv-T3", conv_t3, "property")
    yield Preset("qm9", "LieConv-SE3", conv_se3, "property")
    elements = (1, 6, 7, 8, 9)
    yield Preset("qm9", "SchNet", SpecialistConfig("SchNet", elements, 15, 1, 10.0), "property")
    yield Preset(
        "qm9", "DimeNet++", SpecialistConfig("DimeNet++", elements, 15, 1, 5.0), "property"
    )


def presets() -> tuple[Preset, ...]:
    """All models of the paper that this package builds, by experiment."""
    return (*_constellations(), *_springs(), *_qm9())


def get_preset(task: str, model: str) -> Preset:
    """The model of that name for that task; an unknown one is answered with those that exist."""
    for preset in presets():
        if (preset.task, preset.model) == (task, model):
            return preset
    raise ValueError(
        explain(
            expected="one of " + ", ".join(f"{preset.task}/{preset.model}" for preset in presets()),
            found=f"{task}/{model}",
            remedy="see `lietransformer models` for the list",
        )
    )
