"""The paper's models: present, of the published size, and runnable."""

from dataclasses import replace

import pytest
import torch

from lietransformer.experiments.preset import Preset
from lietransformer.experiments.registry import get_preset, presets
from lietransformer.lift import LiftConfig
from lietransformer.models import LieTransformer, LieTransformerConfig, count_parameters
from lietransformer.models.fully_connected import FullyConnectedConfig
from lietransformer.models.graph_network import GraphNetworkConfig
from lietransformer.models.lie_resnet import LieResNetConfig
from lietransformer.models.set_transformer import SetTransformerConfig
from lietransformer.models.specialists import SpecialistConfig
from lietransformer.pairs import NeighbourhoodConfig
from lietransformer.reference import parameter_counts
from tests.cases import random_cloud, seeded


def published() -> list[tuple[str, str]]:
    return list(parameter_counts())


@pytest.mark.parametrize(("task", "model"), published())
def test_parameter_counts_equal_the_published_ones_to_the_last(task: str, model: str) -> None:
    preset = get_preset(task, model)
    assert preset.parameter_count == parameter_counts()[task, model].exact


@pytest.mark.parametrize(
    ("task", "model"), [key for key, count in parameter_counts().items() if count.paper]
)
def test_exact_counts_round_to_what_the_paper_prints(task: str, model: str) -> None:
    """The paper prints 1048k for both constellation models, of which one has 1047k."""
    count = parameter_counts()[task, model]
    assert abs(count.exact / 1000 - int(count.paper.removesuffix("k"))) < 1


def test_every_published_model_is_there_and_names_are_unique() -> None:
    names = [(preset.task, preset.model) for preset in presets()]
    assert len(set(names)) == len(names)
    assert set(published()) <= set(names)
    assert {name for task, name in names if task == "qm9"} == {
        "LieTransformer-T3",
        "LieTransformer-SE3",
        "LieConv-T3",
        "LieConv-SE3",
        "SchNet",
        "DimeNet++",
    }


def settings(preset: Preset) -> dict[str, object]:
    config = preset.config
    assert isinstance(config, LieTransformerConfig)
    return {
        "layers": config.layers,
        "heads": config.heads,
        "width": config.width,
        "kernel": config.attention.kernel_width,
        "attention": (
            config.attention.content,
            config.attention.location,
            config.attention.combination,
            config.attention.normalisation,
        ),
        "lift": (config.lift.scheme, config.lift.samples),
        "ball": config.neighbourhood.ball,
        "samples": config.neighbourhood.samples,
        "pairs": config.pair_features,
        "head": config.head,
        "norm": config.norm,
    }


CONSTELLATIONS = {
    "layers": 10,
    "heads": 8,
    "width": 128,
    "kernel": 12,
    "attention": ("dot_product", "mlp", "additive", "constant"),
    "lift": ("exact", None),
    "ball": None,
    "samples": None,
    "pairs": "log",
    "head": "pool_then_mlp",
    "norm": "layer",
}
SPRINGS = {**CONSTELLATIONS, "layers": 5, "width": 160, "kernel": 16}
SPRINGS_SE2 = {**SPRINGS, "lift": ("subgroup", 2), "pairs": "canonical"}
SMALL = {"layers": 3, "width": 80}
QM9 = {
    **SPRINGS,
    "layers": 13,
    "width": 848,
    "attention": ("linear_concat_linear", "plain", "mlp", "constant"),
    "ball": 50,
    "samples": 25,
    "head": "linear_then_pool",
}
PAPER: dict[tuple[str, str], dict[str, object]] = {
    ("constellations", "LieTransformer-T2"): CONSTELLATIONS,
    ("constellations", "LieTransformer-SE2"): {**CONSTELLATIONS, "lift": ("evenly_spaced", 1)},
    ("springs", "LieTransformer-T2"): SPRINGS,
    ("springs", "LieTransformer-T2 small"): {**SPRINGS, **SMALL},
    ("springs", "LieTransformer-SE2"): SPRINGS_SE2,
    ("springs", "LieTransformer-SE2 small"): {**SPRINGS_SE2, **SMALL},
    ("qm9", "LieTransformer-T3"): QM9,
    ("qm9", "LieTransformer-SE3"): {
        **QM9,
        "layers": 30,
        "lift": ("random", 2),
        "ball": 25,
        "samples": 20,
    },
}


def test_presets_have_the_settings_of_appendix_i() -> None:
    lie_transformers = [p for p in presets() if isinstance(p.config, LieTransformerConfig)]
    assert {(p.task, p.model): settings(p) for p in lie_transformers} == PAPER


