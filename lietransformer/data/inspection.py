"""What `lietransformer data inspect` says and draws of any dataset.

What is particular to one is in the `inspection.py` of its experiment: `describe` and `draw`.
"""

import json
from importlib import import_module
from pathlib import Path
from typing import Protocol, get_args, runtime_checkable

import numpy as np
from matplotlib.figure import Figure

from lietransformer.data.reader import DatasetError, DatasetFile
from lietransformer.experiments.registry import TaskName
from lietransformer.files import cannot_write, complete_or_absent

Lines = list[tuple[str, str]]

# Okabe and Ito's colours, told apart by the colour-blind too; their yellow is too pale on white.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#999933", "#000000")


@runtime_checkable
class Inspection(Protocol):
    """The contents of an experiment's `inspection.py`."""

    def describe(self, file: DatasetFile) -> Lines:
        """What is in the dataset: names and texts."""
        ...

    def draw(self, file: DatasetFile) -> Figure:
        """A page of examples."""
        ...


def describe(file: DatasetFile) -> str:
    """A page of text about a dataset that has been opened and verified."""
    lines = _inspection(file).describe(file)
    size = file.path.stat().st_size
    blocks = [
        f"{file.path}: {file.kind}, {size / 1e6:,.1f} MB, complete and unaltered",
        _aligned(
            [
                ("written by", f"lietransformer {file.package_version}, seed {file.seed}"),
                ("content", f"sha256 {file.content_hash}"),
            ]
        ),
        _aligned(lines),
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


def draw_page(file: DatasetFile, path: Path) -> None:
    """Draw examples of a dataset; the ending of the name says in which format."""
    figure = _inspection(file).draw(file)
    with complete_or_absent(path) as part:
        try:
            figure.savefig(part, format=path.suffix[1:].lower(), dpi=150)
        except OSError as error:
            raise cannot_write(path, error) from error


def spread(values: np.ndarray, form: str = "") -> str:
    """Smallest to largest, and the mean."""
    return f"{values.min():{form}} to {values.max():{form}} (mean {values.mean():.2f})"


def _inspection(file: DatasetFile) -> Inspection:
    kinds = get_args(TaskName)
    if file.kind not in kinds:
        raise DatasetError(
            f"{file.path} has the unknown kind {file.kind}, not one of {', '.join(kinds)}. "
            "Update the package if it is a newer kind."
        )
    return import_module(f"lietransformer.experiments.{file.kind}.inspection")


def _type_name(array: np.ndarray) -> str:
    return f"text of {array.dtype.itemsize}" if array.dtype.kind == "S" else array.dtype.name


def _aligned(lines: Lines) -> str:
    width = max(len(name) for name, _ in lines)
    return "\n".join(f"  {name:<{width}}  {text}" for name, text in lines)
