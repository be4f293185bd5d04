"""The models of Table 2 (App. I.2)."""

from collections.abc import Iterator
from dataclasses import replace

from lietransformer.experiments.preset import Preset
from lietransformer.lift import LiftConfig
from lietransformer.models.lie_resnet import LieResNetConfig
from lietransformer.models.lie_transformer import LieTransformerConfig
from lietransformer.models.specialists import SpecialistConfig
from lietransformer.nn.attention import AttentionConfig
from lietransformer.pairs import NeighbourhoodConfig


def presets() -> Iterator[Preset]:
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
