"""Teachers from files of weights: read as data, never executed, and refused when they are not the model's."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest
import safetensors.torch
import torch

from audits.errors import BadInput
from audits.models import make_model
from audits.training.transfer import Build, read_weights, teacher_from
from tests.cases.families import as_one, thinned

MODELS: dict[str, tuple[dict[str, object], int]] = {
    "mlp": ({"hidden": [9, 8], "batch_norm": True}, 6),
    "cnn": ({"channels": [3, 4], "hidden": 5}, 8),
    "resnet50": ({"width": 1}, 8),
    "inception_v3": ({"width": 2}, 75),
}


def builder(name: str, **settings: object) -> Build:
    usual, side = MODELS[name]
    side = 32 if "stem" in settings else side
    return lambda classes, seed: make_model(name, {**usual, **settings}).build((1, side, side), classes, seed)


@pytest.mark.parametrize(
    ("name", "classes", "suffix"),
    thinned(
        (
            (*of, suffix)
            for of in (("resnet50", 9), ("inception_v3", 2), ("mlp", 7))
            for suffix in (".pth", ".safetensors")
        ),
        [("resnet50", 9, ".safetensors"), ("mlp", 7, ".pth")],
    ),
)
def test_a_teacher_comes_from_a_file_with_the_classes_of_its_head(
    name: str, classes: int, suffix: str, tmp_path: Path
) -> None:
    wanted, side = builder(name)(classes, 3).eval(), MODELS[name][1]
    kept = dict(wanted.state_dict())
    if name == "inception_v3":
        kept |= {"AuxLogits.fc.bias": torch.zeros(classes)}  # as in torchvision's file
    if suffix == ".pth":
        kept = {own: value for own, value in kept.items() if "num_batches" not in own}  # as in files of old versions
        torch.save(kept, tmp_path / f"weights{suffix}")
    else:
        kept = {own: value.contiguous() for own, value in kept.items()}
        safetensors.torch.save_file(kept, tmp_path / f"weights{suffix}")
    teacher = teacher_from(tmp_path / f"weights{suffix}", builder(name))
    x = torch.rand(3, 1, side, side, generator=torch.Generator().manual_seed(0))
    assert torch.equal(teacher(x), wanted(x))
    assert teacher(x).shape == (3, classes) and not teacher.training


class Evil:
    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return os.mkdir, (str(self.file),)


@pytest.mark.parametrize("legacy", [False, True])
def test_a_file_that_would_run_code_is_refused_and_runs_none(legacy: bool, tmp_path: Path) -> None:
    file = tmp_path / "weights.pth"
    content = {"weight": Evil(tmp_path / "made")}
    if legacy:
        file.write_bytes(pickle.dumps(content, protocol=2))
    else:
        torch.save(content, file)
    with pytest.raises(BadInput, match=r"weights\.pth holds more than tensors") as caught:
        read_weights(file)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "made").exists()


@as_one("name", ["weights.pth", "weights.safetensors"])
@as_one("content", [None, b"", b"no weights at all", b"\x80\x02}q\x00", bytes(range(256)) * 8])
def test_files_that_are_no_weights_are_refused(name: str, content: bytes | None, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(BadInput, match=f"{name} cannot be read") as caught:
        read_weights(tmp_path / name)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [[torch.zeros(2)], {"weights": [1.0]}, {"epoch": 3, "state_dict": {}}])
def test_files_without_a_state_dict_are_refused(content: object, tmp_path: Path) -> None:
    torch.save(content, tmp_path / "weights.pth")
    with pytest.raises(BadInput, match="holds no state dict"):
        read_weights(tmp_path / "weights.pth")


@pytest.mark.parametrize(
    ("source", "build", "says"),
    [
        ("mlp", builder("cnn"), r"lacks 0\.weight and 3 more and has the unknown 1\.weight and 11 more"),
        ("resnet50", builder("resnet50", stem="imagenet"), r"conv1\.weight has shape .*3, 3\), in the model .*7, 7\)"),
        pytest.param("resnet50", builder("resnet50", width=2), r"conv1\.weight has shape", marks=pytest.mark.long),
        ("resnet50", builder("resnet50", norm="group"), r"has the unknown bn1\.running_mean and"),
    ],
)  # fmt: skip
def test_weights_of_another_model_are_refused(source: str, build: Build, says: str, tmp_path: Path) -> None:
    torch.save(builder(source)(4, 0).state_dict(), tmp_path / "weights.pth")
    with pytest.raises(BadInput, match=says) as caught:
        teacher_from(tmp_path / "weights.pth", build)
    assert "\n" not in str(caught.value)


def test_weights_that_are_not_finite_are_refused(tmp_path: Path) -> None:
    broken = builder("mlp")(4, 0).state_dict()
    broken["1.weight"][0, 0] = float("nan")
    torch.save(broken, tmp_path / "weights.pth")
    with pytest.raises(BadInput, match=r"1\.weight is not finite"):
        teacher_from(tmp_path / "weights.pth", builder("mlp"))
