"""What settings choose by themselves: whether to compile a model, and whether to record steps."""

import math
from typing import Any

from lietransformer.experiments.preset import Preset
from lietransformer.experiments.registry import get_preset
from lietransformer.kernels.dispatch import replaces_potential
from lietransformer.models.specialists import SpecialistConfig
from lietransformer.training.architecture import changed

# A springs model takes a minute or two to compile, and saves about half of each step's time
# (benchmarks/train_step.py). Compiled code of other tasks was slower than plain torch, and that of
# springs models slower than the passes written for them.
_STEPS_THAT_PAY = 1_500


def compilation_pays(given: dict[str, Any]) -> bool:
    """Whether a run of these settings gains from compiling its model."""
    if given["task"] != "springs":
        return False
    try:
        steps = given["epochs"] * math.ceil(given["n_train"] / given["batch_size"])
        preset = changed(get_preset("springs", given["model"]), given.get("architecture", {}))
        on_cpu = given.get("device", "cpu") == "cpu"
        in_single = given.get("precision", "float32") == "float32"
        if on_cpu and in_single and replaces_potential(preset.config):
            return False
        return bool(steps >= _STEPS_THAT_PAY) and can_be_compiled(preset)
    except (KeyError, TypeError, ValueError, ZeroDivisionError, AttributeError):
        return False  # the ordinary checks will say what is wrong


def graphs_pay(given: dict[str, Any]) -> bool:
    """Whether to record steps: on a GPU, where it is possible.

    Every step of these models is many short operations, and runs have thousands of steps.
    """
    if given.get("device") != "cuda":
        return False
    try:
        preset = get_preset(given["task"], given["model"])
        return can_be_recorded(changed(preset, given.get("architecture", {})))
    except (KeyError, TypeError, ValueError, AttributeError):
        return False  # the ordinary checks will say what is wrong


def can_be_recorded(preset: Preset) -> bool:
    """Whether a step is the same operations for every batch of a shape, and no others."""
    draws_within_the_step = preset.task == "springs" and is_random(preset)
    return not isinstance(preset.config, SpecialistConfig) and not draws_within_the_step


def can_be_compiled(preset: Preset) -> bool:
    """Whether a model can be compiled for its task."""
    return preset.task == "springs" and not is_random(preset)


def is_random(preset: Preset) -> bool:
    """Whether a model draws random numbers."""
    parts = (getattr(preset.config, name, None) for name in ("lift", "neighbourhood"))
    return any(part is not None and part.is_random for part in parts)
