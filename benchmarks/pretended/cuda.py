"""``torch.cuda`` as it answers where there is one GPU, for as long as the pretended device is there."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch
from torch.optim.optimizer import _foreach_supported_types as OF_OPTIMIZERS
from torch.utils._foreach_utils import _foreach_supported_types as OF_GRADIENTS

from audits.training import backward
from benchmarks.pretended.counts import Counts
from benchmarks.pretended.functions import Calls, Functions, run_backward
from benchmarks.pretended.recordings import Again
from benchmarks.pretended.tensor import OnDevice, Room, on_cuda

MEMORY = 24 * 2**30
NAME = "pretended GPU"


class Generator(torch._C.Generator):
    """A generator of the CPU or of the pretended device, which has numbers of its own there as well."""

    pretended: bool

    def __new__(cls, device: Any = "cpu") -> Generator:
        made = super().__new__(cls, "cpu")
        made.pretended = on_cuda(device)
        return made

    @property
    def device(self) -> torch.device:
        """The device that it serves."""
        return torch.device("cuda", 0) if self.pretended else torch.device("cpu")


class DefaultGenerator:
    """The device's own generator: that of the CPU draws for it."""

    def manual_seed(self, seed: int) -> DefaultGenerator:
        torch.default_generator.manual_seed(seed)
        return self

    def get_state(self) -> torch.Tensor:
        return torch.get_rng_state()

    def set_state(self, state: torch.Tensor) -> None:
        torch.set_rng_state(state)


class Moment:
    """A stream or an event: work on the CPU is done when it is asked for, so that there is nothing to wait for."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def __enter__(self) -> Moment:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def record(self, stream: Any = None) -> None:
        pass

    def wait_stream(self, stream: Any) -> None:
        pass

    def wait_event(self, event: Any) -> None:
        pass

    def wait(self, stream: Any = None) -> None:
        pass

    def query(self) -> bool:
        return True

    def elapsed_time(self, other: Any) -> float:
        return 1.0

    def is_capturing(self) -> bool:
        return False

    def synchronize(self) -> None:
        OnDevice.counts.sync("synchronize")


class Autocast(torch.amp.autocast_mode.autocast):
    """Autocast of the device: what stands behind it is the CPU's."""

    def __init__(self, device_type: str, *args: Any, **kwargs: Any) -> None:
        super().__init__("cpu" if device_type == "cuda" else device_type, *args, **kwargs)


GROUPED = torch._C._group_tensors_by_device_and_dtype


def grouped(lists: Any, with_indices: bool = False) -> dict[Any, Any]:
    """Return the lists of tensors by device and dtype, as optimisers and the clipping of gradients take them."""
    found = {}
    for (device, dtype), group in GROUPED(lists, with_indices).items():
        first = next(tensor for tensor in group[0][0] if tensor is not None)
        found[first.device if isinstance(first, OnDevice) else device, dtype] = group
    return found


def answers() -> dict[str, Any]:
    """Return what replaces the functions of ``torch.cuda``, by name."""
    properties = SimpleNamespace(name=NAME, total_memory=MEMORY, major=9, minor=0, multi_processor_count=1)
    host = DefaultGenerator()
    return {
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "_lazy_init": lambda: None,
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "set_device": lambda device: None,
        "get_device_name": lambda device=None: NAME,
        "get_device_capability": lambda device=None: (9, 0),
        "get_device_properties": lambda device=None: properties,
        "is_bf16_supported": lambda including_emulation=True: True,
        "is_current_stream_capturing": lambda: False,
        "mem_get_info": lambda device=None: (MEMORY, MEMORY),
        "memory_allocated": lambda device=None: 0,
        "max_memory_allocated": lambda device=None: 0,
        "memory_reserved": lambda device=None: 0,
        "reset_peak_memory_stats": lambda device=None: None,
        "empty_cache": lambda: None,
        "synchronize": lambda device=None: OnDevice.counts.sync("synchronize"),
        "manual_seed": lambda seed: None,
        "manual_seed_all": lambda seed: None,
        "get_rng_state": lambda device=None: host.get_state(),
        "set_rng_state": lambda state, device=None: None,
        "default_generators": (host,),
        "Stream": Moment,
        "Event": Moment,
        "stream": lambda stream: Moment(),
        "current_stream": lambda device=None: Moment(),
    }


@contextlib.contextmanager
def pretended(most: int | None = None) -> Iterator[Counts]:
    """Have one pretended GPU, and give the counts of what it is asked; leave torch as it was.

    ``most``: the bytes of tensors that it holds, beyond which it is out of memory (``tensor.Room``).
    """
    counts = Counts()
    swap = torch.__future__.get_swap_module_params_on_conversion()
    with contextlib.ExitStack() as all_of:
        for name, value in answers().items():
            all_of.enter_context(mock.patch.object(torch.cuda, name, value))
        for types in {id(types): types for types in (OF_OPTIMIZERS, OF_GRADIENTS)}.values():
            types.append(OnDevice)
            all_of.callback(types.remove, OnDevice)
        for module, name, value in (
            (torch, "Generator", Generator),
            (torch, "autocast", Autocast),
            (torch._C, "_group_tensors_by_device_and_dtype", grouped),
            (torch.autograd, "_engine_run_backward", run_backward),
            (torch.accelerator, "current_stream", lambda device=None: Moment()),
            (backward, "record", Again),
            (OnDevice, "counts", counts),
            (OnDevice, "room", None if most is None else Room(most)),
        ):
            all_of.enter_context(mock.patch.object(module, name, value))
        torch.__future__.set_swap_module_params_on_conversion(True)  # a moved parameter stays the same object
        all_of.callback(torch.__future__.set_swap_module_params_on_conversion, swap)
        all_of.enter_context(Functions())
        all_of.enter_context(Calls())
        yield counts
