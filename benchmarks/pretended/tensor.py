"""Tensors of the pretended device, and what a call of aten does with them."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_map

from benchmarks.pretended.counts import Counts

CUDA = torch.device("cuda", 0)

ALLOCATIONS = frozenset({"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "resize_"})
VIEWS_BY_NAME = frozenset({"_unsafe_view", "_reshape_alias", "lift_fresh", "set_"})
SHAPE_BY_VALUE = frozenset(
    {"nonzero", "masked_select", "_unique2", "unique_dim", "unique_consecutive", "bincount", "_linalg_check_errors"}
)
INDEXING = frozenset({"index", "index_put", "index_put_", "_index_put_impl_", "_unsafe_index", "_unsafe_index_put"})
SAME_DEVICE_SCALARS = frozenset({"cat", "stack"})
"""Calls that take no scalar of the CPU among tensors of a GPU, as pointwise ones do."""
METADATA = frozenset({"is_same_size", "is_pinned", "sym_size", "sym_stride", "sym_numel", "sym_storage_offset"})
FACTORIES = frozenset({"zeros", "ones", "full", "empty", "arange", "scalar_tensor", "eye", "linspace", "empty_strided"})


class Mixed(RuntimeError):
    """Tensors, or a generator, of different devices met."""


class Room:
    """The memory of the device: ``most`` bytes (None: enough of it), of which the storages of ``held`` are in use.

    What a call of aten needs while it computes does not count.
    """

    def __init__(self, most: int | None = None) -> None:
        self.most = most
        self.held: dict[int, tuple[int, int]] = {}

    def take(self, tensor: torch.Tensor) -> Held:
        """Return the hold of a tensor on its storage; raises OutOfMemoryError where there is no room for it."""
        storage = tensor.untyped_storage()
        place = storage.data_ptr()
        size, holders = self.held.get(place, (storage.nbytes(), 0))
        used = sum(each for each, _ in self.held.values())
        if self.most is not None and not holders and used + size > self.most:
            raise torch.OutOfMemoryError(
                f"CUDA out of memory. Tried to allocate {size} bytes. GPU 0 has a total capacity of {self.most} bytes "
                f"of which {self.most - used} bytes is free."
            )
        self.held[place] = size, holders + 1
        return Held(self, place)


class Held:
    """A tensor's hold on its storage, for as long as the tensor lives."""

    def __init__(self, room: Room, place: int) -> None:
        self.room, self.place = room, place

    def __del__(self) -> None:
        size, holders = self.room.held[self.place]
        if holders == 1:
            del self.room.held[self.place]
        else:
            self.room.held[self.place] = size, holders - 1


class OnDevice(torch.Tensor):
    """A tensor of the pretended device: ``inner`` is the tensor of the CPU with its values."""

    counts: Counts = Counts()
    room: Room | None = None
    functions: Any = None  # ``functions.called``, which files itself here
    inner: torch.Tensor
    hold: Held

    @staticmethod
    def __new__(cls, inner: torch.Tensor) -> OnDevice:
        made = torch.Tensor._make_wrapper_subclass(
            cls,
            inner.size(),
            strides=inner.stride(),
            storage_offset=inner.storage_offset(),
            dtype=inner.dtype,
            layout=inner.layout,
            device="cpu",
        )
        made.inner = inner.detach()
        if OnDevice.room is not None:
            made.hold = OnDevice.room.take(made.inner)
        return made

    def __init__(self, inner: torch.Tensor) -> None:
        pass

    device = property(lambda self: CUDA)
    is_cuda = property(lambda self: True)
    is_cpu = property(lambda self: False)

    def get_device(self) -> int:
        return 0

    def __repr__(self, **how: Any) -> str:
        return f"OnDevice({self.inner!r})"

    def tolist(self) -> Any:
        OnDevice.counts.sync("tolist")
        return self.inner.tolist()

    def numpy(self, **how: Any) -> Any:
        raise TypeError(
            "can't convert cuda:0 device type tensor to numpy. "
            "Use Tensor.cpu() to copy the tensor to host memory first."
        )

    __array__ = numpy

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return OnDevice.functions(func, args, kwargs or {})

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return dispatched(func, args, kwargs or {})


def unwrapped(value: Any) -> Any:
    """Return the values of a tensor of the device; anything else as it is."""
    return value.inner if isinstance(value, OnDevice) else value


def wrapped(value: Any) -> Any:
    """Return a tensor as one of the device; anything else as it is."""
    return OnDevice(value) if isinstance(value, torch.Tensor) and not isinstance(value, OnDevice) else value


def on_cuda(device: Any) -> bool:
    """Say whether ``device``, as arguments name it, is the pretended one."""
    return device is not None and (isinstance(device, int) or torch.device(device).type == "cuda")


