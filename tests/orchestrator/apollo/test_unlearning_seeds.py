"""What an unlearning method draws at random hangs on the method, not on the name that a plan gives it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from audits.seeds import derive_seed
from orchestrator.apollo.design import names_in_seeds
from orchestrator.apollo.stages import unlearning
from orchestrator.kinds import load_plan, open_design
from tests.orchestrator.apollo.plan_cases import TINY

PLAIN = "{method: finetune, learning_rate: 0.1}"
HOT = "{method: finetune, as: hot, learning_rate: 0.1}"
MILD = "{method: finetune, as: mild, learning_rate: 0.01}"


def names(*entries: str) -> dict[str, str]:
    """Return label → name in seeds of the entries of a plan."""
    methods = load_plan(None, [f"unlearning=[{', '.join(entries)}]"]).unlearning  # type: ignore[attr-defined]
    return names_in_seeds(methods)


def test_a_rename_draws_nothing_anew() -> None:
    assert names(PLAIN)["finetune"] == names(HOT)["hot"] == "finetune"
    assert names(HOT, MILD) == {"identity": "identity", "hot": "finetune", "mild": "finetune", "retrain": "retrain"}


def test_entries_without_a_name_of_their_own_draw_as_ever() -> None:
    for entries in ([PLAIN, HOT], [HOT, PLAIN]):
        found = names(*entries)
        assert found["finetune"] == "finetune" and found["hot"] == "hot"  # a repetition
    assert names("{method: retrain, as: fresh}") == {"identity": "identity", "fresh": "retrain"}


def keys(*entries: str) -> dict[str, str]:
    """Return label → key of the target's unlearned model of the entries of a plan."""
    plan: Any = load_plan("apollo-fashion14", [*TINY, f"unlearning=[{', '.join(entries)}]"])
    design: Any = open_design(plan)
    member = design.targets[0]
    return {entry.label: design.unlearn_job(member, entry).key for entry in plan.unlearning}


def test_what_draws_alike_has_one_key_and_what_does_not_has_two() -> None:
    alone, renamed, both = keys(PLAIN), keys(HOT), keys(PLAIN, HOT)
    assert alone["finetune"] == renamed["hot"] == both["finetune"] != both["hot"]


def test_the_unlearner_is_handed_that_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    seeds: list[int] = []
    monkeypatch.setattr(unlearning, "stored_model", lambda *_: None)
    monkeypatch.setattr(unlearning, "builder_of", lambda *_: None)
    monkeypatch.setattr(unlearning, "pack_weights", lambda _: b"")
    for entry in (PLAIN, HOT):
        plan: Any = load_plan(None, [f"unlearning=[{entry}]"])
        method = next(each for each in plan.unlearning if each.method == "finetune")
        own = type(method.unlearner())
        monkeypatch.setattr(own, "unlearn", lambda *_, seed, **__: seeds.append(seed))
        member = SimpleNamespace(name="target-0", forget=None, retain=None)
        design = SimpleNamespace(
            plan=plan,
            by_label={method.label: method},
            names_in_seeds=names_in_seeds(plan.unlearning),
            member=lambda _, member=member: member,
            trained=lambda _: None,
            recipe_of=lambda _: None,
        )
        context: Any = SimpleNamespace(
            design=design, tensors=lambda _: None, keeper=None, team=None,
            seed=lambda purpose, *index: derive_seed(0, purpose, *index),
        )  # fmt: skip
        unlearning.unlearn(context, SimpleNamespace(member="target-0", label=method.label))  # type: ignore[arg-type]
    assert seeds == [derive_seed(0, "unlearn", "finetune", "target-0")] * 2
