"""Checkpoints as trainings leave them: the right weights are read, whatever is beside them; two sets never mix."""

from __future__ import annotations

import argparse
import json
import zipfile
from collections import defaultdict, deque
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path, PosixPath, PurePosixPath, PureWindowsPath
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file
from torch import nn
from torch.optim.swa_utils import AveragedModel

from audits.errors import BadInput
from audits.targets.checkpoint_files import Unread, read_held
from audits.targets.forms import file_and_part, form_of
from audits.targets.weights import read_weights
from orchestrator.engine.given_files import digest_of
from tests.cases.families import as_one, thinned

State = dict[str, torch.Tensor]


def net(seed: int = 1) -> nn.Module:
    """Return a network with a norm, whose running mean is a buffer."""
    torch.manual_seed(seed)
    found = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 2))
    found[1].running_mean.copy_(torch.rand(4))
    return found


def state(seed: int = 1) -> State:
    return net(seed).state_dict()


def prefixed(prefix: str, tensors: State) -> State:
    return {prefix + name: value for name, value in tensors.items()}


def reads(path: Path | str, seed: int = 1, module: nn.Module | None = None) -> tuple[str, ...]:
    """Assert that the weights of ``state(seed)`` are read; return the notes."""
    found = read_weights(str(path), net() if module is None else module)
    assert all(torch.equal(found.state[name], value) for name, value in state(seed).items())
    return found.notes


EXTRA: dict[str, tuple[Callable[[], Any], str]] = {
    "a loss": (lambda: {"state_dict": {**prefixed("model.", state()), "criterion.weight": torch.ones(2)}}, "criterion"),
    "a loss in the model": (lambda: {**state(), "loss_fn.pos_weight": torch.ones(2)}, "loss_fn.pos_weight"),
    "SWA": (lambda: AveragedModel(net()).state_dict(), "n_averaged"),
    "thop": (lambda: {**state(), "total_ops": torch.zeros(1), "0.total_params": torch.zeros(1)}, "0.total_params"),
    "a counter": (lambda: {**state(), "3.num_batches_tracked": torch.tensor(2)}, "3.num_batches_tracked"),
}


@pytest.mark.parametrize("what", EXTRA)
def test_tensors_of_a_training_are_left_out_by_name(tmp_path: Path, what: str) -> None:
    make, named = EXTRA[what]
    torch.save(make(), tmp_path / "w.pt")
    notes = reads(tmp_path / "w.pt")
    assert len(notes) == 1 and named in notes[0]


WRAPPED: dict[str, Callable[[], Any]] = {
    "DDP of a compiled model": lambda: prefixed("module._orig_mod.", state()),
    "a compiled DDP": lambda: {"model": prefixed("_orig_mod.module.", state())},
    "a part in DataParallel": lambda: {name.replace("3.", "3.module."): value for name, value in state().items()},
    "FSDP": lambda: prefixed("_fsdp_wrapped_module.", state()),
    "DeepSpeed": lambda: {"module": state(), "optimizer": None, "global_steps": 3},
    "a dict a layer": lambda: {"model": {place: layer.state_dict() for place, layer in net().named_children()}},
    "two levels": lambda: {"model": {"state_dict": state()}, "epoch": 3},
    "an optimiser": lambda: {"net": state(), "optimizer": {"state": {0: {"exp_avg": torch.ones(3)}}, "lr": 0.1}},
    "settings and scores": lambda: {
        "args": argparse.Namespace(lr=0.1, path="x"),
        "best": np.float64(0.5),
        "state_dict": state(),
    },
    "the same twice": lambda: {"model": state(), "best": state()},
    "states of generators": lambda: {"model": state(), "rng": [torch.get_rng_state(), np.random.get_state()]},
    "a folder among the settings": lambda: {"model": state(), "args": argparse.Namespace(out=PosixPath("runs"))},
    "an epoch": lambda: {20: state()},
    "what was measured": lambda: {"model": state(), "history": defaultdict(list, {"loss": [1.0, 2.0]})},
    "counts by name": lambda: {"model": state(), "seen": defaultdict(int, {"a": 1})},
    "weights in a defaultdict": lambda: defaultdict(dict, {"model": state()}),
    "the last losses": lambda: {"model": state(), "last": deque([1.0, 2.0], maxlen=9)},
    "times": lambda: {"model": state(), "at": [datetime.now(UTC), date(2024, 1, 2), timedelta(1)]},
    "a plain namespace": lambda: {"model": state(), "args": SimpleNamespace(out=PurePosixPath("runs"))},
    "scores in half precision": lambda: {"model": state(), "best": np.float16(0.5), "seen": np.zeros(3, np.uint8)},
    "names of classes": lambda: {"model": state(), "classes": np.array(["cat", "dog"])},
    "an array of plain objects": lambda: {"model": state(), "log": np.array([{"loss": 1.0}], object)},
}


