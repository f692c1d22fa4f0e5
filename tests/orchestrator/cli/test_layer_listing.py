"""``orch ls models --layers``: the numbered layers of every architecture, as transfer learning counts them."""

from __future__ import annotations

import functools
import json
import sys

import pytest

from audits.models import MODELS, make_model
from orchestrator.cli import listing
from orchestrator.cli.listing import CLASSES, layered
from orchestrator.cli.main import main

once = functools.cache(layered)
"""Each architecture is built once for all tests."""

COUNTS = {
    "mlp": 3,
    "cnn": 4,
    "vgg16": 14,
    "vgg19": 17,
    "resnet18": 10,
    "resnet50": 18,
    "inception_v3": 17,
    "swin_t": 17,
    "bert": 2,
}


def test_every_architecture_is_listed_with_its_layers_numbered_from_one(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "layered", once)
    assert main(["ls", "models", "--layers", "--json"]) == 0
    models = {model["name"]: model for model in json.loads(capsys.readouterr().out)}
    assert {name: len(model["layers"]) for name, model in models.items()} == COUNTS
    assert set(models) == set(MODELS)
    for model in models.values():
        assert [layer["number"] for layer in model["layers"]] == list(range(1, len(model["layers"]) + 1))
        head = model["layers"][-1]
        assert head["kind"] == "Linear" and head["parameters"] % (CLASSES) == 0


@pytest.mark.parametrize("name", ["mlp", "cnn", "resnet18"])
def test_the_parameters_are_those_of_the_model(name: str) -> None:
    found = layered(name)
    model = make_model(name, {}).build(found.shape, found.classes, seed=0)
    assert sum(layer.parameters for layer in found.layers) == sum(weight.numel() for weight in model.parameters())
    for layer in found.layers:
        assert type(model.get_submodule(layer.name)).__name__ == layer.kind


def test_the_text_names_each_model_before_its_layers(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "layered", once)
    assert main(["ls", "models", "--layers"]) == 0
    lines = capsys.readouterr().out.splitlines()
    place = next(index for index, line in enumerate(lines) if line.startswith("cnn "))
    assert "n_frozen 0 to 3" in lines[place]
    assert lines[place + 1].split() == ["1", "0", "Conv2d", "448"]
    assert lines[place + 4].split() == ["4", "9", "Linear", "650"]
    assert lines[place + 5].startswith("inception_v3 ")


def test_only_models_have_layers(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ls", "plans", "--layers"]) == 2
    assert capsys.readouterr().err.splitlines() == [
        "orch: --layers lists the layers of models, not of plans; use `orch ls models --layers`"
    ]


def test_an_architecture_that_cannot_be_built_here_says_why(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "layered", lambda name: layered(name) if name == "bert" else once(name))
    monkeypatch.setitem(sys.modules, "transformers", None)
    assert main(["ls", "models", "--layers"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("bert  model.name: bert needs transformers") and "orch-audit[text]" in lines[0]
    assert lines[1].startswith("cnn ")
