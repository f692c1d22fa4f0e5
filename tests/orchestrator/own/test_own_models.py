"""Models of users' own in plans: what they may be, what is refused in a line, and what their source decides."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest
import torch

from audits.errors import BadInput
from audits.gradients.gram import gram
from audits.models import MODELS, make_model
from audits.models.own import tried
from audits.own.code import load
from audits.own.permission import asking
from orchestrator.engine.plan.base import BasePlan
from orchestrator.engine.store.payloads import pack_weights, unpack_weights
from orchestrator.kinds import check_against_data, open_design
from tests.cases.own_components import edit, own_plan
from tests.cases.runs import audited
from tests.cases.smallest_plans import smallest_plan

SHAPE, CLASSES = (1, 8, 8), 10


def keys(plan: BasePlan) -> dict[str, set[str]]:
    """Return the keys of the jobs of a plan by stage."""
    found: dict[str, set[str]] = {}
    for job in open_design(plan).jobs():
        found.setdefault(job.stage, set()).add(job.key)
    return found


def test_the_signature_of_a_class_gives_the_settings(folder: Path, tmp_path: Path) -> None:
    plan = own_plan(tmp_path / "store")
    assert plan.resolved()["model"] == {
        "name": "python:nets:SmallNet",
        "settings": {"width": 16, "rates": [1.0, 1.0], "output": None},
    }
    check_against_data(plan)


def test_an_edit_makes_new_keys_from_the_next_plan_on_also_in_the_same_second(folder: Path, tmp_path: Path) -> None:
    before = keys(own_plan(tmp_path))
    edit(folder / "nets.py", '"""Networks."""', '"""All networks."""\n# a comment\n')
    (folder / "others.py").write_text("import nets, scaling\n")
    plan = own_plan(tmp_path)
    assert keys(plan) == before, "neither comments nor what no model imports decide"
    edit(folder / "scaling.py", "1.0", "2.0")  # a file of the same size, perhaps within a second
    assert keys(plan) == before, "the code that was imported is the code that runs"
    plan = own_plan(tmp_path)
    x = torch.rand(3, *SHAPE)
    doubled = plan.model.architecture().build(SHAPE, CLASSES, 0).eval()(x)
    after = keys(plan)
    for stage in ("train", "unlearn", "search", "score"):
        assert not before[stage] & after[stage], stage
    edit(folder / "scaling.py", "2.0", "1.0")
    plan = own_plan(tmp_path)
    assert keys(plan) == before
    assert torch.equal(doubled, 2 * plan.model.architecture().build(SHAPE, CLASSES, 0).eval()(x))


def test_what_is_imported_is_not_looked_for_again(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every job of a plan looks its components up; a folder that was not searched before may hold another of a name."""
    first, looked = load("python:nets:SmallNet"), list[str]()
    monkeypatch.setattr(importlib, "invalidate_caches", lambda: looked.append("for modules"))
    assert load("python:nets:SmallNet") is first and not looked
    (tmp_path / "elsewhere").mkdir()
    assert load("python:nets:SmallNet", tmp_path / "elsewhere") is first and not looked
    (tmp_path / "elsewhere" / "nets.py").write_text("SmallNet = None\n")
    with pytest.raises(BadInput, match="Python finds another module 'nets'"):
        load("python:nets:SmallNet", tmp_path / "elsewhere")


@pytest.mark.long
def test_what_a_model_does_not_import_decides_nothing(folder: Path, tmp_path: Path) -> None:
    before = keys(own_plan(tmp_path))
    (folder / "others.py").write_text("import nets\n")
    edit(folder / "scaling.py", "SCALE", "OTHER = 2\nSCALE")
    after = keys(own_plan(tmp_path))
    assert before["train"] != after["train"]
    (folder / "others.py").write_text("import nets, scaling\n")
    assert keys(own_plan(tmp_path)) == after