class Inside:
    """Whether the innermost function of torch was given tensors of the device: what it makes in C++ is there too."""

    device = False


def dispatched(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Answer the call of aten ``func``: refuse mixes, count, compute on the CPU, and wrap."""
    name = func._schema.name.partition("::")[2]
    tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
    mine = [tensor for tensor in tensors if isinstance(tensor, OnDevice)]
    wanted = on_cuda(kwargs.get("device"))
    if not mine and not wanted:
        found = func(*args, **{key: value for key, value in kwargs.items() if key != "pin_memory"})
        return wrapped(found) if name in FACTORIES and Inside.device and not tensors else found
    if name == "_to_copy":
        return copied(args[0], kwargs)
    if name == "copy_":
        return overwritten(func, args)
    check_devices(name, args, tensors)
    count(func, name, args, kwargs, OnDevice.counts)
    inner_kwargs = {key: tree_map(unwrapped, value) for key, value in kwargs.items() if key != "pin_memory"}
    if "device" in inner_kwargs:
        inner_kwargs["device"] = torch.device("cpu")
    found = func(*tree_map(unwrapped, args), **inner_kwargs)
    if not writes(func):
        return tree_map(wrapped, found)
    theirs = {id(tensor.inner): tensor for tensor in mine}
    return tree_map(lambda value: theirs.get(id(value), value) if isinstance(value, torch.Tensor) else value, found)


def copied(source: torch.Tensor, kwargs: dict[str, Any]) -> torch.Tensor:
    """Return ``source`` on the device, in another dtype or layout.

    What code asks to have on the host, ``functions.to`` has moved: that device is named here by C++ alone, which takes
    tensors of this device for the CPU's.
    """
    rest = {key: value for key, value in kwargs.items() if key not in ("device", "pin_memory")}
    found = torch.ops.aten._to_copy.default(unwrapped(source), **rest)
    if isinstance(source, OnDevice):
        OnDevice.counts.launch()
    else:
        OnDevice.counts.copy()
    return OnDevice(found)


def overwritten(func: Any, args: Any) -> torch.Tensor:
    """Copy values into a tensor; CUDA does so between devices too."""
    target, source = args[:2]
    if isinstance(source, OnDevice) and not isinstance(target, OnDevice):
        OnDevice.counts.sync("copy to the host")
    elif isinstance(source, OnDevice):
        OnDevice.counts.launch()
    else:
        OnDevice.counts.copy()
    func(unwrapped(target), unwrapped(source), *args[2:])
    return target


def check_devices(name: str, args: Any, tensors: list[torch.Tensor]) -> None:
    """Refuse tensors of the CPU beside those of the device, but for scalars and for indices of a tensor there."""
    for tensor in tensors:
        if isinstance(tensor, OnDevice) or (tensor.dim() == 0 and name not in SAME_DEVICE_SCALARS):
            continue
        indexes = name in INDEXING and tensor is not args[0] and isinstance(args[0], OnDevice)
        if indexes and not tensor.dtype.is_floating_point:
            OnDevice.counts.copy()
            continue
        raise Mixed(
            f"Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu! ({name})"
        )


def count(func: Any, name: str, args: Any, kwargs: dict[str, Any], counts: Counts) -> None:
    """Note what the call costs the host and the device."""
    if (
        (reads_a_number(func) and name not in METADATA)
        or name in SHAPE_BY_VALUE
        or (name == "repeat_interleave" and kwargs.get("output_size") is None)
    ):
        counts.sync(name.strip("_"))
    elif name in INDEXING and by_mask(name, args):
        counts.sync("boolean index")
    if name not in ALLOCATIONS and name not in METADATA and not views(func):
        counts.launch()


def by_mask(name: str, args: Any) -> bool:
    """Say whether a mask indexes, and is no mere fill by one number."""
    masks = any(isinstance(index, torch.Tensor) and index.dtype in (torch.bool, torch.uint8) for index in args[1])
    return masks and not ("put" in name and args[2].numel() == 1)


@cache
def views(func: Any) -> bool:
    """Say whether a call only looks at memory in another way."""
    name = func._schema.name.partition("::")[2]
    aliases = [found.alias_info for found in func._schema.returns]
    return name in VIEWS_BY_NAME or any(alias is not None and not alias.is_write for alias in aliases)


@cache
def writes(func: Any) -> bool:
    """Say whether a call writes into its arguments."""
    aliases = [given.alias_info for given in func._schema.arguments]
    return any(alias is not None and alias.is_write for alias in aliases)


@cache
def reads_a_number(func: Any) -> bool:
    """Say whether a call returns numbers or truth values, for which the host waits."""
    return any(str(found.type) in ("bool", "number", "Scalar", "int", "float") for found in func._schema.returns)