@as_one("what", WRAPPED)
def test_weights_are_found_in_what_trainings_save(tmp_path: Path, what: str) -> None:
    torch.save(WRAPPED[what](), tmp_path / "w.pt")
    reads(tmp_path / "w.pt")


def test_a_checkpoint_of_numpy_1_is_read(tmp_path: Path) -> None:
    torch.save({"model": state(), "best": np.float64(0.5)}, tmp_path / "w.pt")
    with zipfile.ZipFile(tmp_path / "w.pt") as new, zipfile.ZipFile(tmp_path / "old.pt", "w") as old:
        for name in new.namelist():
            old.writestr(name, new.read(name).replace(b"numpy._core.multiarray", b"numpy.core.multiarray"))
    assert not reads(tmp_path / "old.pt")


@pytest.mark.parametrize(
    "name",
    thinned(
        ("w.ckpt", "w.pth.tar", "w.pt.tar", "w.bin", "w.model", "w.PT", "w", "epoch=3-v1.ckpt"),
        ("w.pth.tar", "w.bin", "w"),
    ),
)
def test_the_ending_of_a_file_decides_nothing(tmp_path: Path, name: str) -> None:
    torch.save(state(), tmp_path / name)
    assert form_of(str(tmp_path / name)) == "weights"
    assert not reads(tmp_path / name)
    save_file(state(), tmp_path / name)
    assert not reads(tmp_path / name)
    torch.jit.script(net()).save(str(tmp_path / name))
    assert form_of(str(tmp_path / name)) == "torchscript"


def test_a_folder_of_windows_among_the_settings_is_read(tmp_path: Path) -> None:
    torch.save({"model": state(), "out": PureWindowsPath("c:/runs")}, tmp_path / "w.pt")
    with zipfile.ZipFile(tmp_path / "w.pt") as new, zipfile.ZipFile(tmp_path / "win.pt", "w") as written:
        for name in new.namelist():
            written.writestr(name, new.read(name).replace(b"PureWindowsPath", b"WindowsPath"))
    assert not reads(tmp_path / "win.pt")


class Settings:
    """What a training keeps, with code of its own."""


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "an object": (Settings, r"test_checkpoints\.Settings"),
    "a function": (lambda: print, "print"),
    "a defaultdict of objects": (lambda: defaultdict(Settings), r"test_checkpoints\.Settings"),
    "a generator": (lambda: np.random.default_rng(1), r"numpy\.random"),
}


@as_one("what", REFUSED)
def test_the_type_that_only_code_can_load_is_named(tmp_path: Path, what: str) -> None:
    make, named = REFUSED[what]
    torch.save({"model": state(), "more": make()}, tmp_path / "w.pt")
    with pytest.raises(BadInput, match=named) as refused:
        read_weights(str(tmp_path / "w.pt"), net())
    said = str(refused.value)
    assert "torch.save(model.state_dict()" in said and "safetensors" in said
    assert "weights_only" not in said and "safe_globals" not in said and "\n" not in said


class Addresses:
    """An array whose bytes are taken for the addresses of objects, without the state that torch would look at."""

    def __reduce__(self) -> tuple[Any, ...]:
        return np.ndarray, ((1,), ObjectType(), bytes(8))


