"""From the computer's memory to a GPU without a pause."""

import torch
from torch import Tensor


def send(tensor: Tensor, device: torch.device | str) -> Tensor:
    """The tensor on a device; if it comes from the CPU, nobody waits for it to arrive.

    A copy out of ordinary memory waits until the GPU has done all that it was told before. One out
    of page-locked memory takes its place behind that, and the next commands can follow at once.
    """
    device = torch.device(device)
    if tensor.device == device:
        return tensor
    if tensor.device.type != "cpu":
        return tensor.to(device)  # what comes back has to be complete before it is looked at
    if device.type == "cuda":
        tensor = tensor.pin_memory()
    return tensor.to(device, non_blocking=True)
