"""Models and arrays that a worker process read or made lately: one memory for the contexts of all its plans."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import nn

BYTES_IN_MEMORY = 2**31  # of models that were read lately; one model always stays
BYTES_OF_ARRAYS = 2**29  # of arrays that were made lately; what is larger than half of it is made again


class Recent:
    """Models and arrays by name, the latest ones; both within a fixed number of bytes, however many plans there are."""

    def __init__(self) -> None:
        self.models: OrderedDict[Hashable, nn.Module] = OrderedDict()
        self.held = 0
        self.arrays: OrderedDict[Hashable, NDArray[Any]] = OrderedDict()

    def model(self, name: Hashable) -> nn.Module | None:
        """Return the model of that name, None if it is not among the latest."""
        if name not in self.models:
            return None
        self.models.move_to_end(name)
        return self.models[name]

    def keep(self, name: Hashable, model: nn.Module) -> nn.Module:
        """Keep a model, let go of the oldest ones that there is no room for, and return it."""
        self.models[name] = model
        self.held += size_of(model)
        while len(self.models) > 1 and self.held > BYTES_IN_MEMORY:
            self.held -= size_of(self.models.popitem(last=False)[1])
        return model

    def forget(self) -> None:
        """Let go of all models."""
        self.models.clear()
        self.held = 0

    def array(self, name: Hashable, make: Callable[[], NDArray[Any]]) -> NDArray[Any]:
        """Return the array that ``make`` makes; one made lately under this name comes from memory. It is read-only."""
        if name not in self.arrays:
            found = make()
            if found.nbytes > BYTES_OF_ARRAYS // 2:
                return found
            found.flags.writeable = False
            self.arrays[name] = found
        self.arrays.move_to_end(name)
        while sum(array.nbytes for array in self.arrays.values()) > BYTES_OF_ARRAYS:
            self.arrays.popitem(last=False)
        return self.arrays[name]


def size_of(model: nn.Module) -> int:
    """Return the bytes of a model's parameters and buffers."""
    return sum(value.numel() * value.element_size() for value in model.state_dict().values())
