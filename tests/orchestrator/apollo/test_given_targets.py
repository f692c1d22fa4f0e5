"""Audits of an unlearned model that a foreign script made: what they find, what they ask, and what they leave alone."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from torch import nn

from audits.data.catalogue import load
from audits.errors import BadInput
from audits.statistics.controls import interval_p
from audits.statistics.intervals import delong_interval
from audits.statistics.one_target import SAYS
from orchestrator.apollo.headline import HEADLINE
from orchestrator.apollo.page.reading import ApolloRun, read_apollo_run
from orchestrator.apollo.page.verdict import verdict
from orchestrator.apollo.published import published
from orchestrator.apollo.result.judging import judge as judged_by_rows
from orchestrator.cli.main import main
from orchestrator.engine.run.run import Result
from orchestrator.engine.store.store import Store
from orchestrator.judgement.gate import failures, gates_of, judge_gates
from orchestrator.kinds import check_against_data, kind_named, plan_from
from tests.cases.runs import audited, jobs_of
from tests.cases.smallest_plans import smallest_plan

pytestmark = pytest.mark.slow

MEMBERS = np.sort(np.random.default_rng(0).permutation(70000)[:200])
FORGET, RETAINED = MEMBERS[::4], np.setdiff1d(MEMBERS, MEMBERS[::4])
MADE = ("finetuned", "untouched", "retrained")


def trained(net: nn.Module, ids: np.ndarray, epochs: int, wrong: Sequence[int] = ()) -> nn.Module:
    """Train ``net`` further, by a loop that knows nothing of orch; ``wrong``: points whose labels are wrong."""
    x, y = load("fashion14").tensors(ids).all()
    y = (y + torch.from_numpy(np.isin(ids, wrong))) % 10
    optimiser = torch.optim.AdamW(net.parameters(), 4e-3)
    for _ in range(epochs):
        for rows in torch.randperm(len(y)).split(40):
            optimiser.zero_grad()
            nn.functional.cross_entropy(net(x[rows]), y[rows]).backward()
            optimiser.step()
    return net


def new_net() -> nn.Module:
    """Return an untrained net."""
    return nn.Sequential(nn.Flatten(), nn.Linear(196, 64), nn.ReLU(), nn.Linear(64, 10))


def written(place: Path) -> None:
    """Write the files of a foreign script: an original, what became of it in three ways, and lists of points."""
    torch.manual_seed(5)
    original = trained(new_net(), MEMBERS, 25)
    torch.save(original.state_dict(), place / "original.pt")
    torch.save(original.state_dict(), place / "untouched.pt")
    torch.save(trained(original, RETAINED, 2).state_dict(), place / "finetuned.pt")
    torch.save(trained(copy.deepcopy(original), MEMBERS, 120, wrong=FORGET).state_dict(), place / "over.pt")
    torch.save(trained(new_net(), RETAINED, 25).state_dict(), place / "retrained.pt")
    np.savetxt(place / "members.txt", MEMBERS, fmt="%d")
    np.savetxt(place / "forget.txt", FORGET, fmt="%d")


def plan_of(place: Path, model: str, **changes: Any):
    """Return the plan that audits the file ``model``."""
    target = {
        "weights": str(place / f"{model}.pt"),
        "members": str(place / "members.txt"),
        "forget": str(place / "forget.txt"),
    }
    raw = {
        "audit": {"kind": "apollo", "attacks": ["apollo", "single_query", "u_lira"], "fpr": [0.2]},
        "data": {"name": "fashion14"},
        "target": target | ({"original": str(place / "original.pt")} if model == "finetuned" else {}),
        "split": {"train_size": 200, "shadow_pool": 1600, "test_pool": 250, "shadows": 8, "offline_shadows": 2},
        "model": {"name": "mlp", "settings": {"hidden": [64]}},
        "recipe": {"learning_rate": 0.004, "epochs": 25, "batch_size": 40},
        "unlearning": [{"method": "finetune", "learning_rate": 0.004, "epochs": 2}],
        "compute": {"workers": 0, "store": str(place / "store")},
        "seed": 1,
    }
    raw["audit"] |= {"search": {"steps": 1}, "bootstrap": 20, "permutations": 40}
    plan = plan_from(raw)
    return plan.changed(changes) if changes else plan


def test_in_short_the_given_model_alone_is_judged_and_a_control_that_fails_is_no_all_clear(tmp_path: Path) -> None:
    """Of a network that nobody trained; the long tests of this file are of networks that a foreign script trained."""
    plan = smallest_plan("apollo, given", tmp_path / "store")
    result = audited(plan, tmp_path / "out")
    document, scores = result.document, result.scores.to_pydict()
    judged_alone = {(row["unlearner"], row["attack"]) for row in document["table"]}
    assert judged_alone == {
        (name, attack) for name in ("identity", "gradient_ascent", "retrain") for attack in plan.audit.attacks
    }
    assert set(scores["target"]) == {0}
    points = set(zip(scores["group"], scores["point_id"], strict=True))
    assert {place for group, place in points if group == "forget"} <= set(range(30))
    assert {place for group, place in points if group == "unseen"}.isdisjoint(range(60))
    assert not any(row["above_chance"] for row in document["table"])
    assert states_of(document)["identity"] == "failed"
    assert document["verdict"]["level"] == "cannot be told"
    assert outcome_of(document, "posteriors.auc=0.99") == "inconclusive"

    before = {job.key for job in jobs_of(plan, "train", "score")}
    state = torch.load(plan.target.weights, weights_only=True)
    torch.save({name: value + 1 for name, value in state.items()}, plan.target.weights)
    changed = [(job.stage, job.label) for job in jobs_of(plan, "train", "score") if job.key not in before]
    assert changed == [("score", "gradient_ascent")], "an edited file is another target, and no shadow trains anew"


@dataclass(frozen=True)
class Done:
    """Audits of three models: where the files are, and the results."""

    place: Path
    results: dict[str, Result]

    def rows(self, model: str) -> dict[tuple[str, str], dict[str, Any]]:
        """Return the rows of the table by unlearner and attack."""
        return {(row["unlearner"], row["attack"]): row for row in self.results[model].document["table"]}


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Done:
    place = tmp_path_factory.mktemp("given")
    written(place)
    return Done(place, {name: audited(plan_of(place, name), place / name) for name in MADE})


@pytest.mark.long
def test_an_untouched_model_is_found_and_one_trained_without_the_points_is_not(done: Done) -> None:
    untouched, retrained = done.rows("untouched"), done.rows("retrained")
    for attack in ("apollo", "u_lira"):
        assert untouched["finetune", attack]["auc_low"] > 0.5 and untouched["finetune", attack]["above_chance"]
        assert retrained["finetune", attack]["auc_low"] < 0.5 < retrained["finetune", attack]["auc_high"]
        assert not retrained["finetune", attack]["above_chance"]


@pytest.mark.long
def test_a_model_that_forgot_too_much_is_no_all_clear(done: Done) -> None:
    plan = plan_of(done.place, "over", **{"audit.attacks": ["apollo", "u_lira", "label_gap"]})
    document = audited(plan, done.place / "over").document
    found = {row["attack"]: row for row in document["table"] if row["unlearner"] == "finetune"}
    assert not any(row["above_chance"] for row in found.values()) and found["label_gap"]["auc_high"] < 0.5
    assert outcome_of(document, "posteriors.auc=0.6") == "inconclusive"
    assert document["verdict"]["level"] == "cannot be told"
    assert "stand out the other way round" in document["verdict"]["headline"]
    assert states_of(document)["direction of scores"] == "failed"
    assert document["verdict"]["advice"].startswith("Do not treat this as erasure.")


@pytest.mark.long
def test_a_leak_that_the_shadows_do_not_confirm_cannot_be_told(done: Done) -> None:
    run = read_apollo_run(done.place / "untouched")
    (leak,) = run.result.verdict.findings
    wide = tuple(
        replace(row, auc=replace(row.auc, low=0.1)) if row.unlearner == "finetune" else row for row in run.result.table
    )
    unsure = replace(run, result=judged_by_rows(replace(run.result, table=wide)))
    (found,) = unsure.result.verdict.findings
    assert not any(each.kind == "leak" for each in verdict(unsure))
    assert leak.level == "leak" and found.level == "cannot be told"
    assert "its shadows disagree too much to judge it" in found.text


@pytest.mark.long
@pytest.mark.parametrize("wrong", ["the lists are swapped", "the members are others"])
def test_lists_that_stand_the_wrong_way_round_are_no_all_clear(done: Done, wrong: str) -> None:
    """In short for another kind: ``tests/orchestrator/mia/test_given.py``."""
    plan, learnt = plan_of(done.place, "untouched"), str(done.place / "members.txt")
    others = np.setdiff1d(np.random.default_rng(1).permutation(70000)[:230], MEMBERS)[:200]
    np.savetxt(done.place / "others.txt", others, fmt="%d")
    np.savetxt(done.place / "of-others.txt", others[::4], fmt="%d")
    changes = {"target.members": str(done.place / "others.txt"), "target.forget": str(done.place / "of-others.txt")}
    if wrong == "the lists are swapped":
        changes |= {"target.non_members": learnt, "target.around": "retained", "split.test_pool": 100}
        changes |= {"audit.attacks": ["u_lira", "label_gap"]}
    document = audited(plan.changed(changes), done.place / wrong.replace(" ", "-")).document
    assert outcome_of(document, "posteriors.auc=0.9") == "inconclusive"
    assert document["verdict"]["level"] == "cannot be told", document["verdict"]["headline"]
    assert states_of(document)["members are learnt"] == "failed"


@pytest.mark.long
def test_the_original_shows_what_attacks_see_in_it(done: Done) -> None:
    """The control is judged as the same file is as a target by shadows of the method that does nothing."""
    plan = plan_of(done.place, "untouched", unlearning=[{"method": "finetune", "learning_rate": 1e-12, "epochs": 1}])
    document = audited(plan, done.place / "by-nothing").document
    same = {row["attack"]: row for row in document["table"] if row["unlearner"] == "finetune"}
    for attack in ("apollo", "single_query", "u_lira"):
        row = done.rows("finetuned")["identity", attack]
        assert row["auc"] == pytest.approx(same[attack]["auc"], abs=0.02)
    with_original, alone = (
        [each["why"] for each in done.results[name].document["verdict"]["controls"] if each["name"] == "identity"]
        for name in ("finetuned", "untouched")
    )
    assert "recognised in the given model before unlearning" in with_original[0]
    assert alone[0].startswith("Only target.original can show")


@pytest.mark.long
def test_what_was_given_is_named_apart_from_own_models(done: Done) -> None:
    plan = plan_of(done.place, "finetuned")
    design = kind_named("apollo").lay_out(plan, load("fashion14"), "cpu", None)
    names = {each.name: each.reference.stage for each in published(design)}
    own = {"target-0": "train", "retrain-0": "unlearn"}
    assert names == {"given-original": "given", "given": "given", **own}


@pytest.mark.long
@pytest.mark.parametrize(
    ("model", "at_chance", "state"),
    [
        ("untouched", {"finetune"}, "held"),
        ("finetuned", {"finetune"}, "held"),
        ("finetuned", {"finetune", "identity"}, "failed"),
    ],
)
def test_an_original_in_which_no_attack_sees_a_point_is_no_all_clear(
    done: Done, model: str, at_chance: set[str], state: str
) -> None:
    blind = {"auc": 0.5, "auc_low": 0.4, "auc_high": 0.6, "auc_p": 0.9, "auc_p_holm": 1.0, "above_chance": False}
    read = done.results[model].document
    rows = [row | (blind if row["unlearner"] in at_chance else {}) for row in read["table"]]
    document = judged_by_rows(ApolloRun.of(read | {"table": rows}).result).document()
    assert states_of(document)["identity"] == state
    (told,) = [each["why"] for each in document["verdict"]["controls"] if "identity" in each["name"]]
    assert ("not trained on the points of target.forget" in told) == (state == "failed")
    if model == "untouched":
        assert document["verdict"]["level"] == "no leak seen"
    if state == "failed":
        assert document["verdict"]["level"] == "cannot be told"
        assert outcome_of(document, "posteriors.auc=0.9") == "inconclusive"


@pytest.mark.long
def test_a_forget_list_that_the_target_never_saw_is_no_all_clear_beside_its_original(done: Done) -> None:
    """In short: the test above."""
    others = np.setdiff1d(np.random.default_rng(3).permutation(70000)[:60], MEMBERS)[:50]
    np.savetxt(done.place / "unknown.txt", others, fmt="%d")
    np.savetxt(done.place / "with-unknown.txt", np.union1d(RETAINED, others), fmt="%d")
    lists = {"members": "with-unknown.txt", "forget": "unknown.txt"}
    changes = {f"target.{name}": str(done.place / file) for name, file in lists.items()}
    alone = plan_of(done.place, "finetuned", **changes, **{"target.original": None})
    without = audited(alone, done.place / "unknown-alone").document
    beside = audited(plan_of(done.place, "finetuned", **changes), done.place / "unknown").document
    assert states_of(without)["identity"] == "held"
    assert states_of(beside)["identity"] == "failed"
    assert (without["verdict"]["level"], beside["verdict"]["level"]) == ("no leak seen", "cannot be told")
    assert outcome_of(beside, "posteriors.auc=0.9") == "inconclusive"
    (told,) = [each["why"] for each in beside["verdict"]["controls"] if "identity" in each["name"]]
    assert "not trained on the points of target.forget" in told


def outcome_of(document: dict[str, Any], limit: str) -> str:
    """Return how a result stands to a limit."""
    plan = plan_from(document["plan"])
    (found,) = judge_gates(gates_of([limit], HEADLINE, plan), HEADLINE, plan, document).limits
    return found.outcome


def states_of(document: dict[str, Any]) -> dict[str, str]:
    """Return control → how it came out."""
    return {each["name"]: each["state"] for each in document["verdict"]["controls"]}


@pytest.mark.long
def test_controls_are_the_same_for_every_target_but_for_its_original(done: Done) -> None:
    first, second, third = (done.rows(name) for name in MADE)
    for attack in ("apollo", "single_query", "u_lira"):
        for control in ("identity", "retrain"):
            rows = [each[control, attack] for each in (first, second, third)]
            alike = [{name: value for name, value in row.items() if not name.endswith("_holm")} for row in rows]
            assert alike[1] == alike[2]  # but for the correction over all rows
            assert (alike[0] == alike[1]) == (control == "retrain")
        assert first["retrain", attack]["control"] == "held"
        ends = (first["retrain", attack][name] for name in ("auc", "auc_low", "auc_high"))
        assert first["retrain", attack]["auc_p"] >= interval_p(*ends, null=0.5, level=0.95, degrees=1e9)
    assert first["identity", "apollo"]["auc_low"] > 0.5
    trained = [result.document["population"]["trained"] for result in done.results.values()]
    assert trained[0] == 11 + 11 + 10 and trained[1:] == [0, 0]  # its own model and shadows; finetune: shadows alone


@pytest.mark.long
def test_intervals_are_over_points_and_shadows_and_say_so(done: Done) -> None:
    table = pq.read_table(done.place / "untouched" / "scores.parquet").to_pandas()
    row = done.rows("untouched")["finetune", "u_lira"]
    own = table[(table.unlearner == "finetune") & (table.attack == "u_lira")]
    low, high = delong_interval(own.score.to_numpy(), (own.group == "forget").to_numpy())
    assert row["auc_low"] < low and high < row["auc_high"]
    assert row["targets"] == 1 and row["roc_tpr"] is None
    for result in done.results.values():
        assert SAYS in result.document["warnings"]
        assert any("rate found on the target's known non-members" in line for line in result.document["warnings"])


@pytest.mark.long
def test_all_are_asked_about_forgotten_points_and_points_that_they_never_saw(done: Done) -> None:
    tables = [pq.read_table(done.place / name / "scores.parquet").to_pandas() for name in MADE]
    points = [table.groupby("group").point_id.unique() for table in tables]
    assert sorted(points[0]["forget"]) == FORGET.tolist()
    assert len(points[0]["unseen"]) == 50 and not np.isin(points[0]["unseen"], MEMBERS).any()
    for each in points[1:]:
        assert sorted(each["unseen"]) == sorted(points[0]["unseen"])


@pytest.mark.long
def test_utility_tells_what_unlearning_changed_where_the_original_is_given(done: Done) -> None:
    with_original, without = (
        {row["unlearner"]: row for row in done.results[name].document["utility"]} for name in ("finetuned", "untouched")
    )
    found = with_original["finetune"]
    states = [torch.load(done.place / f"{name}.pt") for name in ("original", "finetuned")]
    moved = sum(
        ((one - other).double() ** 2).sum() for one, other in zip(*(each.values() for each in states), strict=True)
    )
    assert found["distance"] == pytest.approx(float(moved) ** 0.5) and found["test_accuracy_before"] > 0.5
    assert found["seconds"] is None and without["finetune"]["distance"] is None
    untouched = with_original["identity"]
    assert (untouched["distance"], untouched["seconds"]) == (0, None)
    assert untouched["test_accuracy"] == untouched["test_accuracy_before"] == found["test_accuracy_before"]
    assert untouched["forget_accuracy"] == without["finetune"]["forget_accuracy"]  # untouched.pt is the original
    assert without["identity"]["seconds"] == 0


@pytest.mark.long
def test_the_verdict_is_of_one_model(done: Done) -> None:
    said = {sentence.head: sentence.text for sentence in verdict(read_apollo_run(done.place / "untouched"))}
    assert "can be recognised" in said["Given model, by shadows of finetune"]
    assert said["Scope"].startswith(SAYS)
    advice = done.results["untouched"].document["verdict"]["advice"]
    assert "once it has been audited again" in advice and "more targets" not in advice  # there is but one


@pytest.mark.long
def test_workers_need_no_files_and_an_edited_file_is_another_target(done: Done, tmp_path: Path) -> None:
    plan = plan_from(json.loads(json.dumps(done.results["retrained"].document["plan"])))
    store = Store(done.place / "store")
    before = {job.key for job in jobs_of(plan, store=store)}
    hidden = done.place / "hidden"
    hidden.mkdir()
    for name in ("retrained.pt", "members.txt", "forget.txt"):
        (done.place / name).rename(hidden / name)
    assert {job.key for job in jobs_of(plan, store=store)} == before
    for name in ("members.txt", "forget.txt"):
        (hidden / name).rename(done.place / name)
    torch.save(new_net().state_dict(), done.place / "retrained.pt")
    with pytest.raises(BadInput, match="is not the file that the plan was written for"):
        audited(plan, tmp_path / "out")
    edited = jobs_of(plan_of(done.place, "retrained"), store=store)
    lost = {job.stage for job in edited if job.key not in before}
    assert lost == {"given", "search", "score", "utility"}
    assert {job.label for job in edited if job.key not in before} == {"", "finetune"}
    (hidden / "retrained.pt").rename(done.place / "retrained.pt")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"audit.radii": True}, "audit.radii is true"),
        ({"audit.disclosure": True}, "audit.disclosure is true"),
        ({"split.points": "memorised"}, "split.points is memorised"),
        ({"split.forget": {"classes": [1]}}, "split.forget names classes"),
        ({"data.groups": "groups.csv"}, "data.groups is given"),
        ({"unlearning": [{"method": "retrain"}]}, "unlearning has only the controls"),
        ({"audit.fpr": [0.05]}, r"by 50 unseen candidates: it needs 200.*raise split.candidates.unseen, or"),
    ],
)
def test_what_a_plan_cannot_say_beside_a_target(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    with pytest.raises(BadInput, match=said):
        plan_of(tmp_path, "finetuned", **changes)


@pytest.mark.long
def test_forgotten_points_are_members(done: Done, tmp_path: Path) -> None:
    odd = tmp_path / "forget.txt"
    odd.write_text("\n".join(map(str, [*FORGET[:30], 69999])))
    with pytest.raises(BadInput, match=r"target.forget has 1 point outside target.members, first 69999"):
        check_against_data(plan_of(done.place, "finetuned", **{"target.forget": str(odd)}))


@pytest.mark.long
def test_scores_are_judged_compared_and_gated_as_those_of_every_run(
    done: Done, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [str(done.place / name) for name in ("untouched", "retrained")]
    assert main(["compare", *runs, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["table"]
    same = [row for row in rows if "identity" in row["attack"] and row["metric"] == "auc"]
    assert same and all(row["difference"] == 0 for row in same)
    assert main(["score", f"{runs[0]}/scores.parquet", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["table"]
    document = done.results["untouched"].document
    assert failures(gates_of(["auc=0.5"], HEADLINE, plan_of(done.place, "untouched")), HEADLINE,
                    plan_of(done.place, "untouched"), document)  # fmt: skip


@pytest.mark.long
def test_shadows_train_on_the_members_where_others_are_few(done: Done, tmp_path: Path) -> None:
    others = np.setdiff1d(np.arange(70000), MEMBERS)[:400]
    np.savetxt(tmp_path / "others.txt", others, fmt="%d")
    few = {"target.non_members": str(tmp_path / "others.txt"), "audit.attacks": ["single_query"], "recipe.epochs": 1}
    with pytest.raises(BadInput, match=r"400 points are known as non-members.*set target.around to retained"):
        check_against_data(plan_of(done.place, "untouched", **few))
    plan = plan_of(done.place, "untouched", **few, **{"target.around": "retained"})
    assert {job.document["count"] for job in jobs_of(plan, "train")} == {200}
    result = audited(plan, tmp_path / "out")
    assert {row["unlearner"] for row in result.document["table"]} == {"identity", "finetune", "retrain"}


def test_attacks_that_read_more_than_a_target_shows_are_refused(tmp_path: Path) -> None:
    changes = {"target.weights": "http://localhost:1/answers", "target.served": {"gives": "labels"}}
    with pytest.raises(BadInput, match=r"u_lira reads posteriors, but target.weights.*shows labels alone"):
        plan_of(tmp_path, "untouched", **changes)


def test_what_is_not_read_beside_a_target_is_named(tmp_path: Path) -> None:
    assert not any("not read" in line for line in plan_of(tmp_path, "untouched").warnings)
    changed = plan_of(tmp_path, "untouched", **{"split.targets": 3, "split.forget": 0.2})
    assert "split.targets, split.forget: not read, for the target is given" in changed.warnings
