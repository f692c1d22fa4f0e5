"""The state of an optimiser or of a schedule as named tensors and JSON, and back, to the same bits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from audits.training.keeper import Snapshot

if TYPE_CHECKING:
    import torch

TREE = "tree"
TENSOR = "tensor"
"""The one key of the object that stands for a tensor in the tree."""


def optimizer_snapshot(optimizer: torch.optim.Optimizer) -> Snapshot:
    """Return what ``optimizer`` remembers of each parameter, and its groups (rates, momenta) as they are now."""
    return flattened(optimizer.state_dict())


def resume_optimizer(optimizer: torch.optim.Optimizer, snapshot: Snapshot) -> None:
    """Put ``optimizer``, over the same parameters, back to ``snapshot``; what it remembers takes their layout."""
    import torch

    tree = restored(snapshot)
    groups = [
        {name: tuple(value) if isinstance(own.get(name), tuple) else value for name, value in group.items()}
        for own, group in zip(optimizer.param_groups, tree["param_groups"], strict=True)
    ]
    optimizer.load_state_dict(
        {"state": {int(at): value for at, value in tree["state"].items()}, "param_groups": groups}
    )
    optimizer._opt_called = True  # type: ignore[attr-defined]  # it has stepped: else a schedule warns that it has not
    for parameter, held in optimizer.state.items():
        for name, value in held.items():
            if isinstance(value, torch.Tensor) and value.shape == parameter.shape:
                held[name] = torch.empty_like(parameter, dtype=value.dtype).copy_(value)


def schedule_snapshot(schedule: torch.optim.lr_scheduler.LRScheduler) -> Snapshot:
    """Return where ``schedule`` stands."""
    return flattened(schedule.state_dict())


def resume_schedule(schedule: torch.optim.lr_scheduler.LRScheduler, snapshot: Snapshot) -> None:
    """Put ``schedule`` back to ``snapshot``."""
    schedule.load_state_dict(restored(snapshot))


def flattened(tree: Any) -> Snapshot:
    """Return a tree of dicts, lists, tensors and JSON values: the tensors by their paths, and the tree without them."""
    import torch

    tensors: dict[str, torch.Tensor] = {}

    def plain(node: Any, path: str) -> Any:
        if isinstance(node, torch.Tensor):
            tensors[path] = node
            return {TENSOR: path}
        if isinstance(node, dict):
            return {str(name): plain(value, f"{path}.{name}".lstrip(".")) for name, value in node.items()}
        if isinstance(node, list | tuple):
            return [plain(value, f"{path}.{at}".lstrip(".")) for at, value in enumerate(node)]
        return node

    bare = plain(tree, "")
    return Snapshot(tensors, {TREE: bare})


def restored(snapshot: Snapshot) -> Any:
    """Return the tree of ``flattened``; tuples come back as lists and names of fields as text."""

    def whole(node: Any) -> Any:
        if isinstance(node, dict):
            if node.keys() == {TENSOR}:
                return snapshot.tensors[node[TENSOR]]
            return {name: whole(value) for name, value in node.items()}
        return [whole(value) for value in node] if isinstance(node, list) else node

    return whole(snapshot.notes[TREE])
