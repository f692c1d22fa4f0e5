"""The forms in which a user brings a model: weights, a program, a served model, answers that were recorded.

A name may end in "#PART": the one of several sets of weights in a file, or the one of several outputs of a program.
"""

from __future__ import annotations

import zipfile
from pathlib import Path, PurePosixPath
from typing import Literal

from audits.data.regular import opened
from audits.home import expanded

Form = Literal["weights", "torchscript", "onnx", "address", "answers", "record"]
"""A state dict; a TorchScript or ONNX program; the address of a server; a table of answers, the folder of a record."""

PROGRAMS: tuple[Form, ...] = ("torchscript", "onnx")
ASKED: tuple[Form, ...] = ("address", "answers", "record")
"""Forms of which nothing is known but answers."""
SCHEMES = ("http://", "https://")
BY_ENDING: dict[str, Form] = {
    ".safetensors": "weights",
    ".onnx": "onnx",
    ".ts": "torchscript",
    ".torchscript": "torchscript",
    ".parquet": "answers",
}
SAVED = (".pt", ".pth", ".ckpt", ".bin", ".tar")
"""Usual endings of what torch writes: a state dict, or a TorchScript program. Others are read by what they hold."""
SAYS_PROGRAM = "constants.pkl"
"""A file in every archive of TorchScript, and in no other of torch."""


READ = (
    "a state dict in a file of torch.save (.pt, .pth, .ckpt, .bin, .pth.tar or any other ending), .safetensors, or a "
    "folder of save_pretrained"
)
"""The forms of weights, in words."""
PART = "#"


def file_and_part(name: str) -> tuple[str, str | None]:
    """Return the file that ``name`` names, and which part of it, None for the only one.

    A name is divided at "#" unless a file is called so, and only behind a file that is here or ends as models do.
    """
    file, mark, part = name.rpartition(PART)
    if not (mark and file and part) or is_address(name) or expanded(name).exists():
        return name, None
    known = PurePosixPath(file).suffix.lower() in (*SAVED, *BY_ENDING)
    return (file, part) if known or expanded(file).exists() else (name, None)


def path_of(name: str) -> Path:
    """Return the file or folder that the name of a model stands for, whichever of its parts is meant."""
    return expanded(file_and_part(name)[0])


def is_here(name: str) -> bool:
    """Say whether a model is a file or a folder of this machine."""
    return not is_address(name) and path_of(name).exists()


def is_address(name: str) -> bool:
    """Say whether ``name`` is the address of a served model."""
    return name.lower().startswith(SCHEMES)


def form_by_name(name: str, answers_are_described: bool = False) -> Form:
    """Return the form of the model called ``name`` by its name alone; what torch writes is taken for weights.

    ``answers_are_described``: the plan says how answers read, so that a name without a known ending is the folder of a
    record, not a misnamed file of weights.
    """
    if is_address(name):
        return "address"
    ending = PurePosixPath(file_and_part(name)[0]).suffix.lower()
    if ending in SAVED:
        return "weights"
    return BY_ENDING.get(ending, "record" if answers_are_described else "weights")


def form_of(name: str, answers_are_described: bool = False) -> Form:
    """Return the form as ``form_by_name`` does; of weights by what the file holds, if it is here."""
    found = form_by_name(name, answers_are_described)
    return "torchscript" if found == "weights" and is_torchscript(name) else found


def may_be_script(name: str) -> bool:
    """Say whether a file of the name ``name`` may be TorchScript though it is taken for weights: what it holds says."""
    return not is_address(name) and PurePosixPath(file_and_part(name)[0]).suffix.lower() not in BY_ENDING


def is_torchscript(name: str) -> bool:
    """Say whether the file ``name`` is an archive of TorchScript, whatever its ending if not that of another form."""
    file = path_of(name)
    by_ending = BY_ENDING.get(file.suffix.lower())
    if by_ending is not None:
        return by_ending == "torchscript"
    try:
        with opened(file) as stream, zipfile.ZipFile(stream) as archive:
            return any(PurePosixPath(entry).name == SAYS_PROGRAM for entry in archive.namelist())
    except (OSError, zipfile.BadZipFile, ValueError):
        return False
