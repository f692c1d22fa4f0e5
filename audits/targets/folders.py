"""Folders of weights, as ``save_pretrained`` and accelerate write them: which of their files hold the model."""

from __future__ import annotations

import json
from pathlib import Path

from audits.errors import BadInput

WHOLE = ("model.safetensors", "pytorch_model.bin", "diffusion_pytorch_model.safetensors")
"""What a folder calls the file of a model that stands in one file; the first that is there is read."""
INDEX = ".index.json"
"""What follows the name of such a file where the model is cut into several, which the index names."""
ENDINGS = (".safetensors", ".bin", ".pt", ".pth", ".ckpt")
ADAPTER = "adapter_config.json"


def weight_files(folder: Path, name: str) -> list[Path]:
    """Return the files of the model in ``folder``, which a plan calls ``name``: one, or those that its index names.

    Raises BadInput for a folder of an adapter, and for one in which none or several files could be meant.
    """
    if (folder / ADAPTER).is_file():
        raise BadInput(
            f"{name} is the folder of an adapter (PEFT), which is no whole model; merge it where it was made "
            "(model.merge_and_unload().save_pretrained) and give that folder"
        )
    for whole in WHOLE:
        if (folder / whole).is_file():
            return [folder / whole]
        if (folder / (whole + INDEX)).is_file():
            return shards(folder, whole + INDEX, name)
    found = sorted(each for each in folder.iterdir() if each.is_file() and each.suffix.lower() in ENDINGS)
    if len(found) != 1:
        there = f"{len(found)} files of weights ({', '.join(each.name for each in found[:3])})" if found else "none"
        raise BadInput(
            f"{name} is a folder with {there}; allowed: a folder of save_pretrained ({', '.join(WHOLE[:2])}), one with "
            "a single file of weights, or the file itself"
        )
    return found


def shards(folder: Path, index: str, name: str) -> list[Path]:
    """Return the files that an index of a divided model names, all of which lie beside it."""
    try:
        named = json.loads((folder / index).read_text("utf-8"))["weight_map"].values()
        files = sorted({str(each) for each in named})
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise BadInput(f"{name}: {index} is no index of a divided model; save the model again there") from None
    for each in files:
        if Path(each).name != each or not (folder / each).is_file():
            raise BadInput(f"{name}: {each}, which {index} names, is not in the folder; copy it there")
    return [folder / each for each in files]
