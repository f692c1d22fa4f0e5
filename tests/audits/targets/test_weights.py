"""Weights of given models: what fits is read whatever wraps it, and what does not is refused in one line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from audits.errors import BadInput
from audits.targets.weights import read_weights, with_weights
from tests.cases.families import as_one


def small() -> nn.Module:
    """Return a network with buffers of a running statistic."""
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 2))


@pytest.fixture
def trained() -> nn.Module:
    model = small()
    with torch.no_grad():
        for value in model.state_dict().values():
            value.copy_(torch.rand_like(value, dtype=torch.float32) + 1)
    return model


def written(path: Path, held: Any) -> str:
    """Write what torch.save makes of ``held``; return the file."""
    torch.save(held, path)
    return str(path)


WRAPPED: dict[str, Callable[[nn.Module], Any]] = {
    "a state dict": lambda model: model.state_dict(),
    "under state_dict": lambda model: {"epoch": 3, "state_dict": model.state_dict()},
    "under model_state_dict": lambda model: {"model_state_dict": model.state_dict(), "optimizer": {"lr": 0.1}},
    "under model": lambda model: {"model": model.state_dict()},
    "DataParallel": lambda model: nn.DataParallel(model).state_dict(),
    "torch.compile": lambda model: {f"_orig_mod.{name}": value for name, value in model.state_dict().items()},
    "a training loop of Lightning": lambda model: {
        "state_dict": {f"model.{name}": value for name, value in model.state_dict().items()}
    },
    "both": lambda model: {f"module._orig_mod.{name}": value for name, value in model.state_dict().items()},
    "a compiled part": lambda model: {
        name.replace("3.", "3._orig_mod."): value for name, value in model.state_dict().items()
    },
    "without the count of batches": lambda model: {
        name: value for name, value in model.state_dict().items() if "num_batches" not in name
    },
}


@pytest.mark.parametrize("how", WRAPPED)
def test_weights_are_found_whatever_wraps_them(trained: nn.Module, tmp_path: Path, how: str) -> None:
    found = read_weights(written(tmp_path / "w.pt", WRAPPED[how](trained)), small())
    assert not found.notes
    x = torch.rand(5, 3)
    model = with_weights(small(), found.state)
    assert not model.training
    with torch.no_grad():
        assert torch.equal(model(x), trained.eval()(x))


def test_digest_is_that_of_the_tensors_not_of_the_file(trained: nn.Module, tmp_path: Path) -> None:
    save_file(trained.state_dict(), tmp_path / "w.safetensors")
    first = read_weights(str(tmp_path / "w.safetensors"), small()).digest
    assert read_weights(written(tmp_path / "w.pth", {"model": trained.state_dict()}), small()).digest == first
    with torch.no_grad():
        trained[3].bias[1] += 1e-6
    assert read_weights(written(tmp_path / "w.pt", trained.state_dict()), small()).digest != first


def test_half_precision_becomes_float32_and_is_said(trained: nn.Module, tmp_path: Path) -> None:
    found = read_weights(written(tmp_path / "w.pt", trained.half().state_dict()), small())
    assert {value.dtype for value in found.state.values()} == {torch.float32, torch.int64}
    assert found.notes == (f"{tmp_path / 'w.pt'}: float16 is read as float32 (8 tensors)",)


class Whole(nn.Linear):
    """A model that is pickled with its class."""


def nan(model: nn.Module) -> Any:
    state = model.state_dict()
    state["0.weight"] = torch.full((4, 3), float("nan"))
    return state


REFUSED: dict[str, tuple[Callable[[nn.Module], Any], str]] = {
    "a whole model": (lambda model: Whole(3, 4), r"more than tensors.*runs code.*torch\.save\(model\.state_dict\(\)"),
    "no state dict": (lambda model: {"epoch": 3, "loss": 0.1}, "holds a dict with epoch, loss; allowed: a state dict"),
    "missing and too many": (
        lambda model: {"0.weight": model.state_dict()["0.weight"], "head.bias": torch.zeros(2)},
        r"of 9 tensors 7 missing \(0.bias, 1.weight, 1.bias and 4 more\); 1 not in the architecture \(head.bias\)",
    ),
    "another shape": (
        lambda model: {**model.state_dict(), "3.weight": torch.zeros(7, 4)},
        r"1 of another shape \(3.weight \[7, 4\] for \[2, 4\]\)",
    ),
    "complex": (
        lambda model: {**model.state_dict(), "3.weight": torch.zeros(2, 4, dtype=torch.complex64)},
        r"no plain tensors of real numbers \(3.weight\)",
    ),
    "NaN": (nan, "0.weight has 12 of 12 values that are NaN or infinite"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_does_not_fit_is_refused(trained: nn.Module, tmp_path: Path, what: str) -> None:
    make, said = REFUSED[what]
    with pytest.raises(BadInput, match=said) as refused:
        read_weights(written(tmp_path / "w.pt", make(trained)), small())
    assert "\n" not in str(refused.value)


def test_a_pickle_never_runs(tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> Any:
            return Path.touch, (tmp_path / "ran",)

    with pytest.raises(BadInput, match="more than tensors"):
        read_weights(written(tmp_path / "w.pt", {"state_dict": Trap()}), small())
    assert not (tmp_path / "ran").exists()


@as_one(
    "name, content, said",
    [
        ("no.pt", None, "No such file"),
        ("w.bin", None, "No such file"),
        ("w", None, "No such file"),
        ("w.pt", b"no tensors at all", r"cannot be read as a file of torch\.save"),
        ("w.safetensors", b"no tensors at all", "cannot be read as safetensors"),
    ],
)
def test_files_that_hold_no_weights_are_refused(tmp_path: Path, name: str, content: bytes | None, said: str) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(BadInput, match=said):
        read_weights(str(tmp_path / name), small())


def test_files_of_another_form_or_too_large_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BadInput, match="is an ONNX graph"):
        read_weights(str(tmp_path / "w.onnx"), small())
    torch.jit.script(small()).save(str(tmp_path / "script.pt"))
    with pytest.raises(BadInput, match="is a TorchScript program"):
        read_weights(str(tmp_path / "script.pt"), small())
    monkeypatch.setattr("audits.targets.checkpoint_files.MOST_BYTES", 100)
    with pytest.raises(BadInput, match="holds 0 GiB; allowed: up to 0 GiB"):
        read_weights(written(tmp_path / "large.pt", small().state_dict()), small())


def test_one_tensor_is_counted_as_one(tmp_path: Path) -> None:
    layer = nn.Linear(2, 2, bias=False)
    held = {"weight": layer.weight.detach().half(), "total_ops": torch.zeros(1)}
    cast, left = read_weights(written(tmp_path / "w.pt", held), layer).notes
    assert "(1 tensor)" in cast and "1 tensor that is no layer" in left
