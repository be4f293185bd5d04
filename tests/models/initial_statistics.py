"""The scale of everything in the paper's models before training, as a committed table.

At initialisation these were compared layer by layer with the authors' release. A change of the
initialisation, of a unit or of a normalisation moves them, and training with them, without any
other test failing. After such a change that is meant:

    python -m tests.models.initial_statistics

writes the table anew.
"""

import csv
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from lietransformer.clouds import PointCloud
from lietransformer.experiments.constellations.dataset import draw
from lietransformer.experiments.constellations.plan import ConstellationsConfig
from lietransformer.experiments.preset import Preset
from lietransformer.experiments.registry import presets
from lietransformer.experiments.springs.task import SpringsTask
from lietransformer.models import LieResNet, LieTransformer
from lietransformer.models.lie_resnet import BottleneckBlock
from lietransformer.models.specialists import SpecialistConfig
from lietransformer.nn.block import LieTransformerBlock
from lietransformer.nn.scores import PairwiseSum
from lietransformer.rng import stream

TABLE = Path(__file__).with_name("initial_statistics.csv")
SEEDS = 5
_LAYERS_FOR_MOLECULES = 2  # of 6 to 30 that start alike, to keep the test short

Statistics = dict[str, float]


def own_presets() -> list[Preset]:
    """The paper's models that are written here; those for QM9 with fewer layers."""
    found = [p for p in presets() if not isinstance(p.config, SpecialistConfig)]
    return [
        replace(p, config=replace(p.config, layers=_LAYERS_FOR_MOLECULES))  # type: ignore[arg-type]
        if p.task == "qm9"
        else p
        for p in found
    ]


def statistics_of(preset: Preset) -> Statistics:
    """Standard deviations over all entries and layers, averaged over the seeds."""
    by_seed = [_one_seed(preset, seed) for seed in range(SEEDS)]
    return {name: sum(own[name] for own in by_seed) / SEEDS for name in by_seed[0]}


def _one_seed(preset: Preset, seed: int) -> Statistics:
    model = preset.build(seed=seed).eval()
    generator = stream(0, "initial statistics")
    cloud, momenta = _INPUTS[preset.task](generator)
    found: Statistics = {}
    if preset.task == "springs":
        found["force"] = _force(preset, model, cloud, momenta).std().item()
    if not isinstance(model, LieTransformer | LieResNet):
        return found | ({} if found else {"output": model(cloud).std().item()})
    seen: dict[str, list[float]] = {}

    def watch(module: nn.Module, name: str) -> None:
        def add(_: nn.Module, inputs: tuple[Any, ...], output: Tensor | PairwiseSum) -> None:
            values = output.expand(inputs[-1]) if isinstance(output, PairwiseSum) else output
            seen.setdefault(name, []).append(values.std().item())

        module.register_forward_hook(add)

    for block in model.blocks:
        for name, part in _parts(block):
            watch(part, name)
    lifted = model.lift(cloud, generator=generator)
    pairs = model.pairs(lifted, generator=generator)
    with torch.no_grad():
        output = model.forward_pairs(lifted.features, lifted.mask, pairs)
    found["pair features"] = pairs[0].coordinates.std().item()
    found |= {name: sum(values) / len(values) for name, values in seen.items()}
    found["output"] = output.std().item()
    return found


def _parts(block: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    if isinstance(block, LieTransformerBlock):
        attention = block.attention
        yield "content score", attention.content
        yield "location score", attention.location
        yield "combined score", attention.combination
        yield "attention output", attention
    else:
        assert isinstance(block, BottleneckBlock)
        yield "kernel", block.convolution.weight_net
        yield "convolution output", block.convolution
    yield "block output", block


def _force(preset: Preset, model: nn.Module, cloud: PointCloud, momenta: Tensor) -> Tensor:
    masses, stiffness = cloud.features.unbind(-1)
    field = SpringsTask(preset.predicts, 5 / 499).predictor(model)  # type: ignore[arg-type]
    state = torch.stack([cloud.positions, momenta], dim=1)
    return field(state, masses, stiffness)[:, 1].detach()


# Inputs of the size and scale of each task's.


def _constellations(generator: torch.Generator) -> tuple[PointCloud, Tensor]:
    config = ConstellationsConfig(keep_probability=1.0)
    positions = draw(config, 8, generator=generator).positions.float()
    return PointCloud(positions), torch.empty(0)


def _springs(generator: torch.Generator) -> tuple[PointCloud, Tensor]:
    masses = 0.1 + 3 * torch.rand(20, 6, generator=generator)
    stiffness = 5 * torch.rand(20, 6, generator=generator)
    positions = 0.4 * torch.randn(20, 6, 2, generator=generator)
    momenta = 0.6 * torch.randn(20, 6, 2, generator=generator)
    return PointCloud(positions, torch.stack([masses, stiffness], dim=-1)), momenta


def _molecules(generator: torch.Generator) -> tuple[PointCloud, Tensor]:
    """18 atoms, the mean of QM9, as far apart as in its molecules; half of them hydrogen."""
    charges = torch.tensor([1, 6, 7, 8, 9])
    element = torch.multinomial(
        torch.tensor([9.2, 6.3, 1.0, 1.4, 0.02]), 4 * 18, replacement=True, generator=generator
    ).view(4, 18)
    one_hot = torch.nn.functional.one_hot(element, 5).float()
    c = charges[element][..., None, None].float() / 9
    powers = torch.cat([torch.ones_like(c), c, c**2], dim=-1)
    features = (one_hot[..., None] * powers).flatten(2)
    positions = 1.4 * torch.randn(4, 18, 3, generator=generator)
    return PointCloud(positions, features), torch.empty(0)


_INPUTS: dict[str, Callable[[torch.Generator], tuple[PointCloud, Tensor]]] = {
    "constellations": _constellations,
    "springs": _springs,
    "qm9": _molecules,
}


def read_table() -> dict[tuple[str, str], Statistics]:
    """The committed numbers by task and model."""
    table: dict[tuple[str, str], Statistics] = {}
    with TABLE.open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            own = table.setdefault((row["task"], row["model"]), {})
            own[row["quantity"]] = float(row["std"])
    return table


def write_table() -> None:
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["task", "model", "quantity", "std"])
        for preset in own_presets():
            for quantity, value in statistics_of(preset).items():
                assert math.isfinite(value)
                writer.writerow([preset.task, preset.model, quantity, f"{value:.4g}"])


if __name__ == "__main__":
    write_table()
