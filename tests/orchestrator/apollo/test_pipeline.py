"""One audit through all rooms, in this process: what it leaves behind, what it computes again, what it refuses."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from audits.apollo.attacks import ATTACKS
from audits.apollo.evidence import adversarial
from audits.errors import BadInput
from orchestrator.apollo.cost import label_queries
from orchestrator.apollo.plan import Audit
from orchestrator.apollo.stages.scoring import evidence
from orchestrator.apollo.stages.searching import case
from orchestrator.engine.jobs.job import Job, in_turn, missing
from orchestrator.engine.run.run import Run
from orchestrator.engine.store.faults import CorruptArtefact
from orchestrator.engine.store.store import Store
from orchestrator.kinds import kind_named, load_plan, open_design
from orchestrator.report import writing
from tests.cases import kept
from tests.cases.runs import UnshownRun, audited, context_of, draw_only, jobs_of, numbers_compared, swept
from tests.cases.smallest_plans import smallest_plan
from tune_spaces.registry import Sweep, fixed

pytestmark = pytest.mark.slow

TINY = (
    "split.targets=2",
    "split.train_size=60",
    "split.target_pool=120",
    "split.candidates={forget: 12, unseen: 12}",
    "recipe.epochs=3",
    "audit.attacks=[apollo, single_query, u_lira, rmia, loss_threshold]",
    "audit.fpr=[0.5]",
    "audit.search.steps=1",
    "audit.bootstrap=40",
    "audit.permutations=40",
    "compute.workers=0",
)

FEW_SHADOWS = ("split.shadows=4",)
ONE_TARGET = (*FEW_SHADOWS, "split.targets=1", "recipe.epochs=1", "audit.fpr=[0.9]")

FIRST = ("identity", "apollo")


def tiny_plan(store: Path, *overrides: str):
    return load_plan("apollo-smoke", (*TINY, f"compute.store={store}", *overrides))


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A finished audit: plan, output folder, store folder, result."""
    place = tmp_path_factory.mktemp("audit")
    plan = tiny_plan(place / "store")
    with pytest.MonkeyPatch.context() as patch:
        draw_only(patch, "auc")  # all figures: test_report.py
        patch.setattr(Run, "watch", UnshownRun.watch)
        patch.setattr(Run, "track", UnshownRun.track)  # tracked runs: test_aggregates.py, test_toy.py
        return plan, place / "out", place / "store", audited(plan, place / "out", shown=True)


def test_an_audit_leaves_the_promised_files(finished):
    _, out, _, result = finished
    names = {path.name for path in out.iterdir()}
    assert {"result.json", "scores.parquet", "report.html", "figures", "plan.yaml"} <= names
    assert {path.suffix for path in (out / "figures").iterdir()} == {".svg", ".png", ".csv"}
    document = json.loads((out / "result.json").read_text())
    assert document["schema"] == "orch.result/2"
    assert document["table"] == json.loads(json.dumps(result.document["table"]))


@pytest.fixture(scope="module")
def whole():
    """A finished audit with all attacks: plan and output folder."""
    out = kept.finished("apollo")
    return smallest_plan("apollo", out.with_name("store")), out


def test_the_scores_table_has_a_row_for_every_attack_unlearner_and_candidate(whole):
    plan, out = whole
    assert set(plan.audit.attacks) == set(ATTACKS)
    table = pq.read_table(out / "scores.parquet")
    candidates = plan.split.targets * (plan.split.candidates.forget + plan.split.candidates.unseen)
    assert len(table) == candidates * len(plan.unlearning) * len(plan.audit.attacks)
    assert set(table["group"].to_pylist()) == {"forget", "unseen"}
    decisions = table["decision_0.5"].to_numpy()
    assert ((decisions >= 0) & (decisions <= 1)).all()
    assert np.isfinite(table["score"].to_numpy()).all()


def test_the_controls_stand_in_the_table(whole):
    document = json.loads((whole[1] / "result.json").read_text())
    assert {"identity", "retrain"} <= {row["unlearner"] for row in document["table"]}


def test_the_estimate_counts_the_queries_that_are_spent(whole):
    plan, out = whole
    table = pq.read_table(out / "scores.parquet").to_pydict()
    estimated = {entry.attack: entry.total for entry in label_queries([(plan, jobs_of(plan))])}
    spent = dict.fromkeys(estimated, 0)
    for attack, queries in zip(table["attack"], table["queries"], strict=True):
        spent[attack] += queries
    assert spent == estimated


def test_identity_is_the_trained_model_and_costs_no_artefact(finished):
    plan, _, store, _ = finished
    members, unlearned = len(jobs_of(plan, "train")), len(jobs_of(plan, "unlearn"))
    assert unlearned == members * (len(plan.unlearning) - 1)
    assert len(Store(store).keys("unlearn")) == unlearned


