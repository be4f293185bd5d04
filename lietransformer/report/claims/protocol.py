"""In what runs differ from the paper's, and what they amount to."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from lietransformer.experiments.springs.plan import paper_epochs
from lietransformer.files import read_json
from lietransformer.report.claims.samples import Sample, Scale
from lietransformer.report.claims.verdict import Evidence, Needs
from lietransformer.report.runs import Sweep
from lietransformer.report.sizes import springs_configurations

# Fewer than these is a smaller experiment; more is as good.
_SIZES: Mapping[str, Mapping[str, int]] = {
    "constellations": {"training": 10_000, "validation": 1_000, "test": 1_000},
    "springs": {"systems": 100_000, "validation": 2_000, "test": 2_000},
    "qm9": {"training": 100_000, "validation": 17_748, "test": 13_083},
}
_CONVERGED = {"epochs": 300, "patience": 30}  # ours for "until convergence" (constellations)
# Any other value is another setting than the paper's.
_COMMON = {"amsgrad": False, "ema": None, "size_pool": 1, "precision": "float32"}
_TRAINING: Mapping[str, Mapping[str, Any]] = {
    "constellations": {
        **{"batch_size": 32, "learning_rate": 1e-4, "betas": (0.5, 0.9)},
        **{"schedule": "constant"},
    },
    "springs": {
        **{"learning_rate": 1e-3, "betas": (0.9, 0.999), "augmentation": "none"},
        **{"schedule": "cosine", "schedule_per": "epoch", "draw": 0},
    },
    "qm9": {
        **{"epochs": 500, "batch_size": 75, "learning_rate": 3e-4, "betas": (0.5, 0.9)},
        **{"schedule": "cosine_warmup", "schedule_per": "step", "warmup": 0.01},
    },
}
_CONVOLUTION_ON_QM9 = {"learning_rate": 3e-3, "betas": (0.9, 0.999)}
DATA: Mapping[str, Mapping[str, Any]] = {
    "constellations": {
        **{"variant": "release", "repetitions": 2, "keep_probability": 0.5, "rotation": 0.33},
        **{"upscale": 0.0, "field": 24.0, "noise": 0.1},
    },
    "springs": {
        **{"particles": 6, "dimension": 2, "states": 500, "duration": 5.0},
        **{"chunk": 5, "long_chunk": 100, "generation_batch": 5_000},
    },
    "qm9": {"test_fraction": 0.1, "limit": None},
}
# What an ablation changes is not a difference.
_ABLATED = {"softmax": ("attention", "normalisation"), "log_lift": ("pair_features",)}

Chosen = Mapping[Any, tuple[str, pd.DataFrame, str]]
Difference = tuple[str, Any, Any]  # what, ours, the paper's


def springs_needs(
    models: Iterable[str],
    sizes: Sequence[int],
    seeds: int,
    what: str,
    ablations: Sequence[str | None] = (None,),
) -> Needs:
    """Models × sizes × seeds on springs, at the paper's scale."""
    listed = [*models]
    labels = [own for kind in ablations for own in springs_configurations(listed, sizes, kind)]
    epochs = _range(paper_epochs(size) for size in sizes)
    words = f"{len(labels) * seeds} runs of {epochs} epochs on {_range(sizes)} systems"
    return Needs(f"{words} ({what} × {seeds} seeds)", labels, seeds)


def collect(
    sweep: Sweep, chosen: Chosen, scale: Scale, seeds: int, reductions: Iterable[str] = ()
) -> Evidence:
    """Samples of the cells that were run; `chosen` has name, runs and metric of each."""
    samples = {cell: Sample.of(*own, scale) for cell, own in chosen.items()}
    cells = {cell: sample for cell, sample in samples.items() if sample.values}
    frames = [chosen[cell][1] for cell in cells]
    return evidence_of(sweep, cells, frames, seeds, reductions)


def evidence_of(
    sweep: Sweep,
    cells: Mapping[Any, Sample],
    frames: list[pd.DataFrame],
    seeds: int,
    reductions: Iterable[str] = (),
) -> Evidence:
    """Evidence from the runs that have ended among these; the paper has this many seeds."""
    if not cells:
        return Evidence({})
    runs = pd.concat(frames)
    runs = runs[runs["status"].isin(["finished", "diverged"])]
    runs = runs[~runs.index.duplicated()]
    fewest = min(len(own.values) for own in cells.values())
    fewer = [f"{_seeds(fewest)} instead of {seeds}"] if fewest < seeds else []
    return Evidence(cells, rests_on(runs), (*reductions, *fewer, *differences(sweep, runs)))


def rests_on(runs: pd.DataFrame) -> str:
    """Runs, seeds and sizes in words."""
    seeds = runs.groupby(["model", "n_train", "target", "augmentation", "ablation"], dropna=False)[
        "seed"
    ].nunique()
    fewest, largest = int(seeds.min()), int(seeds.max())
    parts = [f"{len(runs)} run{'s' if len(runs) != 1 else ''}"]
    lost = int((runs["status"] == "diverged").sum())
    parts[0] += f" ({lost} diverged)" if lost else ""
    between = "" if fewest == largest else f"{fewest} to "
    parts.append(f"{between}{_seeds(largest)} each")
    published = int((runs["source"] == "published").sum())
    if published:
        parts.append("all published" if published == len(runs) else f"{published} published")
    if (runs["task"] == "springs").all():
        sizes = sorted({int(size) for size in runs["n_train"].dropna()})
        parts.append(f"n = {', '.join(f'{size:,}' for size in sizes)}")
    targets = sorted({str(target) for target in runs["target"].dropna()})
    if targets:
        parts.append(targets[0] if len(targets) == 1 else f"{len(targets)} tasks")
    return ", ".join(parts)


