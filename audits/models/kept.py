"""The check that what users' code returns is a model of the weights that the plan's architecture has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from audits.errors import BadInput

if TYPE_CHECKING:
    from torch import nn


def check_kept(name: str, before: nn.Module, found: object) -> None:
    """Refuse what is no model with the weights of ``before``: the store keeps those, and the plan says what reads them.

    ``name`` is that of the code in messages.
    """
    from torch import nn

    if not isinstance(found, nn.Module):
        raise BadInput(f"{name} returned {type(found).__name__}; needed: a torch.nn.Module, or None")
    wanted, given = shapes(before), shapes(found)
    for key in [*wanted, *given]:
        if wanted.get(key) != given.get(key):
            raise BadInput(
                f"{name} returned a model with {key} of shape {given.get(key, 'none')}, but model.name has "
                f"{wanted.get(key, 'none')}; keep the architecture"
            )


def shapes(model: nn.Module) -> dict[str, tuple[int, ...]]:
    """Return the shapes of what a model keeps, by name."""
    return {name: tuple(value.shape) for name, value in model.state_dict().items()}