def test_the_same_command_again_trains_nothing_and_gives_the_same_scores(finished, tmp_path):
    plan, out, _, _ = finished
    again = audited(plan, tmp_path / "again")
    assert again.document["population"]["trained"] == 0
    assert (tmp_path / "again" / "scores.parquet").read_bytes() == (out / "scores.parquet").read_bytes()


def test_more_targets_train_only_what_is_new(finished, tmp_path):
    plan, _, store, _ = finished
    more = tiny_plan(store, "split.targets=3", "split.target_pool=180")
    old, new = (jobs_of(each, "train", "unlearn") for each in (plan, more))
    todo = list(missing(new, kind_named("apollo").present(Store(store))))
    assert len(new) > len(old)
    assert len(todo) < len(new)


@pytest.mark.parametrize(
    "change",
    ["recipe.epochs=4", "recipe.weight_decay=0.5", "seed=9", "recipe.dtype=bfloat16", "model.settings.hidden=[16]"],
)
def test_whatever_decides_a_model_changes_its_key(finished, change):
    plan, _, store, _ = finished
    before = {job.member: job.key for job in jobs_of(plan, "train")}
    after = {job.member: job.key for job in jobs_of(tiny_plan(store, change), "train")}
    assert all(before[name] != after[name] for name in before)


def test_unlearning_settings_change_unlearned_models_only(finished):
    plan, _, store, _ = finished
    other = tiny_plan(store, "unlearning.1.learning_rate=0.01")
    assert [job.key for job in jobs_of(plan, "train")] == [job.key for job in jobs_of(other, "train")]
    before, changed = jobs_of(plan, "unlearn"), jobs_of(other, "unlearn")
    kept = {job.key for job in before} & {job.key for job in changed}
    assert {job.label for job in changed if job.key not in kept} == {"gradient_ascent"}


def test_workers_and_address_do_not_change_a_key(finished):
    plan, _, store, _ = finished
    other = tiny_plan(store, "compute.workers=3", "compute.address=10.0.0.1:6379")
    assert [job.key for job in jobs_of(plan)] == [job.key for job in jobs_of(other)]


def test_a_damaged_model_is_reported_and_rebuilt_on_request(finished, tmp_path):
    store = tmp_path / "store"
    shutil.copytree(finished[2], store)
    asked_anew = ("audit.search.steps=2", "audit.attacks=[apollo]")
    plan = tiny_plan(store, *asked_anew)
    target = next(job.key for job in jobs_of(plan, "train") if job.member.startswith("target"))  # surely read
    victim = next(path for path in (store / "train").rglob("weights-*.safetensors") if target in str(path))
    victim.write_bytes(victim.read_bytes()[:-1] + b"\x00")
    with pytest.raises(CorruptArtefact, match="--rebuild"):
        audited(plan, tmp_path / "broken")
    rebuilt = audited(plan, tmp_path / "rebuilt", rebuild=True)
    assert rebuilt.document["population"]["trained"] == 1
    whole = audited(tiny_plan(finished[2], *asked_anew), tmp_path / "whole")
    assert rebuilt.scores.equals(whole.scores)


@pytest.fixture(scope="module")
def both(finished, tmp_path_factory):
    """A finished sweep over the plan of that audit, which stands last, and over a weaker one: folder, sweep, result."""
    plan, _, store, _ = finished
    weaker = {"audit.search.shadows": 4, "unlearning.1.learning_rate": 0.01}
    sweep = Sweep(
        name="base-last",
        title="",
        base="apollo-smoke",
        varies=fixed({"weaker": weaker, "base": {}}),
        metric="apollo AUC",
        makes="a figure",
        trade=("identity.apollo.auc", "identity.utility.test_accuracy"),
    )
    out, trained = tmp_path_factory.mktemp("sweep") / "out", Store(store).keys("train")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Run, "watch", UnshownRun.watch)
        patch.setattr(Run, "track", UnshownRun.track)  # tracked sweeps: test_tracking.py, test_toy.py
        patch.setattr(writing, "draw", lambda *_: {})  # figures of a sweep: test_report.py
        result = swept(sweep, plan, out, shown=True)
    assert Store(store).keys("train") == trained, "one population serves all settings"
    return out, sweep, result