def test_counting_without_allocating_counts_the_same() -> None:
    preset = get_preset("springs", "LieTransformer-SE2")
    assert count_parameters(preset.build(seed=0)) == preset.parameter_count


@pytest.mark.parametrize("model", ["LieTransformer-T3", "LieTransformer-SE3"])
def test_qm9_presets_run_at_one_layer(model: str) -> None:
    config = get_preset("qm9", model).config
    assert isinstance(config, LieTransformerConfig)
    cloud = random_cloud(config.group, points=29, dtype=torch.float32)
    features = torch.ones(3, 29, 15)
    lie_transformer = LieTransformer(replace(config, layers=1))
    output = lie_transformer(replace(cloud, features=features), generator=seeded())
    assert output.shape == (3, 1)
    assert output.isfinite().all()


LIE_CONV = {
    ("springs", "LieConv-T2"): LieResNetConfig("T(2)", 2, 1, 384, 4),
    ("springs", "LieConv-T2 small"): LieResNetConfig("T(2)", 2, 1, 192, 3),
    ("springs", "LieConv-SE2"): LieResNetConfig(
        "SE(2)", 2, 1, 384, 4, lift=LiftConfig("subgroup", 2), pair_features="canonical"
    ),
    ("springs", "LieConv-SE2 small"): LieResNetConfig(
        "SE(2)", 2, 1, 192, 3, lift=LiftConfig("subgroup", 2), pair_features="canonical"
    ),
    ("qm9", "LieConv-T3"): LieResNetConfig("T(3)", 15, 1, 1536, 6, norm="batch"),
    ("qm9", "LieConv-SE3"): LieResNetConfig(
        "SE(3)",
        15,
        1,
        1536,
        6,
        lift=LiftConfig("random", 4),
        neighbourhood=NeighbourhoodConfig(samples=25),
        fill=0.5,
        norm="batch",
    ),
}


def test_lie_conv_presets_have_the_settings_of_their_authors() -> None:
    found = {(p.task, p.model): p.config for p in presets() if "LieConv" in p.model}
    assert found == LIE_CONV


def test_the_other_presets_have_the_settings_of_the_paper() -> None:
    """Four hidden layers of 256; four rounds of width 256; and their sizes."""
    found = {p.model: (p.config, p.parameter_count) for p in presets() if not p.group}
    potential = FullyConnectedConfig(6, 2, 2, 1, width=256, layers=4)
    velocity = FullyConnectedConfig(6, 2, 4, 24, width=256, layers=4)
    hogn = GraphNetworkConfig(2, 4, 1, "global", width=256, layers=4)
    ogn = GraphNetworkConfig(2, 4, 4, "node", width=256, layers=4)
    elements = (1, 6, 7, 8, 9)
    assert found == {
        "SetTransformer": (SetTransformerConfig(2, 1, False, 4, 3, 128, 8, 8, 4), 1_075_331),
        "Fully-connected (Hamiltonian)": (potential, 204_033),
        "Fully-connected (direct)": (velocity, 213_016),
        "Graph network (Hamiltonian)": (hogn, 2_961_153),
        "Graph network (direct)": (ogn, 2_961_924),
        "SchNet": (SpecialistConfig("SchNet", elements, 15, 1, 10.0), 455_809),
        "DimeNet++": (SpecialistConfig("DimeNet++", elements, 15, 1, 5.0), 1_885_830),
    }


def test_what_the_models_of_springs_predict() -> None:
    predicts = {p.model: p.predicts for p in presets() if p.task == "springs"}
    others = {name: what for name, what in predicts.items() if not name.startswith("Lie")}
    assert {predicts[name] for name in predicts if name.startswith("Lie")} == {"potential"}
    assert others == {
        "Fully-connected (Hamiltonian)": "potential",
        "Fully-connected (direct)": "velocity",
        "Graph network (Hamiltonian)": "hamiltonian",
        "Graph network (direct)": "velocity",
    }


@pytest.mark.parametrize(
    "preset",
    [p for p in presets() if p.parameter_count < 5_000_000],
    ids=lambda p: f"{p.task} {p.model}",
)
def test_parameters_are_a_function_of_the_seed_alone(preset: Preset) -> None:
    torch.manual_seed(5)
    before = torch.get_rng_state()
    models = [preset.build(seed=seed) for seed in (1, 1, 2)]
    assert torch.equal(torch.get_rng_state(), before)
    first, again, other = (list(model.parameters()) for model in models)
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert not all(torch.equal(a, b) for a, b in zip(first, other, strict=True))


def test_an_unknown_preset_is_answered_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"Use one of constellations/LieTransformer-T2"):
        get_preset("springs", "LieTransformer-T3")
