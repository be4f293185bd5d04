"""The optimiser between steps and between sessions: its learning rate, and going on."""

from typing import Any

import torch
from torch import Tensor


def set_learning_rate(optimiser: torch.optim.Optimizer, rate: float) -> None:
    """The learning rate of the steps that follow, also of one that has been recorded."""
    (group,) = optimiser.param_groups
    if isinstance(group["lr"], Tensor):
        group["lr"].fill_(rate)
    else:
        group["lr"] = rate


def restore(optimiser: torch.optim.Optimizer, stored: dict[str, Any]) -> None:
    """Go on from the `state_dict` of an optimiser of the same parameters, maybe elsewhere.

    Averages, count of steps and learning rate have the values that were stored. Where and as what
    they are kept is up to the optimiser: a recorded step reads a learning rate that lies beside the
    parameters, but takes one in the memory of the CPU for a constant. PyTorch would move the
    averages and leave the learning rate where the file was read to.
    """
    (own,) = optimiser.state_dict()["param_groups"]
    (others,) = stored["param_groups"]
    group = {**own, "params": others["params"]}
    optimiser.load_state_dict({**stored, "param_groups": [group]})
    set_learning_rate(optimiser, float(others["lr"]))
