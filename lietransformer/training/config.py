"""The settings of a run and its model, as `lietransformer train` takes them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from pydantic import Field, model_validator

from lietransformer.errors import UserError
from lietransformer.experiments.preset import Preset
from lietransformer.experiments.registry import get_preset
from lietransformer.settings import read_settings, validated
from lietransformer.training.architecture import changed
from lietransformer.training.compile_policy import (
    can_be_compiled,
    can_be_recorded,
    compilation_pays,
    graphs_pay,
    is_random,
)
from lietransformer.training.settings import Device, RunSettings


class RunConfig(RunSettings):
    """The settings of one run, whose model exists and can be computed as they say."""

    compile: bool = Field(description="compile the model; default: where it pays")
    graphs: bool = Field(
        description="record a step as a CUDA graph and repeat it; default: where it pays"
    )

    @classmethod
    def _completed(cls, given: dict[str, Any]) -> dict[str, Any]:
        if given.get("device") == "auto":
            given = {**given, "device": best_device()}
        settings = super()._completed(given)
        how = {"compile": compilation_pays(settings), "graphs": graphs_pay(settings)}
        return how | settings

    @model_validator(mode="after")
    def _has_a_model(self) -> "RunConfig":
        preset = self.preset()
        if self.compile and not can_be_compiled(preset):
            raise ValueError(
                f"compile: {self.model} draws random numbers, which cannot be compiled"
                if is_random(preset)
                else f"compile: only springs models are compiled, not {self.task} ones"
            )
        if self.graphs and self.device != "cuda":
            raise ValueError("graphs exist on cuda only: leave the setting out")
        if self.graphs and not can_be_recorded(preset):
            raise ValueError(f"graphs: what {self.model} does depends on numbers, not on shapes")
        return self

    def preset(self) -> Preset:
        """The model, with the settings of its architecture that differ from the paper's."""
        return changed(get_preset(self.task, self.model), self.architecture)


def read_runs(path: Path | None, overrides: Sequence[str] = ()) -> tuple[list[RunConfig], bool]:
    """The runs that a YAML file and overrides describe, and whether there may be several.

    `seeds: [0, 1, 2]` in place of `seed` describes one run for each.
    """
    settings = read_settings(path, overrides)
    if "seeds" not in settings:
        return [validated(RunConfig, settings, path, overrides)], False
    seeds = settings.pop("seeds")
    are_numbers = isinstance(seeds, list) and all(type(seed) is int for seed in seeds)
    if not are_numbers or not seeds or len(set(seeds)) < len(seeds) or "seed" in settings:
        beside = " beside a seed" if "seed" in settings else ""
        raise UserError(
            "give either `seed: 0`, or `seeds:` with a list of different whole numbers, for "
            f"example `seeds: [0, 1, 2]`; got seeds: {seeds}{beside}."
        )
    return [validated(RunConfig, {**settings, "seed": n}, path, overrides) for n in seeds], True


def best_device() -> Device:
    """What "auto" stands for on this machine."""
    return "cuda" if torch.cuda.is_available() else "cpu"
