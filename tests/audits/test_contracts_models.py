"""Every architecture: its weights come from its seed alone, points do not meet, all of it learns and can be stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from audits.conformance.models import CHECKS, ModelCase
from audits.errors import BadInput
from audits.models import MODELS, make_model
from tests.cases.families import as_one

CLASSES = 5


@dataclass(frozen=True)
class Small:
    """A small model of one architecture and the ``shape`` of points that it reads; ``tokens``: of a vocabulary."""

    settings: dict[str, Any]
    shape: tuple[int, ...] = (3, 32, 32)
    tokens: int = 0


SMALL = {
    "bert": Small({"vocabulary": 15, "hidden": 8, "heads": 2, "intermediate": 10, "longest": 9}, (6,), 15),
    "cnn": Small({"channels": [4, 6], "hidden": 8, "dropout": 0.1}),
    "inception_v3": Small({"width": 2}, (3, 75, 75)),
    "mlp": Small({"hidden": [12], "batch_norm": True, "dropout": 0.1}),
    "resnet18": Small({"width": 4}),
    "resnet50": Small({"width": 2}, (3, 16, 16)),
    "swin_t": Small({"width": 8, "depths": [1, 1, 2, 1]}),
    "vgg16": Small({"width": 2}),
    "vgg19": Small({"width": 2}),
}


def test_every_registered_architecture_is_here() -> None:
    assert set(MODELS) == set(SMALL)


@pytest.mark.parametrize("name", MODELS)
def test_every_architecture_keeps_to(name: str) -> None:
    small = SMALL[name]
    case = ModelCase(make_model(name, small.settings), small.shape, CLASSES, small.tokens)
    for check in CHECKS:
        check(case)


@as_one("name", MODELS)
def test_a_single_class_and_unknown_settings_are_refused(name: str) -> None:
    with pytest.raises(BadInput, match=f"{name} needs at least 2 classes"):
        make_model(name, SMALL[name].settings).build(SMALL[name].shape, 1, 0)
    with pytest.raises(TypeError, match="no_such_setting"):
        make_model(name, {"no_such_setting": 1})
