"""A device that nobody may wait for: `meta`, which has no numbers that one could wait for.

What would make a CPU wait for a GPU in a training step either fails there, because the number that
it asks for does not exist, or is seen as a copy between devices.
"""

from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode


class Waited(Exception):
    """An operation that makes the CPU wait for the device."""


class NoWaiting(TorchDispatchMode):
    """Refuses what waits: reading numbers, shapes that depend on them, copies that are not queued.

    Attributes:
        sent: how many tensors were sent to the device in a way that waits for nothing.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.sent = 0

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        name = function._schema.name.removeprefix("aten::")
        devices = {a.device.type for a in args if isinstance(a, torch.Tensor)}
        target = torch.device(kwargs.get("device") or "cpu").type
        if name == "_to_copy" and devices == {"cpu"} and target == "meta":
            if not kwargs.get("non_blocking"):
                raise Waited("a copy to the device that is waited for")
            self.sent += 1
        elif name in ("_local_scalar_dense", "nonzero", "masked_select", "unique") and (
            "meta" in devices
        ):
            raise Waited(name)
        elif name in ("copy_", "lift_fresh") and devices == {"cpu", "meta"}:
            raise Waited(f"{name} between devices")
        elif name in ("index", "index_put", "index_put_") and any(
            index is not None and index.dtype == torch.bool for index in args[1]
        ):
            raise Waited("a mask as an index, whose number of elements has to be known")
        return function(*args, **kwargs)


class NoNewConstants(TorchFunctionMode):
    """Refuses tensors made of Python's numbers on the device: they are copied there."""

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        target = kwargs.get("device")
        if target is None and function is torch.Tensor.new_tensor:
            target = args[0].device
        makers = (torch.tensor, torch.as_tensor, torch.asarray, torch.Tensor.new_tensor)
        if function in makers and torch.device(target or "cpu").type == "meta":
            raise Waited("a tensor on the device, out of ordinary memory")
        if function in (torch.Tensor.__getitem__, torch.Tensor.__setitem__):
            indices = args[1] if isinstance(args[1], tuple) else (args[1],)
            if args[0].device.type == "meta" and any(isinstance(i, list) for i in indices):
                raise Waited("a list as an index, which is copied to the device")
        return function(*args, **kwargs)
