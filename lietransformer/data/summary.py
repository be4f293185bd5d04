"""A text summary of a dataset."""

import json
from collections.abc import Callable

import numpy as np
import torch

from lietransformer.data.reader import DatasetError, DatasetFile
from lietransformer.data.splits import largest_training_set
from lietransformer.dynamics import SpringSystem, systems_last
from lietransformer.experiments.constellations import dataset as constellations
from lietransformer.experiments.constellations.plan import TEST_SETS
from lietransformer.experiments.qm9 import dataset as qm9
from lietransformer.experiments.qm9.properties import ELEMENTS, PROPERTIES
from lietransformer.experiments.springs import dataset as springs

Lines = list[tuple[str, str]]


def describe(file: DatasetFile) -> str:
    """A page of text about a dataset that has been opened and verified."""
    if file.kind not in _DESCRIPTIONS:
        raise DatasetError(
            f"{file.path} has the unknown kind {file.kind}, not one of {', '.join(_DESCRIPTIONS)}. "
            "Update the package if it is a newer kind."
        )
    size = file.path.stat().st_size
    blocks = [
        f"{file.path}: {file.kind}, {size / 1e6:,.1f} MB, complete and unaltered",
        _aligned(
            [
                ("written by", f"lietransformer {file.package_version}, seed {file.seed}"),
                ("content", f"sha256 {file.content_hash}"),
            ]
        ),
        _aligned(_DESCRIPTIONS[file.kind](file)),
        "settings\n" + _aligned([(key, json.dumps(v)) for key, v in file.config.items()]),
        "arrays\n"
        + _aligned(
            [
                (name, f"{' × '.join(f'{n:,}' for n in array.shape)}  {_type_name(array)}")
                for name in file.names
                for array in [file.array(name)]
            ]
        ),
    ]
    return "\n\n".join(blocks)


def _constellations(file: DatasetFile) -> Lines:
    lines: Lines = []
    for split in constellations.SPLITS:
        mask = file.array(f"{split}/mask")
        lines.append((split, f"{len(mask):,} examples of {_spread(mask.sum(axis=1))} vertices"))
    for name, copies in TEST_SETS.items():
        if name != "test":
            motion = _motion(file.array(f"{name}/transformation"))
            what = "the test examples, and the same" if copies == 2 else "the test examples"
            lines.append((name, f"{what} {motion}"))
    counts = file.array("train/counts")
    for column, pattern in enumerate(constellations.PATTERNS):
        shares = np.bincount(counts[:, column], minlength=file.config["repetitions"] + 1)
        text = ", ".join(f"{n}: {share / len(counts):.1%}" for n, share in enumerate(shares))
        lines.append((pattern, f"in training examples {text}"))
    return lines


def _motion(elements: np.ndarray) -> str:
    shift = np.abs(elements[:, :2, 2]).max()
    angle = np.degrees(np.arctan2(elements[:, 1, 0], elements[:, 0, 0]))
    turned = "rotated by any angle" if angle.any() else "not rotated"
    return f"translated by up to {shift:.1f} along an axis, {turned}"


def _springs(file: DatasetFile) -> Lines:
    config = springs.config_of(file)
    largest = largest_training_set(config.systems, config.validation, config.test)
    masses = torch.from_numpy(np.array(file.array("systems/masses")))
    stiffness = torch.from_numpy(np.array(file.array("systems/stiffness")))
    whole = torch.from_numpy(np.array(file.array("test/trajectories")[:, [0, -1]]))
    tested = SpringSystem(masses[-config.test :].T, stiffness[-config.test :].T)
    first, last = (tested.energy(systems_last(whole[:, time])) for time in (0, 1))
    drift = ((last - first) / first).abs()
    return [
        (
            "systems",
            f"{config.systems:,} of {config.particles} particles in {config.dimension} dimensions",
        ),
        ("masses", f"{_spread(masses.numpy(), '.2f')}"),
        ("stiffness", f"{_spread(stiffness.numpy(), '.2f')} (a spring is the product of two)"),
        (
            "integration",
            f"{config.states} states from t = 0 to {config.duration:g}, "
            f"3/8-rule Runge–Kutta, step {config.step:.6g}, float64",
        ),
        (
            "energy drift",
            f"over a test trajectory, relative: median {drift.median():.1e}, "
            f"largest {drift.max():.1e}",
        ),
        ("training", f"the first n systems, n ≤ {largest:,}; one chunk of {config.chunk} states"),
        (
            "validation",
            f"min(n, {config.validation:,}) systems before the test systems, likewise",
        ),
        (
            "test",
            f"the last {config.test:,} systems: chunks of {config.chunk} and of "
            f"{config.long_chunk} states, and whole trajectories",
        ),
    ]


def _qm9(file: DatasetFile) -> Lines:
    sizes = np.diff(file.array("molecules/offsets"))
    charges = file.array("atoms/charges")
    elements = ", ".join(f"{n} {np.mean(charges == z):.1%}" for n, z in ELEMENTS.items())
    parts = (f"{name} {len(file.array(f'split/{name}')):,}" for name in _SPLITS)
    lines = [
        ("molecules", f"{len(sizes):,} of {_spread(sizes)} atoms"),
        ("atoms", f"{len(charges):,}: {elements}"),
        ("split", ", ".join(parts)),
    ]
    mean, std = file.array("statistics/train_mean"), file.array("statistics/train_std")
    for prop, m, s in zip(PROPERTIES, mean, std, strict=True):
        lines.append((prop.name, f"{m:,.2f} ± {s:,.2f} {prop.unit}"))
    return lines


_SPLITS = ("train", "validation", "test")
_DESCRIPTIONS: dict[str, Callable[[DatasetFile], Lines]] = {
    constellations.KIND: _constellations,
    springs.KIND: _springs,
    qm9.KIND: _qm9,
}


def _spread(values: np.ndarray, form: str = "") -> str:
    """Smallest to largest, and the mean."""
    return f"{values.min():{form}} to {values.max():{form}} (mean {values.mean():.2f})"


def _type_name(array: np.ndarray) -> str:
    return f"text of {array.dtype.itemsize}" if array.dtype.kind == "S" else array.dtype.name


def _aligned(lines: Lines) -> str:
    width = max(len(name) for name, _ in lines)
    return "\n".join(f"  {name:<{width}}  {text}" for name, text in lines)
