"""The models of Table 1 (App. I.1)."""

from collections.abc import Iterator
from dataclasses import replace

from lietransformer.experiments.preset import Preset
from lietransformer.lift import LiftConfig
from lietransformer.models.lie_transformer import LieTransformerConfig
from lietransformer.models.set_transformer import SetTransformerConfig
from lietransformer.nn.attention import AttentionConfig


def presets() -> Iterator[Preset]:
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