def test_a_sweep_has_the_scores_of_the_audit_and_chooses_among_its_settings(finished, both):
    _, sweep, result = both
    assert [entry["setting"] for entry in result.document["settings"]] == list(sweep.settings({})) == ["weaker", "base"]
    settings = result.scores["setting"].to_pylist()
    base = result.scores.filter(np.array(settings) == "base").drop_columns(["setting"])
    single = pq.read_table(finished[1] / "scores.parquet").drop_columns(["setting"])
    assert base.equals(single)
    best = {(row["unlearner"], row["attack"]): row for row in result.document["best"]}
    areas = {
        row["setting"]: row["auc"] for row in result.document["table"] if (row["unlearner"], row["attack"]) == FIRST
    }
    assert best[FIRST]["auc"] == pytest.approx(max(areas.values())) == pytest.approx(areas[best[FIRST]["setting"]])
    assert best[FIRST]["settings"] == 2 and best[FIRST]["null_high"] > best[FIRST]["null_median"] > 0.5
    assert {row["setting"]: row["auc"] for row in result.document["front"]["settings"]} == pytest.approx(areas)
    assert ("identity", "loss_threshold") not in best, "an attack that no setting changes has no best setting"


def test_a_sweep_tells_utility_and_exposed_points_of_the_plan_itself_wherever_that_setting_stands(finished, both):
    swept_document, single = (json.loads((folder / "result.json").read_text()) for folder in (both[0], finished[1]))
    assert swept_document["exposed"]["setting"] == "base"
    for section in ("exposed", "utility", "heatmap"):
        assert swept_document[section] == single[section]


@pytest.mark.long
def test_a_sweep_of_repetitions_is_also_pooled_with_targets_kept_apart(finished, tmp_path):
    _, _, store, _ = finished
    seeds = {f"seed={seed}": {"seed": seed} for seed in (0, 1)}
    sweep = Sweep("two-seeds", "", "apollo-smoke", fixed(seeds), "apollo AUC", "a table", pooled=True)
    few = ("audit.attacks=[u_lira]", *FEW_SHADOWS)
    plan = tiny_plan(store, *few)
    out = tmp_path / "seeds"
    result = swept(sweep, plan, out)
    rows = {(row["setting"], row["unlearner"]): row for row in result.document["table"]}
    pooled = rows["pooled", "identity"]
    assert pooled["targets"] == 2 * plan.split.targets
    assert result.document["best"] == [], "repetitions of one experiment are no choice"
    single = [rows[name, "identity"]["auc"] for name in seeds]
    assert pooled["auc"] == pytest.approx(sum(single) / 2)
    assert {row["target"] for row in result.document["utility"]} == {0, 1, 1000, 1001}
    alone = audited(tiny_plan(tmp_path / "other-store", "seed=1", *few), tmp_path / "alone").scores.drop_columns(
        ["setting"]
    )
    second = result.scores.filter(np.array(result.scores["setting"].to_pylist()) == "seed=1")
    assert second.drop_columns(["setting"]).equals(alone), "a setting of a sweep is not the audit of its own plan"


def test_a_worker_keeps_the_last_arrays_unless_they_are_large(finished, tmp_path, monkeypatch):
    plan, _, _, _ = finished
    context, made = context_of(plan, Store(tmp_path / "store")), []

    monkeypatch.setattr("orchestrator.engine.run.recent.BYTES_OF_ARRAYS", 16)  # two of the numbers

    def ask(name, size=1):
        return context.recent(name, lambda: made.append(name) or np.full(size, len(made)))

    assert [int(ask(name)[0]) for name in "aabbacab"] == [1, 1, 2, 2, 1, 3, 1, 4]
    assert made == ["a", "b", "c", "b"] and not ask("a").flags.writeable
    assert [ask("d", 2)[0] for _ in range(2)] == [5, 6] and (id(context), "d") not in context.lately.arrays


def test_a_worker_refuses_the_job_of_another_plan(finished, tmp_path):
    plan, _, _, _ = finished
    other = tiny_plan(tmp_path / "store", "seed=1")
    context = context_of(plan, Store(tmp_path / "store"))
    with pytest.raises(RuntimeError, match="not this worker's"):
        context.perform(jobs_of(other, "train")[0])
    assert not Store(tmp_path / "store").keys("train")


def test_a_recorded_run_keeps_its_artefacts_from_collection(finished):
    _, _, store, _ = finished
    held = {key for record in Store(store).runs() for key in record.keys["train"]}
    assert Store(store).keys("train") <= held


@pytest.mark.long
def test_candidates_cut_into_shards_change_no_decision_by_more_than_rounding(finished, tmp_path):
    """In short: ``tests/audits/test_contracts_evidence.py``."""
    store, usual = finished[2], f"audit.attacks=[{', '.join(Audit().attacks)}]"
    plan, cut = tiny_plan(store, usual), tiny_plan(store, usual, "compute.chunk=7")
    result, small = audited(plan, tmp_path / "usual"), audited(cut, tmp_path / "small")
    assert len(jobs_of(cut, "search")) > len(jobs_of(plan, "search"))
    a, b = result.scores["score"].to_numpy(), small.scores["score"].to_numpy()
    assert np.mean(np.abs(a - b) < 1e-6) > 0.99


