"""Invented runs that bear each claim out, and runs that refute it."""

from collections.abc import Callable, Mapping
from typing import Any

from lietransformer.analysis.tables.table2 import TASKS
from tests.analysis.synthetic import (
    Results,
    accuracies,
    for_both_weights,
    mae,
    rollout_arrays,
    springs_errors,
)

Build = Callable[[Results], None]
SEEDS = range(3)


def constellations(set_transformer: float, t2: tuple[float, ...], se2: tuple[float, ...]) -> Build:
    """Accuracies of the LieTransformers on the three test sets."""

    def build(results: Results) -> None:
        models = {
            "SetTransformer": (set_transformer,) * 3,
            "LieTransformer-T2": t2,
            "LieTransformer-SE2": se2,
        }
        for model, values in models.items():
            for augmentation in ("none", "T2", "SE2"):
                for seed in SEEDS:
                    results.add(
                        ["constellations"],
                        "constellations",
                        model,
                        augmentation=augmentation,
                        seed=seed,
                        test=accuracies(*values),
                    )

    return build


def invariance(*errors: float) -> Build:
    def build(results: Results) -> None:
        results.add_invariance(
            {
                2**k: [error * (1 + run / 1000) for run in range(20)]
                for k, error in enumerate(errors)
            }
        )

    return build


def molecules(errors: Mapping[str, float]) -> Build:
    """The same error on every task, by model; "+" stands for augmentation."""

    def build(results: Results) -> None:
        for architecture in ("LieTransformer", "LieConv"):
            for name in ("T3", "T3+", "SE3", "SE3+"):
                error = errors.get(f"{architecture}-{name}", errors.get(name, 1.0))
                for task in TASKS:
                    results.add(
                        ["qm9"],
                        "qm9",
                        f"{architecture}-{name.rstrip('+')}",
                        target=task,
                        augmentation="SO3" if name.endswith("+") else "none",
                        # Far below anything quoted, so that the architectures decide.
                        test=mae(error * 1e-3),
                    )

    return build


def springs(size_factors: Mapping[str, float], sizes: tuple[int, ...] = (10, 100, 1000)) -> Build:
    """5-step errors by model."""

    def build(results: Results) -> None:
        for model, error in size_factors.items():
            for size in sizes:
                for seed in SEEDS:
                    results.add(
                        ["data_efficiency"],
                        "springs",
                        model,
                        n_train=size,
                        seed=seed,
                        test=springs_errors(error / size),
                    )

    return build


def rollouts(transformer: float, convolution: float, *, bent: bool = False) -> Build:
    """Errors at the last of 100 steps, trained on 10,000 examples."""

    def build(results: Results) -> None:
        for model, level in (("LieTransformer-T2", transformer), ("LieConv-T2", convolution)):
            steep = bent and model == "LieTransformer-T2"
            for seed in SEEDS:
                results.add(
                    ["data_efficiency"],
                    "springs",
                    model,
                    n_train=10_000,
                    seed=seed,
                    test=for_both_weights(test_long={"mse_last": level}),
                    arrays=rollout_arrays(
                        level, seed=seed, shape=(lambda t: t**0.1) if steep else lambda t: t**2
                    ),
                )

    return build


GOOD_VARIANTS = {
    "LieTransformer-T2 small": 3.0,
    "LieTransformer-T2": 2.0,
    "LieTransformer-SE2 small": 1.0,
    "LieTransformer-SE2": 1.5,
    "LieConv-T2 small": 4.0,
    "LieConv-T2": 5.0,
    "LieConv-SE2 small": 3.0,
    "LieConv-SE2": 3.5,
}


def variants(**changes: float) -> Build:
    """5-step errors of the models of Figure 7; names without signs."""

    def build(results: Results) -> None:
        for model, usual in GOOD_VARIANTS.items():
            error = changes.get(model.replace("-", "_").replace(" ", "_"), usual)
            for seed in SEEDS:
                results.add(
                    ["parameter_efficiency"],
                    "springs",
                    model,
                    n_train=3000,
                    seed=seed,
                    test=springs_errors(error),
                )

    return build


def softmax(error: float) -> Build:
    def build(results: Results) -> None:
        for seed in SEEDS:
            common: Any = {"n_train": 100, "seed": seed}
            results.add(
                ["data_efficiency"],
                "springs",
                "LieTransformer-T2",
                test=springs_errors(1.0),
                **common,
            )
            results.add(
                ["ablations"],
                "springs",
                "LieTransformer-T2",
                ablation="softmax",
                test=springs_errors(error),
                **common,
            )

    return build


def complexity(power: float) -> Build:
    def build(results: Results) -> None:
        measurements = [
            {
                "layer": layer,
                "set_size": size,
                "neighbourhood": neighbourhood,
                "seconds": size**power * neighbourhood,
                "megabytes": size * neighbourhood,
            }
            for layer in ("LieSelfAttention", "LieConv")
            for size in (100, 200, 400)
            for neighbourhood in (10, 20, 40)
        ]
        content = {"schema_version": 2, "measurements": measurements}
        results.add_measurement("complexity", content)

    return build


INVARIANT = ((0.75, 0.75, 0.60), (0.71, 0.71, 0.69))
NON_INVARIANT = {"Graph network (Hamiltonian)": 30.0, "Fully-connected (Hamiltonian)": 100.0}

# For each claim, runs that bear it out and runs that do not.
CASES: dict[int, tuple[Build, Build]] = {
    1: (
        constellations(0.5, *INVARIANT),
        constellations(0.5, (0.75, 0.74, 0.6), (0.71, 0.71, 0.69)),
    ),
    2: (constellations(0.5, *INVARIANT), constellations(0.65, *INVARIANT)),
    3: (
        constellations(0.5, *INVARIANT),
        constellations(0.5, (0.75, 0.75, 0.60), (0.71, 0.71, 0.60)),
    ),
    4: (invariance(1e-2, 1e-3, 1e-4), invariance(1e-2, 1e-4, 1e-3)),
    5: (molecules({"SE3": 0.8}), molecules({"SE3": 0.8, "LieConv-SE3": 1.2})),
    6: (molecules({"SE3+": 1.05}), molecules({"SE3+": 1.05, "LieTransformer-SE3+": 0.8})),
    7: (molecules({"T3+": 0.6}), molecules({"T3+": 0.6, "LieConv-T3+": 0.95})),
    8: (molecules({"LieTransformer-T3+": 0.5}), molecules({"LieConv-T3+": 0.5})),
    9: (molecules({"LieTransformer-SE3": 0.5}), molecules({"LieConv-SE3": 0.5})),
    10: (
        springs({"LieTransformer-T2": 1.0, **NON_INVARIANT}),
        springs({"LieTransformer-T2": 20.0, **NON_INVARIANT}),
    ),
    11: (
        springs({"LieTransformer-T2": 1.0, "LieConv-T2": 2.0}, sizes=(10, 100, 96_000)),
        springs({"LieTransformer-T2": 2.0, "LieConv-T2": 1.0}, sizes=(10, 100, 96_000)),
    ),
    12: (rollouts(8e-4, 3e-3), rollouts(2e-3, 3e-3)),
    13: (rollouts(8e-4, 3e-3), rollouts(8e-4, 3e-3, bent=True)),
    14: (variants(), variants(LieConv_SE2=1.2)),
    15: (variants(), variants(LieTransformer_T2=0.9)),
    16: (variants(), variants(LieConv_T2=3.9)),
    17: (softmax(5.0), softmax(1.5)),
    18: (complexity(1.0), complexity(2.0)),
}