class ObjectType:
    def __reduce__(self) -> tuple[Any, ...]:
        return np.dtype, ("O8", False, True)


def test_no_array_of_numpy_is_made_of_what_a_file_says(tmp_path: Path) -> None:
    torch.save({"model": state(), "more": [Addresses(), ObjectType(), np.zeros(2)]}, tmp_path / "w.pt")
    held = read_held(tmp_path / "w.pt", "w.pt")
    assert {type(each) for each in held["more"]} == {Unread}


def test_checkpoints_that_are_numbered_are_models_of_their_own(tmp_path: Path) -> None:
    for number in (1, 2, 3):
        torch.save(state(number), tmp_path / f"epoch-{number:05}-of-00003.pt")
    for number in (1, 2, 3):
        held = read_held(tmp_path / f"epoch-{number:05}-of-00003.pt", "w")
        assert all(torch.equal(held[name], value) for name, value in state(number).items())


TWO: dict[str, tuple[Callable[[], Any], str, str]] = {
    "timm": (lambda: {"state_dict": state(), "state_dict_ema": state(2)}, "state_dict", "state_dict_ema"),
    "torchvision": (lambda: {"model": state(), "model_ema": AveragedModel(net(2)).state_dict()}, "model", "model_ema"),
    "Lightning": (
        lambda: {"state_dict": prefixed("net.", state()) | prefixed("ema_net.", state(2))},
        "state_dict/net",
        "state_dict/ema_net",
    ),
    "a callback": (
        lambda: {"state_dict": state(2), "current_model_state": state()},
        "current_model_state",
        "state_dict",
    ),
    "a plain one with a copy": (lambda: state() | prefixed("ema.", state(2)), ".", "ema"),
    "a list in order": (
        lambda: {"model": state(), "ema": {"decay": 0.9, "shadow_params": list(net(2).parameters())}},
        "model",
        "ema/shadow_params",
    ),
    "parameters alone": (
        lambda: {"model": state(), "ema": {"shadow": dict(net(2).named_parameters())}},
        "model",
        "ema/shadow",
    ),
    "an optimiser's": (
        lambda: {"state_dict": state(), "optimizer_states": [{"ema": list(net(2).parameters())}]},
        "state_dict",
        "optimizer_states/0/ema",
    ),
}


@pytest.mark.parametrize("what", TWO)
def test_one_of_two_sets_of_weights_is_chosen_never_guessed(tmp_path: Path, what: str) -> None:
    make, plain, averaged = TWO[what]
    held = make()
    file = tmp_path / "w.pt"
    torch.save(torch.utils._pytree.tree_map(lambda x: x.detach() if isinstance(x, torch.Tensor) else x, held), file)
    with pytest.raises(BadInput) as refused:
        read_weights(str(file), net())
    assert f"{file}#{plain}" in str(refused.value) and f"{file}#{averaged}" in str(refused.value)
    (said,) = reads(f"{file}#{plain}")
    assert averaged in said
    found = read_weights(f"{file}#{averaged}", net())
    for name, value in net(2).named_parameters():
        assert torch.equal(found.state[name], value)
    assert any(averaged in note for note in found.notes)


def test_sets_of_several_epochs_are_named_by_their_numbers(tmp_path: Path) -> None:
    torch.save({10: state(2), 20: state()}, tmp_path / "w.pt")
    reads(f"{tmp_path / 'w.pt'}#20")


def test_buffers_that_averaged_parameters_lack_are_named(tmp_path: Path) -> None:
    averaged = {name: value.detach() for name, value in net(2).named_parameters()}
    torch.save({"model": state(), "ema": averaged}, tmp_path / "w.pt")
    found = read_weights(f"{tmp_path / 'w.pt'}#ema", net())
    assert torch.equal(found.state["1.running_mean"], state()["1.running_mean"])
    assert any("1.running_mean" in note for note in found.notes)


@pytest.mark.parametrize("what", ["other", "half"])
def test_two_sets_that_differ_in_a_buffer_or_in_precision_are_two(tmp_path: Path, what: str) -> None:
    torch.save({"model": state(), "best": other() if what == "other" else half()}, tmp_path / "w.pt")
    reads(f"{tmp_path / 'w.pt'}#model")


