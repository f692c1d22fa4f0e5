"""Models in several files, as ``save_pretrained`` and accelerate write them: which files of a folder hold the model."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from audits.data.bounded import json_within
from audits.errors import BadInput, how_many

WHOLE = ("model.safetensors", "pytorch_model.bin", "diffusion_pytorch_model.safetensors")
"""What a folder calls the file of a model that stands in one file; the first that is there is read."""
INDEX = ".index.json"
"""What follows the name of such a file where the model is cut into several, which the index names."""
ENDINGS = (".safetensors", ".bin", ".pt", ".pth", ".ckpt")
PART = re.compile(r"(?P<model>.+)-(?P<number>\d{5})-of-(?P<parts>\d{5})(?P<ending>\.safetensors|\.bin)")
"""The name of a file that holds a part of a model; ``epoch-00001-of-00003.pt`` is a whole one."""
ADAPTER = "adapter_config.json"


def is_divided(place: Path) -> bool:
    """Say whether a path is a folder, or one file of a model in several: a part, or their index."""
    index = place.name.removesuffix(INDEX)
    return place.is_dir() or is_part(place) or (index != place.name and index.endswith(ENDINGS))


def is_part(place: Path) -> bool:
    """Say whether a file is called as a part of a model."""
    found = PART.fullmatch(place.name)
    return found is not None and 1 <= int(found["number"]) <= int(found["parts"])


def weight_files(place: Path, name: str) -> list[Path]:
    """Return the files of the model at ``place``, which a plan calls ``name``.

    Of a folder its model's, of one file of a model in several all of them, else ``place`` itself. Raises BadInput for
    parts that are missing, for a folder of an adapter, and for one in which none or several files could be meant.
    """
    if place.is_dir():
        return files_in(place, name)
    if not is_divided(place):
        return [place]
    return parts_with(place, name) if is_part(place) else indexed(place.parent, place.name, name)


def files_in(folder: Path, name: str) -> list[Path]:
    """Return the files of the model in ``folder``: one, or those that its index names, or all parts of one."""
    if (folder / ADAPTER).is_file():
        raise BadInput(
            f"{name} is the folder of an adapter (PEFT), which is no whole model; merge it where it was made "
            "(model.merge_and_unload().save_pretrained) and give that folder"
        )
    if usual := usual_files(folder):
        return weight_files(folder / usual[0], name)
    found = sorted(each for each in folder.iterdir() if each.is_file() and each.suffix.lower() in ENDINGS)
    parts = [each for each in found if is_part(each)]
    if parts and set(found) <= set(all_parts(parts[0])):
        return parts_with(parts[0], name)
    if len(found) != 1:
        there = f"{len(found)} files of weights ({', '.join(each.name for each in found[:3])})" if found else "none"
        raise BadInput(
            f"{name} is a folder with {there}; allowed: a folder of save_pretrained ({', '.join(WHOLE[:2])}), one with "
            "a single file of weights, or the file itself"
        )
    return found


def usual_files(folder: Path) -> list[str]:
    """Return what a folder has of the usual files of a whole model or their indices, the one that is read first."""
    return [file for whole in WHOLE for file in (whole, whole + INDEX) if (folder / file).is_file()]


def passed_over(place: Path, name: str) -> list[str]:
    """Return a note, none otherwise, where a folder holds several whole models, of which one is read."""
    taken, *others = usual_files(place) or [""]
    return [f"{name}: {taken} is read, and not {', '.join(others)}"] if others else []


def all_parts(part: Path) -> list[Path]:
    """Return the files of the model that one of its parts belongs to, whether they are there or not."""
    found = PART.fullmatch(part.name)
    assert found is not None, part
    model, parts, ending = found.group("model", "parts", "ending")
    return [part.with_name(f"{model}-{number:05}-of-{parts}{ending}") for number in range(1, int(parts) + 1)]


def parts_with(part: Path, name: str) -> list[Path]:
    """Return the files of the model that one of its parts belongs to, all of which lie beside it."""
    files = all_parts(part)
    check_there(files, name, f"{part.name} is one of {len(files)} parts of a model")
    return files


def check_there(files: Sequence[Path], name: str, why: str) -> None:
    """Refuse a model of which parts are missing; ``why``: how they are known."""
    missing = [each.name for each in files if not each.is_file()]
    if missing:
        more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
        are = "is" if len(missing) == 1 else "are"
        raise BadInput(
            f"{name}: {why}, and {', '.join(missing[:3])}{more} {are} not in the folder; copy all parts there"
        )


def indexed(folder: Path, index: str, name: str) -> list[Path]:
    """Return the files that an index of a divided model names, all of which lie beside it."""
    try:
        named = json_within(folder / index, f"{name}: {index}")["weight_map"].values()
        files = sorted({str(each) for each in named})
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise BadInput(f"{name}: {index} is no index of a divided model; save the model again there") from None
    found = [folder / each for each in files]
    outside = [each for each in files if Path(each).name != each]
    if outside:
        raise BadInput(f"{name}: {index} names {outside[0]}, which is not in the folder; copy all parts there")
    check_there(found, name, f"{index} names {how_many(len(files), 'part')} of a model")
    return found