@pytest.mark.long
def test_one_offline_search_serves_every_unlearning_method(finished, tmp_path, monkeypatch):
    """The trace is drawn once a shadow set; a method that is added later asks along it and searches nothing."""
    searches = []
    real = adversarial.search

    def counted(*args, offline=False, **options):
        searches.append(offline)
        return real(*args, offline=offline, **options)

    monkeypatch.setattr(adversarial, "search", counted)
    plan = tiny_plan(tmp_path / "store", "audit.attacks=[apollo, apollo_offline, apollo_ladder]", *ONE_TARGET)
    audited(plan, tmp_path / "first")
    sets, methods = plan.split.targets, len(plan.unlearning)
    assert searches.count(True) == 2 * sets
    assert searches.count(False) == 2 * sets * methods
    assert len(Store(tmp_path / "store").keys("trace")) == 2 * sets  # offline walks and ladders

    searches.clear()
    more = plan.changed(
        {"unlearning": [*plan.resolved()["unlearning"], {"method": "finetune", "as": "late", "learning_rate": 0.01}]}
    )
    audited(more, tmp_path / "second")
    assert searches.count(True) == 0
    assert searches.count(False) == 2 * sets
    assert len(Store(tmp_path / "store").keys("trace")) == 2 * sets  # offline walks and ladders


def test_an_attack_that_is_added_gathers_its_own_evidence_only(finished, tmp_path):
    store = tmp_path / "store"
    few = tiny_plan(store, "audit.attacks=[single_query]", *ONE_TARGET)
    audited(few, tmp_path / "few")
    before = Store(store).keys("search")
    more = tiny_plan(store, "audit.attacks=[single_query, lira]", *ONE_TARGET)
    audited(more, tmp_path / "more")
    after = Store(store)
    assert before < after.keys("search")
    kinds = {after.get("search", key).document["kind"] for key in after.keys("search") - before}
    assert kinds == {"posteriors"}


def test_kinds_are_handed_access_to_targets_of_their_own_level_only(finished):
    plan, _, store, _ = finished
    context = context_of(plan, Store(store))
    for job in jobs_of(plan, "search"):
        found = case(context, job)
        opened = {level for level in ("labels", "posteriors", "logits") if getattr(found, level)}
        assert opened == {"posteriors" if job.kind in ("posteriors", "population") else "labels"}


@pytest.mark.long
def test_memorised_points_are_ranked_first_and_then_audited(finished, tmp_path):
    few = "audit.attacks=[single_query, u_lira]"
    plan = tiny_plan(tmp_path / "store", "split.points=memorised", "split.ranking_models=8", few)
    result = audited(plan, tmp_path / "out")
    store = Store(tmp_path / "store")
    design = open_design(plan, store)
    ranking = design.ranking()
    asked = np.concatenate([candidates.ids for candidates in design.partition.candidates])
    others = np.setdiff1d(np.flatnonzero(~np.isnan(ranking)), asked)
    assert ranking[asked].min() >= ranking[others].max()
    assert set(result.scores["point_id"].to_pylist()) == set(asked.tolist())
    assert len(store.keys("rank")) == 1
    before = store.keys("train")
    again = audited(plan, tmp_path / "again")
    assert again.scores.equals(result.scores) and store.keys("train") == before


def test_points_that_were_not_ranked_are_not_guessed(finished, tmp_path):
    plan = tiny_plan(tmp_path / "store", "split.points=memorised", "split.ranking_models=8")
    with pytest.raises(BadInput, match="ranking"):
        jobs_of(plan)


def test_an_oracle_is_told_who_was_forgotten_and_who_was_never_seen(finished):
    plan, _, store, _ = finished
    context = context_of(plan, Store(store))
    job = jobs_of(plan, "score")[0]
    asked = context.design.partition.candidates[job.shadow_set]
    found = evidence(context, job, asked)
    np.testing.assert_array_equal(found.truth, asked.forgotten)
    np.testing.assert_array_equal(found.unseen, asked.unseen)


def test_stages_take_turns_so_that_the_first_jobs_tell_the_pace() -> None:
    def job(stage: str, key: str, *needs: str) -> Job:
        return Job(stage, key, needs, {}, "plan")

    first = [job("train", "a"), job("train", "b"), job("train", "c")]
    then = [
        job("unlearn", "ua", "a"),
        job("unlearn", "ub", "b"),
        job("utility", "uab", "ua", "ub"),
        job("unlearn", "x"),
    ]
    ordered = [each.key for each in in_turn([*first, *then])]
    assert ordered == ["a", "ua", "b", "ub", "uab", "c", "x"]


def test_numbers_of_comparison_are_known_beforehand(finished):
    plan = finished[0]
    assert numbers_compared(plan) == set(kind_named("apollo").compared(plan))