def test_a_value_beside_the_layers_is_left_out_by_the_part_that_is_named(tmp_path: Path) -> None:
    torch.save(tempered(), tmp_path / "w.pt")
    assert "temperature" in " ".join(reads(f"{tmp_path / 'w.pt'}#model"))


def other() -> State:
    return {**state(), "1.running_mean": torch.ones(4)}


def half() -> State:
    return {name: value.half() if value.is_floating_point() else value for name, value in state().items()}


def tempered() -> State:
    return {**prefixed("model.", state()), "temperature": torch.tensor(2.0)}


def numbered(folder: Path) -> None:
    """Save checkpoints whose names may be those of parts of one model."""
    for number in (1, 2, 3):
        torch.save(state(number), folder / f"epoch-{number:05}-of-00003.bin")


def pretrained(folder: Path, adapter: bool = False, index: str = "") -> None:
    """Save what is no whole model of save_pretrained: three files, or an adapter, or an index of ``index``."""
    (folder / "config.json").write_text("{}")
    for name in ("part-0.bin", "part-1.bin", "optimizer.bin"):
        torch.save({"step": 3}, folder / name)
    if adapter:
        (folder / "adapter_config.json").write_text("{}")
    if index:
        (folder / "pytorch_model.bin.index.json").write_text(json.dumps({"weight_map": {"0.weight": index}}))


HELD: list[tuple[str, Callable[[], Any], str]] = [
    ("w.pt", lambda: {10: state(2), 20: state()}, r"w\.pt#10 or .*w\.pt#20"),
    ("w.pt", lambda: {name: value.to("meta") for name, value in state().items()}, "does not fit"),
    ("w.pt", lambda: {"model": state(), "best": other()}, "2 sets of weights"),
    ("w.pt", lambda: {"model": state(), "best": half()}, "2 sets of weights"),
    (
        "w.pt",
        lambda: {**state(), "4.weight": torch.ones(2, 2)},
        r"all of its 9 tensors, and 1 not in the architecture \(4\.weight\)",
    ),
    ("w.pt", tempered, r"1 not in the architecture \(temperature\).*write .*w\.pt#model"),
    ("w.pt#teacher", tempered, "no weights of the architecture under 'teacher'"),
]
"""How a plan names w.pt, what is in it, and what is said."""


def saved(held: Callable[[], Any], protocol: int = 2) -> Callable[[Path], None]:
    """Return what saves a file of torch.save in a folder."""
    return lambda folder: torch.save(held(), folder / "w.pt", pickle_protocol=protocol)


UNFIT: list[tuple[str, Callable[[Path], None], str]] = [
    *((name, saved(held), said) for name, held, said in HELD),
    ("w.pt", saved(state, 4), r"protocol 4.*torch\.save\(model\.state_dict\(\)"),
    ("epoch-00001-of-00003.bin", numbered, "no parts of one model"),
    (".", lambda folder: pretrained(folder, index="../w.bin"), "is not in the folder"),
    (".", pretrained, r"3 files of weights.*allowed: a folder of save_pretrained"),
    (".", lambda folder: pretrained(folder, adapter=True), "adapter"),
]
"""How a plan names weights, what writes them into a folder, and what is said."""


@as_one("name, write, said", UNFIT)
def test_what_is_not_one_whole_model_is_refused(
    tmp_path: Path, name: str, write: Callable[[Path], None], said: str
) -> None:
    write(tmp_path)
    with pytest.raises(BadInput, match=said) as refused:
        read_weights(str(tmp_path / name), net())
    assert "\n" not in str(refused.value)


