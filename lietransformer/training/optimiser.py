"""Adam with an average of the weights; its learning rate, and resuming."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

_AVERAGE = "average"


class AveragedAdam(torch.optim.Adam):
    """Adam that also keeps an exponential moving average of the weights.

    The average is part of the state of each parameter, so checkpoints carry it. Buffers, such as
    the moments of batch norm, are not averaged.

    Args:
        parameters: the weights.
        ema: decay of the average, w̄ ← ema·w̄ + (1 − ema)·w after each step.
        others: settings of Adam.
    """

    def __init__(self, parameters: Iterable[Tensor], *, ema: float, **others: Any) -> None:
        super().__init__(parameters, **others)
        self._ema = ema

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        loss = super().step(closure)
        for group in self.param_groups:
            for weight in group["params"]:
                state = self.state[weight]
                if _AVERAGE in state:
                    state[_AVERAGE].lerp_(weight, 1 - self._ema)
                elif state:  # without a gradient so far, a weight is its own average
                    state[_AVERAGE] = weight.clone()
        return loss


def averages(optimiser: torch.optim.Optimizer) -> dict[Tensor, Tensor]:
    """The averages that an optimiser keeps, by parameter; empty where it keeps none."""
    return {p: state[_AVERAGE] for p, state in optimiser.state.items() if _AVERAGE in state}


def set_learning_rate(optimiser: torch.optim.Optimizer, rate: float) -> None:
    """The learning rate of the steps that follow, also of one that has been recorded."""
    (group,) = optimiser.param_groups
    if isinstance(group["lr"], Tensor):
        group["lr"].fill_(rate)
    else:
        group["lr"] = rate


def restore(optimiser: torch.optim.Optimizer, stored: dict[str, Any]) -> None:
    """Load the `state_dict` of an optimiser of the same parameters, maybe from another device.

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
