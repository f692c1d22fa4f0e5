"""Weights that the suite knows to be refused, from the tables in which they stand, as plans name them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import torch

from tests.audits.data import test_lfs_pointers
from tests.audits.targets import test_checkpoints, test_weights
from tests.cases.refusals import Refused, rows

NETS = """\
from tests.audits.targets.test_weights import small
def net(classes):
    return small()
"""
"""The architecture whose weights the tables change."""
FITTED = """\
audit: {kind: gnq}
data: {name: 'npz:three.npz'}
model: {name: 'python:nets:net'}
target: {weights: w.pt, members: all}
"""


def weights() -> Iterator[tuple[str, str, Callable[[], object]]]:
    """Yield what is said of weights that are refused, the ending of their file, and what makes them."""
    for make, said in test_weights.REFUSED.values():
        yield said, ".pt", lambda make=make: make(test_weights.small())
    for made, said in test_checkpoints.REFUSED.values():
        yield said, ".pt", lambda made=made: {"model": test_checkpoints.state(), "more": made()}
    for held, plain, averaged in test_checkpoints.TWO.values():
        yield f"(?=.*#{re.escape(plain)})(?=.*#{re.escape(averaged)})", ".pt", lambda held=held: plain_tensors(held())
    for what in ("weights", "safetensors"):
        name = test_lfs_pointers.READERS[what][0]
        yield "git lfs pull", Path(name).suffix, lambda: test_lfs_pointers.POINTER


def plain_tensors(held: object) -> object:
    """Return what is to be saved without gradients."""
    return torch.utils._pytree.tree_map(lambda x: x.detach() if isinstance(x, torch.Tensor) else x, held)


def in_folders() -> Iterator[tuple[str, str, Callable[[Path], object]]]:
    """Yield names of weights as seen from a folder of their own, what is said of them, and what writes them there."""
    for name, write, said in test_checkpoints.UNFIT:
        yield name, said, write
    for name, indexed in rows(test_checkpoints.test_any_file_of_a_divided_model_stands_for_all_of_them):
        yield name, "model-00003-of-00003", partial(write_divided, indexed=indexed)
    for name, content, said in rows(test_weights.test_files_that_hold_no_weights_are_refused):
        yield name, said, partial(write_content, name=name, content=content)
    name, pointer = test_lfs_pointers.READERS["a folder of weights"][0], test_lfs_pointers.POINTER.encode()
    yield ".", "git lfs pull", partial(write_content, name=name, content=pointer)


def write_divided(place: Path, indexed: bool) -> None:
    """Write a divided model, one file of which is lacking."""
    test_checkpoints.divided(place)[2].unlink()
    if not indexed:
        (place / "model.safetensors.index.json").unlink()


def write_content(place: Path, name: str, content: bytes | None) -> None:
    """Write a file, or none."""
    if content is not None:
        (place / name).write_bytes(content)


def of_weights() -> Iterator[Refused]:
    """Yield plans of weights that do not fit, or cannot be read."""
    for number, (name, said, _) in enumerate(in_folders()):
        changes = ("model.name=python:nets:net", f"target.weights=folder-{number}/{name}")
        yield Refused("gnq", "plan.yaml", changes, said, "weights", ("validate",))
    for number, (said, ending, _) in enumerate(weights()):
        changes = ("model.name=python:nets:net", f"target.weights=w-{number}{ending}")
        yield Refused("gnq", "plan.yaml", changes, said, "weights")


def write_weights(folder: Path) -> None:
    """Leave these weights, and the plan that they are of."""
    folder.mkdir()
    inputs = np.random.default_rng(0).normal(size=(20, 3)).astype("f4")
    np.savez(folder / "three.npz", inputs=inputs, labels=np.arange(20) % 2)
    (folder / "nets.py").write_text(NETS)
    (folder / "plan.yaml").write_text(FITTED)
    for number, (_, ending, make) in enumerate(weights()):
        file, held = folder / f"w-{number}{ending}", make()
        if isinstance(held, str):
            file.write_text(held)
        else:
            torch.save(held, file)
    for number, (*_, write) in enumerate(in_folders()):
        (folder / f"folder-{number}").mkdir()
        write(folder / f"folder-{number}")