def test_equal_seeds_give_equal_weights_whatever_generator_they_draw_from(folder: Path) -> None:
    (folder / "drawing.py").write_text(
        "import random\nimport numpy as np\nimport torch\nfrom torch import nn\n"
        "def net(classes):\n    model = nn.Sequential(nn.Flatten(), nn.Linear(64, classes))\n"
        "    with torch.no_grad():\n        model[1].bias += random.random() + float(np.random.rand())\n"
        "    return model\n"
    )
    state = torch.get_rng_state()
    one, same, other = (
        make_model("python:drawing:net", {}).build(SHAPE, CLASSES, seed).state_dict() for seed in (1, 1, 2)
    )
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert not any(torch.equal(one[name], other[name]) for name in one)


def test_a_builder_and_a_picked_output_serve(folder: Path, tmp_path: Path) -> None:
    check_against_data(own_plan(tmp_path, model={"name": "python:nets:built", "settings": {"hidden": 4}}))
    plan = own_plan(tmp_path, model={"name": "python:nets:Named", "settings": {"output": "logits"}})
    check_against_data(plan)
    model = plan.model.architecture().build(SHAPE, CLASSES, 0)
    assert set(model.state_dict()) == {"hidden.weight", "hidden.bias", "head.weight", "head.bias"}
    assert model(torch.rand(3, *SHAPE)).shape == (3, CLASSES)


WRONG = {
    "no_module": "x = 3\ndef net(classes):\n    return 4\n",
    "wrong_width": "from torch import nn\ndef net():\n    return nn.Sequential(nn.Flatten(), nn.Linear(64, 3))\n",
    "wrong_size": "from torch import nn\ndef net(classes):\n    return nn.Sequential(nn.Flatten(), nn.Linear(5, 10))\n",
    "raising": "def net(classes):\n    raise KeyError('no weights\\nhere')\n",
    "no_weights": "from torch import nn\ndef net():\n    return nn.Sequential(nn.Flatten(), nn.AvgPool1d(6))\n",
    "complex_state": (
        "import torch\nfrom torch import nn\nclass net(nn.Module):\n    def __init__(self, classes):\n"
        "        super().__init__()\n        self.head = nn.Linear(64, classes)\n"
        "        self.register_buffer('phase', torch.zeros(2, dtype=torch.complex64))\n"
        "    def forward(self, x):\n        return self.head(x.flatten(1))\n"
    ),
    "broken_import": "import no_such_package\n",
}


@pytest.mark.parametrize(
    ("name", "settings", "says"),
    [
        ("python:nets", {}, "write it as python:module:name"),
        ("python:nets:SmalNet", {}, "did you mean 'SmallNet'"),
        ("python:nett:SmallNet", {}, "No module named 'nett'"),
        ("python:nets:SmallNet", {"widht": 3}, "model.settings.widht is not a field .did you mean 'width'"),
        ("python:nets:SmallNet", {"width": "wide"}, 'model.settings.width is "wide"; allowed: a whole number'),
        ("python:nets:Named", {}, "returns a dict of 'logits', 'inputs'; name the logits"),
        ("python:nets:Named", {"output": "logit"}, "output is 'logit', but the model returns a dict of 'logits'"),
        ("python:no_module:net", {}, "returned int; needed: a torch.nn.Module"),
        ("python:no_module:x", {}, "is int; needed: a class of nn.Module or a function"),
        ("python:wrong_width:net", {}, r"returns shape \(2, 3\); needed: logits of shape \(2, 10\)"),
        ("python:wrong_size:net", {}, r"cannot read points of shape \(1, 8, 8\)"),
        ("python:raising:net", {}, "raised KeyError: 'no weights"),
        ("python:no_weights:net", {}, "no parameters"),
        ("python:complex_state:net", {}, "keeps phase as torch.complex64"),
        ("python:broken_import:net", {}, "No module named 'no_such_package'"),
    ],
)
def test_what_cannot_be_audited_is_refused_in_a_line(
    folder: Path, tmp_path: Path, name: str, settings: dict[str, Any], says: str
) -> None:
    for module, text in WRONG.items():
        (folder / f"{module}.py").write_text(text)
    with pytest.raises(BadInput, match=says) as caught:
        check_against_data(own_plan(tmp_path, model={"name": name, "settings": settings}))
    assert "\n" not in str(caught.value) and "model" in str(caught.value)


