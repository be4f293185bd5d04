"""Examples that lie on a device as a whole are the same batches as those read from the file."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from lietransformer.data.examples import Examples, FirstExamples
from lietransformer.data.loader import Loader
from lietransformer.data.reader import DatasetFile
from lietransformer.data.resident import ResidentExamples, resident, resident_within
from lietransformer.device import send
from lietransformer.experiments.constellations.examples import ConstellationExamples
from lietransformer.experiments.qm9.examples import MoleculeExamples
from lietransformer.experiments.springs.examples import SpringExamples

CPU = torch.device("cpu")


@pytest.fixture(params=["springs", "constellations", "qm9"])
def examples(request: pytest.FixtureRequest) -> Examples[Any]:
    if request.param == "qm9":
        molecules = MoleculeExamples(request.getfixturevalue("real_qm9"), "train")
        return FirstExamples(molecules, 50)
    path: Path = request.getfixturevalue(f"{request.param}_file")
    file = DatasetFile(path)
    if request.param == "springs":
        return SpringExamples(file, "train", n_train=10)
    return FirstExamples(ConstellationExamples(file, "train"), 50)


@pytest.mark.parametrize("augmentation", ["none", "symmetry"])
def test_batches_are_those_of_the_file(examples: Examples[Any], augmentation: Any) -> None:
    if augmentation == "symmetry":
        has_charges = hasattr(examples[0], "charges")
        augmentation = "SO3" if has_charges else "SE2"
    loaders = [
        Loader(source, 4, order_seed=3, augmentation=augmentation, augmentation_seed=5)
        for source in (examples, ResidentExamples(examples, CPU))
    ]
    for epoch in (0, 1):
        for expected, found in zip(*(loader.epoch(epoch) for loader in loaders), strict=True):
            assert vars(found).keys() == vars(expected).keys()
            for name, tensor in vars(expected).items():
                torch.testing.assert_close(getattr(found, name), tensor, rtol=0, atol=0)


def test_what_has_no_room_stays_where_it_is(examples: Examples[Any]) -> None:
    whole = examples.take(np.arange(len(examples)))
    size = sum(tensor.nbytes for tensor in vars(whole).values())
    assert resident_within(examples, CPU, size // 4) is examples
    assert isinstance(resident_within(examples, CPU, 2 * size), ResidentExamples)
    assert resident(examples, CPU) is examples  # there is nothing to gain


def test_a_copy_to_a_gpu_is_queued(monkeypatch: pytest.MonkeyPatch) -> None:
    """Out of page-locked memory, and without waiting; told by what torch is asked for."""
    asked: list[Any] = []
    tensor = torch.ones(2)

    def pinned(self: Tensor) -> Tensor:
        asked.append("pinned")
        return self

    def moved(self: Tensor, device: torch.device, **how: Any) -> Tensor:
        asked.append((str(device), how))
        return self

    monkeypatch.setattr(Tensor, "pin_memory", pinned)
    monkeypatch.setattr(Tensor, "to", moved)
    send(tensor, "cuda")
    assert asked == ["pinned", ("cuda", {"non_blocking": True})]
    asked.clear()
    send(torch.ones(2, device="meta"), "cpu")  # back: it has to be complete when it is looked at
    assert asked == [("cpu", {})]
    asked.clear()
    assert send(tensor, "cpu") is tensor
    assert not asked