def differences(sweep: Sweep, runs: pd.DataFrame) -> list[str]:
    """In what these runs differ from the paper's, a phrase for each kind."""
    smaller: dict[str, set[tuple[Any, Any]]] = {}
    other: dict[str, set[tuple[Any, Any]]] = {}
    phrases: list[str] = []
    for run in runs.itertuples():
        folder = sweep.results / str(run.folder)
        config = (read_json(folder / "config.json") or {}).get("config")
        if not isinstance(config, dict):
            phrases.append("settings that were not recorded")
            continue
        result = read_json(folder / "result.json") or {}
        data = _data(sweep, str(run.task), result.get("dataset_hash"))
        if data is None:
            phrases.append("the dataset's settings are not known")
        missing = [name for name in _training(config) if name not in config]
        if missing:
            phrases.append(f"not recorded: {', '.join(missing).replace('_', ' ')}")
        for found, own in (
            (smaller, _smaller(config, result, data or {})),
            (other, _other(config, data or {})),
        ):
            for kind, ours, paper in own:
                found.setdefault(kind, set()).add((ours, paper))
        architecture = _architecture(config, run.ablation)
        phrases += [f"{config.get('model')} with {architecture}"] if architecture else []
    less = [f"{ours} {kind} instead of {paper}" for kind, ours, paper in _ranges(smaller)]
    changed = ", ".join(f"{kind} {ours} instead of {paper}" for kind, ours, paper in _ranges(other))
    return [
        *less,
        *dict.fromkeys(phrases),
        *([f"other settings than the paper's: {changed}"] if changed else []),
    ]


def _data(sweep: Sweep, task: str, content_hash: str | None) -> Mapping[str, Any] | None:
    """The settings of a dataset that differ from the defaults: as planned, or by its hash."""
    if task in sweep.config:
        return (sweep.config[task] or {}).get("data") or {}
    for known in sweep.archive.manifest["datasets"].values():
        if (known["kind"], known["content_hash"]) == (task, content_hash):
            return dict(known["settings"])
    return None


def _smaller(
    config: Mapping[str, Any], result: Mapping[str, Any], data: Mapping[str, Any]
) -> Iterator[Difference]:
    """What there is less of."""
    task = config["task"]
    for kind, paper in _SIZES[task].items():
        asked = config.get("n_train" if kind == "training" else f"{kind}_examples")
        made = data.get("train" if kind == "training" else kind)
        ours = min(asked or paper, made or paper)
        if ours < paper:
            yield kind if kind == "systems" else f"{kind} examples", ours, paper
    if task == "constellations":
        yield from _not_converged(config, result)
    else:
        epochs = _training(config)["epochs"]
        if config.get("epochs", epochs) < epochs:
            yield "epochs", config["epochs"], epochs
    evaluations = 100 if task == "springs" else config.get("epochs", 1)
    if config.get("evaluations", evaluations) < evaluations:
        yield "evaluations", config["evaluations"], evaluations


def _not_converged(config: Mapping[str, Any], result: Mapping[str, Any]) -> Iterator[Difference]:
    epochs, patience = config.get("epochs", math.inf), config.get("patience")
    if result.get("stopped_early"):
        if patience is not None and patience < _CONVERGED["patience"]:
            yield "epochs of patience", patience, _CONVERGED["patience"]
    elif epochs < _CONVERGED["epochs"]:
        yield "epochs at most", epochs, _CONVERGED["epochs"]


def _training(config: Mapping[str, Any]) -> dict[str, Any]:
    """The paper's settings of training."""
    task, size = config["task"], int(config.get("n_train") or 100)
    expected = {**_COMMON, **_TRAINING[task]}
    if task == "springs":
        expected |= {"epochs": paper_epochs(size), "batch_size": min(100, size)}
    elif str(config.get("model")).startswith("LieConv"):
        expected |= _CONVOLUTION_ON_QM9
    return expected


def _other(config: Mapping[str, Any], data: Mapping[str, Any]) -> Iterator[Difference]:
    """What is not smaller, but has another value."""
    for given, expected in ((config, _training(config)), (data, DATA[config["task"]])):
        for name, paper in expected.items():
            ours = _value(given.get(name, paper))
            is_better = (name == "precision" and ours == "float64") or (
                name == "epochs" and ours < paper  # said elsewhere
            )
            if not is_better and ours != paper:
                yield name.replace("_", " "), ours, paper


def _value(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _architecture(config: Mapping[str, Any], ablation: Any) -> str:
    """Settings of the model that differ from the paper's, except what the ablation changes."""
    changed = {**(config.get("architecture") or {})}
    path = _ABLATED.get(str(ablation), ())
    if path:
        inner = changed.pop(path[0], None)
        if len(path) > 1 and isinstance(inner, dict):
            rest = {name: value for name, value in inner.items() if name != path[1]}
            changed |= {path[0]: rest} if rest else {}
    return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in changed.items())


def _ranges(found: Mapping[str, set[tuple[Any, Any]]]) -> Iterator[tuple[str, str, str]]:
    for kind, pairs in found.items():
        yield kind, _range(ours for ours, _ in pairs), _range(paper for _, paper in pairs)


def _range(values: Iterable[Any]) -> str:
    """Numbers from the lowest to the highest, others one by one."""
    different = set(values)
    if not all(isinstance(value, int | float) for value in different):
        return " and ".join(sorted("none" if own is None else str(own) for own in different))
    known = sorted(different)
    ends = [known[0]] if len(known) == 1 else [known[0], known[-1]]
    return "–".join(f"{value:,}" if value >= 1 else f"{value:g}" for value in ends)


def _seeds(count: int) -> str:
    return f"{count} seed{'s' if count != 1 else ''}"