class Tied(nn.Module):
    """Two layers of one weight."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(3, 3, bias=False), nn.Linear(3, 3, bias=False)
        self.b.weight = self.a.weight


def test_a_tied_weight_may_stand_once_and_never_as_two(tmp_path: Path) -> None:
    weight = torch.rand(3, 3)
    save_file({"b.weight": weight}, tmp_path / "w.safetensors")
    with torch.device("meta"):
        shaped = Tied()
    found = read_weights(str(tmp_path / "w.safetensors"), shaped)
    assert torch.equal(found.state["a.weight"], weight)
    torch.save({"a.weight": weight, "b.weight": weight + 1}, tmp_path / "w.pt")
    with pytest.raises(BadInput, match=r"a\.weight and b\.weight differ"):
        read_weights(str(tmp_path / "w.pt"), shaped)


def test_a_folder_of_save_pretrained_is_read(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    save_file(state(), tmp_path / "model.safetensors")
    torch.save({"step": 3}, tmp_path / "optimizer.bin")
    assert form_of(str(tmp_path)) == "weights"
    reads(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    for place, names in enumerate((["0.weight", "0.bias"], [name for name in state() if name[0] != "0"])):
        torch.save({name: state()[name] for name in names}, tmp_path / f"part-{place}.bin")
    mapped = {name: f"part-{int(name[0] != '0')}.bin" for name in state()}
    (tmp_path / "pytorch_model.bin.index.json").write_text(json.dumps({"weight_map": mapped}))
    reads(tmp_path)


SHARD = "model-00002-of-00003.safetensors"


def divided(folder: Path, parts: int = 3) -> list[Path]:
    """Write the weights as save_pretrained divides them, with their index; return the files of tensors."""
    files = [folder / f"model-{part + 1:05}-of-{parts:05}.safetensors" for part in range(parts)]
    place = {name: files[number % parts] for number, name in enumerate(state())}
    for file in files:
        save_file({name: value for name, value in state().items() if place[name] == file}, file)
    index = {"weight_map": {name: file.name for name, file in place.items()}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return files


@pytest.mark.parametrize(
    ("named", "indexed"),
    [(SHARD, True), (SHARD, False), (".", True), (".", False), ("model.safetensors.index.json", True)],
)
def test_any_file_of_a_divided_model_stands_for_all_of_them(tmp_path: Path, named: str, indexed: bool) -> None:
    files = divided(tmp_path)
    if not indexed:
        (tmp_path / "model.safetensors.index.json").unlink()
    given = tmp_path / named
    reads(given)
    before = digest_of(str(given))
    files[2].unlink()
    with pytest.raises(BadInput, match=files[2].name):
        read_weights(str(given), net())
    save_file({name: value + 1 for number, (name, value) in enumerate(state().items()) if number % 3 == 2}, files[2])
    assert digest_of(str(given)) != before


def test_of_two_models_in_a_folder_the_one_that_is_read_is_named(tmp_path: Path) -> None:
    save_file(state(), tmp_path / "model.safetensors")
    torch.save(state(2), tmp_path / "pytorch_model.bin")
    (said,) = reads(tmp_path)
    assert said.index("model.safetensors is read") < said.index("pytorch_model.bin")


def test_a_file_may_have_the_mark_of_a_part_in_its_name(tmp_path: Path) -> None:
    torch.save(state(), tmp_path / "run#3.pt")
    reads(tmp_path / "run#3.pt")
    assert file_and_part("gone/run#3.pt") == ("gone/run#3.pt", None)
    assert file_and_part("gone/run.pt#ema/shadow") == ("gone/run.pt", "ema/shadow")
    assert file_and_part("https://host/m.pt#ema") == ("https://host/m.pt#ema", None)


names = st.sampled_from(["module", "_orig_mod", "model", "net", "ema", "0", "weights_of", "état"])


@settings(max_examples=6, deadline=None)
@given(prefix=st.lists(names, max_size=3), nest=st.lists(names, max_size=3), order=st.permutations(list(state())))
def test_any_prefix_in_any_order_reads_the_same(
    tmp_path_factory: pytest.TempPathFactory, prefix: list[str], nest: list[str], order: list[str]
) -> None:
    held: Any = {"".join(f"{part}." for part in prefix) + name: state()[name] for name in order}
    for key in nest:
        held = {key: held, "epoch": 3}
    file = tmp_path_factory.mktemp("w") / "w.pt"
    torch.save(held, file)
    reads(file)
