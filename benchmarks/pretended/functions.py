"""Functions of torch beyond their calls of aten: moves between devices, and where new tensors stand."""

from __future__ import annotations

from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from benchmarks.pretended.tensor import CUDA, Inside, Mixed, OnDevice, dispatched, on_cuda

MAKERS = frozenset({torch.tensor, torch.as_tensor, torch.asarray})
FACTORIES = frozenset(
    {torch.zeros, torch.ones, torch.full, torch.empty, torch.arange, torch.eye, torch.linspace, torch.scalar_tensor}
)
DEVICE_OF = torch.Tensor.device.__get__
IS_CUDA = torch.Tensor.is_cuda.__get__
DATA_OF = torch.Tensor.data.__get__


class Calls(TorchDispatchMode):
    """Sees calls of aten that no tensor of the device takes part in: factories, and generators."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return dispatched(func, args, kwargs or {})


class Functions(TorchFunctionMode):
    """Sees functions of torch before they reach aten."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return called(func, args, kwargs or {})


class ToDevice(torch.autograd.Function):
    """A copy to the device, whose gradient comes back."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        OnDevice.counts.copy()
        return OnDevice(x.detach().clone())

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        return moved(gradient, False)


class ToHost(torch.autograd.Function):
    """A copy to the host, whose gradient goes back to the device."""

    @staticmethod
    def forward(ctx: Any, x: OnDevice) -> torch.Tensor:
        OnDevice.counts.sync("copy to the host")
        return x.inner.clone()

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        return moved(gradient, True)


def moved(x: torch.Tensor, to_device: bool) -> torch.Tensor:
    """Return ``x`` on the device or on the host: itself where it stands there."""
    if to_device == isinstance(innermost(x), OnDevice):
        return x
    found: torch.Tensor = (ToDevice if to_device else ToHost).apply(x)
    return found


def innermost(x: torch.Tensor) -> torch.Tensor:
    """Return the tensor below the layers of ``torch.func``."""
    while torch._C._functorch.is_functorch_wrapped_tensor(x):
        x = torch._C._functorch.get_unwrapped(x)
    return x


def called(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Answer a call of ``func``, a function of torch or a method of tensors."""
    if func in (DEVICE_OF, IS_CUDA):
        here = isinstance(innermost(args[0]), OnDevice)
        if here:
            return CUDA if func == DEVICE_OF else True
    elif func == DATA_OF and isinstance(args[0], OnDevice):
        return args[0].detach()
    elif func in ANSWERED:
        return ANSWERED[func](*args, **kwargs)
    elif func in MAKERS and (on_cuda(kwargs.get("device")) or isinstance(args[0], OnDevice)):
        return made(func, *args, **kwargs)
    elif func is torch.Tensor.new_tensor and isinstance(innermost(args[0]), OnDevice):
        return made(torch.tensor, args[1], **{"dtype": args[0].dtype, "device": CUDA} | kwargs)
    mine = holds_mine(args) or holds_mine(kwargs.values())
    check_generators(args, kwargs, mine or on_cuda(kwargs.get("device")))
    before, Inside.device = Inside.device, mine and func not in FACTORIES
    try:
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **kwargs)
    finally:
        Inside.device = before
        resized(kwargs.get("out"))


def check_generators(args: Any, kwargs: dict[str, Any], here: bool) -> None:
    """Refuse a generator of the other device; ``here``: work is done on the device."""
    for generator in (*args, *kwargs.values()):
        if isinstance(generator, torch._C.Generator) and getattr(generator, "pretended", False) != here:
            asked, given = ("cuda", "cpu") if here else ("cpu", "cuda")
            raise Mixed(f"Expected a {asked!r} device type for generator but found {given!r}")


def holds_mine(values: Any) -> bool:
    """Say whether tensors of the device are among ``values``, or in lists there."""
    for value in values:
        if isinstance(value, torch.Tensor):
            if isinstance(innermost(value), OnDevice):
                return True
        elif isinstance(value, list | tuple) and holds_mine(value):
            return True
    return False


def resized(out: Any) -> None:
    """Let tensors of the device that were handed in as ``out`` have the size that their values have got."""
    for tensor in out if isinstance(out, list | tuple) else (out,):
        if isinstance(tensor, OnDevice) and tensor.size() != tensor.inner.size():
            torch.utils.swap_tensors(tensor, OnDevice(tensor.inner))


def made(func: Any, data: Any, *args: Any, **kwargs: Any) -> torch.Tensor:
    """Return a new tensor of the device from numbers or an array of the host."""
    device = kwargs.pop("device", None)
    if isinstance(data, OnDevice):
        return to(data, *args, **({"device": device} if device is not None else {}), **kwargs)
    OnDevice.counts.copy()
    return OnDevice(func(data, *args, **kwargs))


def to(x: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
    """``Tensor.to``: to a device, a dtype, both, or those of another tensor."""
    rest, device = list(args), kwargs.pop("device", None)
    if rest and isinstance(rest[0], torch.Tensor):
        other = rest.pop(0)
        device, rest = other.device, [other.dtype, *rest]
    elif rest and (rest[0] is None or isinstance(rest[0], str | torch.device | int)):
        device = rest.pop(0)
    rest = [value for value in rest if value is not None]
    found = x if device is None else moved(x, on_cuda(device))
    if not rest and not any(value is not None for value in kwargs.values()):
        return found
    flags = {key: value for key, value in kwargs.items() if value is not None and key != "non_blocking"}
    dtype = next((value for value in rest if isinstance(value, torch.dtype)), flags.pop("dtype", found.dtype))
    with torch._C.DisableTorchFunctionSubclass():
        return torch.Tensor.to(found, dtype, **flags)


def cpu(x: torch.Tensor, memory_format: Any = None) -> torch.Tensor:
    """``Tensor.cpu``."""
    return moved(x, False)


def cuda(x: torch.Tensor, device: Any = None, non_blocking: bool = False, memory_format: Any = None) -> torch.Tensor:
    """``Tensor.cuda``."""
    return moved(x, True)


def pin_memory(x: torch.Tensor, device: Any = None) -> torch.Tensor:
    """``Tensor.pin_memory``: pinned or not, the values are the same."""
    return x


def type_as(x: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """``Tensor.type_as``."""
    return to(x, other)


RUN_BACKWARD = torch.autograd._engine_run_backward


def run_backward(*args: Any, **kwargs: Any) -> Any:
    """Run autograd's engine: hooks on the way call functions as other code does."""
    with Functions():
        return RUN_BACKWARD(*args, **kwargs)


ANSWERED: dict[Any, Any] = {
    torch.Tensor.to: to,
    torch.Tensor.cpu: cpu,
    torch.Tensor.cuda: cuda,
    torch.Tensor.pin_memory: pin_memory,
    torch.Tensor.type_as: type_as,
    torch.Tensor.tolist: lambda x: x.tolist() if not isinstance(x, OnDevice) else OnDevice.tolist(x),
}

OnDevice.functions = staticmethod(called)