def test_tied_weights_are_kept(folder: Path, tmp_path: Path) -> None:
    (folder / "tied.py").write_text(
        "from torch import nn\nclass net(nn.Module):\n    def __init__(self, classes):\n        super().__init__()\n"
        "        self.one = nn.Linear(64, 64)\n        self.two = nn.Linear(64, 64)\n"
        "        self.two.weight = self.one.weight\n        self.head = nn.Linear(64, classes)\n"
        "    def forward(self, x):\n        return self.head(self.two(self.one(x.flatten(1)).relu()).relu())\n"
    )
    plan = own_plan(tmp_path / "store", model={"name": "python:tied:net", "settings": {}})
    check_against_data(plan)
    model, other = (plan.model.architecture().build(SHAPE, CLASSES, seed) for seed in (1, 2))
    other.load_state_dict(unpack_weights(pack_weights(model)))
    x = torch.rand(3, *SHAPE)
    assert torch.equal(model(x), other(x))


def test_nothing_is_imported_before_it_is_allowed(folder: Path, tmp_path: Path) -> None:
    (folder / "nets.py").write_text("raise SystemError('it ran')\n")
    asked: list[Any] = []
    with asking(lambda named: bool(asked.append(named))):
        with pytest.raises(BadInput, match="python:nets:SmallNet, python:forgetting:Forget run code of the modules"):
            own_plan(tmp_path, unlearning=[{"method": "python:forgetting:Forget"}])
        with pytest.raises(BadInput, match="none of it was run"):
            MODELS["python:nets:SmallNet"]
    assert len(asked) == 2


@pytest.mark.long
@pytest.mark.parametrize("kind", ["tmia", "gnq"])
def test_other_audits_take_the_same_model(folder: Path, tmp_path: Path, kind: str) -> None:
    values = {"data.name": "digits", "model": {"name": "python:nets:Named", "settings": {"output": "logits"}}}
    plan = smallest_plan(kind, tmp_path / "store", **values)
    check_against_data(plan)
    assert audited(plan, tmp_path / "out").scores.num_rows > 0


def test_a_function_that_loads_its_own_weights_warns_of_nothing(folder: Path, recwarn: pytest.WarningsRecorder) -> None:
    torch.manual_seed(0)
    torch.save(torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10)).state_dict(), folder / "own.pt")
    (folder / "loading.py").write_text(
        "import torch\nfrom torch import nn\n"
        "def net(classes):\n    model = nn.Sequential(nn.Flatten(), nn.Linear(64, classes))\n"
        f"    model.load_state_dict(torch.load({str(folder / 'own.pt')!r}, weights_only=True))\n"
        "    return model\n"
    )
    architecture = make_model("python:loading:net", {})
    tried(architecture, SHAPE, CLASSES)
    assert not [each for each in recwarn if "meta" in str(each.message)]
    assert torch.equal(architecture.build(SHAPE, CLASSES, 0)[1].weight, torch.load(folder / "own.pt")["1.weight"])


def test_an_embedding_reads_points_as_the_ids_that_they_are(folder: Path) -> None:
    (folder / "words.py").write_text(
        "from torch import nn\n"
        "def net(classes):\n"
        "    return nn.Sequential(nn.Embedding(30, 4), nn.Flatten(), nn.Linear(12, classes))\n"
    )
    architecture = make_model("python:words:net", {})
    tried(architecture, (3,), CLASSES)
    model = architecture.build((3,), CLASSES, 0)
    points = torch.tensor([[0.0, 29.0, 5.0], [1.0, 1.0, 2.0]])
    assert torch.equal(model(points), model(points.long()))
    y = torch.tensor([0, 1])
    assert torch.equal(gram(model, points, y), gram(model, points.long(), y)), "read by its rule all the same"
    for wrong in (0.5, 30.0, -1.0):
        with pytest.raises(BadInput, match=f"python:words:net: an input is {wrong}"):
            model(torch.full((1, 3), wrong))
