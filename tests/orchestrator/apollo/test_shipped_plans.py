"""The plans of Apollo's paper: what they promise, and each of them in miniature on files in the true layout."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from audits.apollo.design.split import overlap
from audits.data.cifar import CIFAR10, CIFAR100
from orchestrator.apollo.plan import ApolloPlan
from orchestrator.engine.cost.estimate import estimate
from orchestrator.kinds import check_against_data, kind_named, load_plan
from tests.audits.data import test_cifar as test_data_cifar
from tests.cases.runs import audited

PLANS = ("apollo-cifar10", "apollo-cifar100", "apollo-imagenet")
FAST = ("apollo-cifar10-fast", "apollo-imagenet-fast")
POOLS = {"apollo-cifar10": (20_000, 20_000, 10_000), "apollo-imagenet": (512_466, 512_466, 256_235)}
ONE_SMALL_SET = {"split.targets": 1, "split.shadows": 4, "split.offline_shadows": 2, "audit.fpr": [0.5]}
SMALL = (
    "split.targets=1",
    "split.train_size=32",
    "split.target_pool=64",
    "split.shadow_pool=128",
    "split.test_pool=40",
    "split.forget=0.4",
    "split.candidates={forget: 6, unseen: 20}",
    "split.shadows=4",
    "split.offline_shadows=2",
    "model.settings.width=2",
    "recipe.epochs=1",
    "audit.search.steps=1",
    "audit.fpr=[0.5]",
    "audit.bootstrap=20",
    "audit.permutations=20",
    *(f"unlearning.{name}.epochs=1" for name in ("gradient_ascent", "finetune", "bad_teacher", "salun")),
    "unlearning.scrub.epochs=2",
    "unlearning.sfr_on.iterations=3",
    "compute.chunk=64",
    "compute.workers=0",
)


@pytest.mark.parametrize("name", PLANS)
def test_the_settings_are_those_of_the_paper(name: str) -> None:
    plan = load_plan(name)
    split, search, recipe = plan.split, plan.audit.search, plan.recipe
    assert (split.target_pool, split.shadow_pool, split.test_pool) == POOLS.get(name, POOLS["apollo-cifar10"])
    assert (split.shadows, split.forget, split.candidates.forget, split.candidates.unseen) == (32, 0.1, 200, 200)
    assert (search.alpha, search.beta, search.epsilon, search.steps, search.learning_rate) == (1, 4, 1, 50, 0.1)
    assert (recipe.optimizer, recipe.learning_rate, recipe.epochs, recipe.batch_size) == ("adamw", 1e-4, 100, 64)
    assert (recipe.augment_shift, recipe.flip, recipe.private) == (0, False, False)
    assert [entry.method for entry in plan.unlearning] == [
        "identity", "gradient_ascent", "finetune", "bad_teacher", "scrub", "salun", "sfr_on", "retrain",
    ]  # fmt: skip
    assert plan.notes == ()


@pytest.mark.parametrize("name", PLANS)
def test_the_sizes_keep_the_promised_rates(name: str) -> None:
    design = load_plan(name).split.design()
    assert overlap(design) <= 0.5
    assert design.targets * design.train_size <= design.target_pool


def written(name: str, root: Path) -> Path:
    """Write 240 small images in the layout of the data set that the plan ``name`` reads."""
    if name.startswith("apollo-imagenet"):
        random = np.random.default_rng(0)
        for number in range(240):
            part, wnid = "train" if number < 200 else "val", ("n01440764", "n02084071", "n03000000")[number % 3]
            (root / part / wnid).mkdir(parents=True, exist_ok=True)
            pixels = random.integers(0, 256, (36, 40, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(root / part / wnid / f"{number}.JPEG", "JPEG")
    else:
        kind = CIFAR100 if name == "apollo-cifar100" else CIFAR10
        test_data_cifar.write_pickles(kind, root, images=240 // len(kind.python_files))
    return root


def miniature(name: str, place: Path) -> ApolloPlan:
    small = ["data.name=imagenet?size=32"] if name.startswith("apollo-imagenet") else []
    return load_plan(
        name, [*SMALL, *small, f"data.root={written(name, place / 'data')}", f"compute.store={place / 's'}"]
    )


def test_the_plan_of_cifar100_is_that_of_cifar10_on_other_images() -> None:
    first, second = (load_plan(name).resolved() for name in ("apollo-cifar10", "apollo-cifar100"))
    assert first | {"data": {**first["data"], "name": "cifar100"}} == second


EPOCHS = {"apollo-cifar10": 24, "apollo-imagenet": 16}


@pytest.mark.parametrize("name", EPOCHS)
def test_the_fast_plan_is_the_papers_but_for_its_recipe(name: str) -> None:
    paper, fast = load_plan(name), load_plan(f"{name}-fast")
    first, second = paper.resolved(), fast.resolved()
    assert first | {"recipe": second["recipe"]} == second
    assert (fast.recipe.epochs, fast.recipe.dtype) == (EPOCHS[name], "bfloat16")
    assert fast.notes == ()


@pytest.mark.parametrize("name", ["apollo-cifar10", pytest.param("apollo-imagenet", marks=pytest.mark.long)])
def test_the_fast_plan_costs_its_share_of_the_epochs(name: str) -> None:
    paper, fast = load_plan(name), load_plan(f"{name}-fast")
    one_set = [each.changed(ONE_SMALL_SET) for each in (paper, fast)]
    seconds = [
        estimate(kind_named("apollo"), each, images_per_second=1000.0).stages[0].unit_seconds for each in one_set
    ]
    assert seconds[1] / seconds[0] == pytest.approx(
        EPOCHS[name] / 100, rel=0.02
    )  # the last batch of an epoch is padded


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "changes"),
    [
        (PLANS[0], {"unlearning": [{"method": "finetune", "epochs": 1}], "audit.attacks": ["apollo", "u_lira"]}),
        *(pytest.param(name, {}, marks=pytest.mark.long) for name in (*PLANS, *FAST)),
    ],
)
def test_each_plan_runs_in_miniature(tmp_path: Path, name: str, changes: dict[str, Any]) -> None:
    """In short one method and two attacks; others: ``tests/audits/unlearning``, their files: ``tests/audits/data``."""
    plan = miniature(name, tmp_path).changed(changes)
    check_against_data(plan)
    out = tmp_path / "out"
    audited(plan, out)
    document = json.loads((out / "result.json").read_text())
    found = {(row["unlearner"], row["attack"]) for row in document["table"]}
    assert {unlearner for unlearner, _ in found} == {entry.label for entry in plan.unlearning}
    assert {attack for _, attack in found} == set(plan.audit.attacks)
