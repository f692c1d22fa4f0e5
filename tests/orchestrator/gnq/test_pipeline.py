"""A GNQ audit from its plan to its result: who trains on what, what is shared, what is refused."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

from audits.errors import BadInput
from audits.gradients.white_box import white_box_features
from audits.statistics.epsilon_bound import epsilon_bound
from audits.statistics.roc import auc
from audits.training.accounting import spent_epsilon
from audits.training.fit import fit, train_model
from audits.training.recipe import Recipe
from audits.uniqueness.rankings import RANKINGS
from orchestrator.engine.cost.estimate import estimate
from orchestrator.engine.cost.table import cost_lines
from orchestrator.engine.plan.base import BasePlan
from orchestrator.engine.run.models import METRICS
from orchestrator.engine.run.run import Result, Run
from orchestrator.engine.run.worker import WEIGHTS, WorkerContext
from orchestrator.engine.store.payloads import unpack_arrays
from orchestrator.engine.store.store import Store
from orchestrator.gnq.jobs import GnqJobs
from orchestrator.gnq.kind import KIND
from orchestrator.gnq.plan import GnqPlan
from orchestrator.gnq.result.judging import judge
from orchestrator.gnq.result.rows import GnqResult
from orchestrator.gnq.stages import defending, scoring
from orchestrator.gnq.stages.finished import seed_of
from orchestrator.gnq.stages.scoring import score
from orchestrator.gnq.stages.stored import ANSWERS, tensors, trace_of
from orchestrator.judgement.estimate import Estimate
from orchestrator.judgement.gate import failures, gates_of
from orchestrator.kinds import check_against_data, kind_named, load_plan, open_design
from orchestrator.report import writing
from orchestrator.report.result import run_of
from tests.cases import kept
from tests.cases.reopened import result_of, store_of
from tests.cases.runs import UnshownRun, audited, numbers_compared, swept
from tests.cases.smallest_plans import smallest_plan
from tune_spaces import SWEEPS

pytestmark = pytest.mark.slow


REMOVED_AT_RANDOM = [{"method": "remove", "ranking": "random", "share": 0.2}]
PRIVATE = {"learning_rate": 0.01, "epochs": 2, "batch_size": 10, "noise_multiplier": 1.0, "max_grad_norm": 1.0}
"""Its noise is given: the search for the noise of an ε is tested in ``tests/audits/training``."""
POINTS, REMOVED = 20, 4
"""Points that a model trains on, and a fifth of them."""


def small_plan(store: Path, **changes: Any) -> GnqPlan:
    """Return the smallest plan but for what it inverts, which has tests of its own."""
    values = {"audit.inversion": None, "audit.gradient_inversion": None} | {
        name.replace("__", "."): value for name, value in changes.items()
    }
    plan = smallest_plan("gnq", store, **values)
    assert isinstance(plan, GnqPlan)
    return plan


def failed(limits: list[str], plan: BasePlan, document: dict[str, Any]) -> list[str]:
    return failures(gates_of(limits, KIND.headline, plan), KIND.headline, plan, document)


def page_alone(patch: pytest.MonkeyPatch) -> None:
    """Let runs write a page without figures, and log nothing: both are tested elsewhere."""
    patch.setattr(Run, "watch", UnshownRun.watch)
    patch.setattr(Run, "track", UnshownRun.track)
    patch.setattr(writing, "draw", lambda *_: {})


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store that has what the smallest plan makes."""
    return store_of("gnq", tmp_path_factory.mktemp("gnq") / "store")


@pytest.fixture(scope="module")
def finished() -> tuple[Result, Path]:
    return result_of(kept.finished("gnq")), kept.finished("gnq")


def design_of(plan: GnqPlan, store: Path) -> GnqJobs:
    found = open_design(plan, Store(str(store)))
    assert isinstance(found, GnqJobs)
    return found


def artefacts(store: Path) -> Counter[str]:
    kept = Store(str(store))
    return Counter({stage: len(kept.keys(stage)) for stage in ("train", "defend", "score")})


def test_an_audit_tells_every_arm_group_and_moment(finished: tuple[Result, Path]) -> None:
    document, out = finished[0].to_json(), finished[1]
    arms = ["none", "gnq_log-0.2", "random-0.2", "noise-gnq_log-0.2-1", "dp-noise-1"]
    assert [row["arm"] for row in document["arms"]] == arms
    assert document["population"] == {"models": 60, "reused": 0, "trained": 60}
    moments = {(row["arm"], row["moment"]) for row in document["table"]}
    assert {("gnq_log-0.2", "before"), ("gnq_log-0.2", "null"), ("none", "null")} <= moments
    null = [row for row in document["table"] if row["moment"] == "null"]
    assert {row["attack"] for row in null} == {"loss", "lira", "rmia", "shadow_posterior", "white_box"}
    for row in document["table"]:
        tested = row["moment"] == "null" and row["group"] in ("contributors", "kept")
        assert (row["p"] is not None) == (row["p_holm"] is not None) == tested
        if tested and row["p"] > 0:
            assert row["p"] <= row["p_holm"] and (row["p"] < 0.05) == (not row["auc_low"] <= 0.5 <= row["auc_high"])
    before = {(row["group"], row["shadows"]) for row in document["table"] if row["moment"] == "before"}
    assert {("kept", "naive"), ("kept", "adaptive"), ("removed", "adaptive")} <= before
    assert ("dp-noise-1", "before") not in moments  # nothing is removed, so no group of points is to be followed
    groups = {row["group"] for row in document["table"] if row["arm"] == "gnq_log-0.2" and row["moment"] == "after"}
    assert groups == {"contributors", "kept", "kept_unfiltered", "removed", "removed_unfiltered"}
    assert {row["shadows"] for row in document["table"] if row["arm"] == "dp-noise-1"} == {"none", "naive", "adaptive"}
    for name in ("result.json", "scores.parquet", "report.html", "plan.yaml"):
        assert (out / name).is_file()
    assert json.loads((out / "result.json").read_text())["kind"] == "gnq"


def test_private_arms_tell_who_counts_epsilon_and_what_is_shown_of_it(finished: tuple[Result, Path]) -> None:
    document = finished[0].to_json()
    arm = {row["arm"]: row for row in document["arms"]}["dp-noise-1"]
    assert arm["accountant"] == "prv" and arm["epsilon_low"] < arm["epsilon"]
    assert arm["epsilon"] == spent_epsilon(Recipe(**PRIVATE, delta=arm["delta"]), POINTS)
    rows = document["epsilons"]
    assert {row["arm"] for row in rows} == {"dp-noise-1"} and {row["moment"] for row in rows} == {"after", "null"}
    assert {row["shadows"] for row in rows} == {"none", "adaptive"} and {row["share"] for row in rows} == {1.0, 0.1}
    pools, half = document["plan"]["split"]["pools"], document["plan"]["split"]["train_size"]
    tests = len(rows) // 2
    for row in rows:
        assert row["pairs"] == pools * half and row["guesses"] == pools * round(half * row["share"])
        assert row["delta"] == arm["delta"]
        level = 1 - 0.05 / tests
        bound = epsilon_bound(row["right"], row["guesses"], row["pairs"], row["delta"], level)
        assert row["at_least"] == pytest.approx(bound) and bound <= arm["epsilon"]


def test_the_headline_is_the_strongest_attack_that_knows_the_arm(finished: tuple[Result, Path]) -> None:
    document = finished[0].to_json()
    for arm in document["arms"]:
        knows = "naive" if arm["arm"] == "none" else "adaptive"
        told = {
            row["attack"]: row["auc"]
            for row in document["table"]
            if row["arm"] == arm["arm"]
            and (row["group"], row["moment"]) == ("contributors", "after")
            and row["shadows"] in ("none", knows)
        }
        assert set(told) == {"loss", "lira", "rmia", "shadow_posterior", "white_box"}
        assert arm["headline"]["auc"] == max(told.values())
        assert told[arm["headline"]["attack"]] == max(told.values())


def test_the_table_of_scores_gives_the_numbers_of_the_result(finished: tuple[Result, Path]) -> None:
    table = pq.read_table(finished[1] / "scores.parquet").to_pandas()
    document = finished[0].to_json()
    assert len(table) == 5 * 2 * 2 * 2 * POINTS
    own = table[(table.arm == "none") & table.member]
    level = {row["score"]: row["median"] for row in document["levels"]}
    assert set(level) == {"gnq_log", "gnq_sum", "gnq_final", "diagonal"}
    for ranking, value in level.items():
        assert value == pytest.approx(own.groupby(["pool", "twin"])[f"rank_{ranking}"].median().mean())
    np.testing.assert_allclose(own.bits, np.minimum(1, own.rank_gnq_log))
    assert table[(table.arm != "none") | ~table.member].bits.isna().all()
    for arm in ("none", "gnq_log-0.2", "dp-noise-1"):
        for column in ("loss", "lira_naive"):
            rows = table[table.arm == arm]
            each = [auc(one[column].to_numpy(), one.member.to_numpy()) for _, one in rows.groupby(["pool", "twin"])]
            attack, _, shadows = column.partition("_")
            told = [
                row["auc"]
                for row in document["table"]
                if (row["arm"], row["group"], row["attack"], row["moment"]) == (arm, "contributors", attack, "after")
                and row["shadows"] == (shadows or "none")
            ]
            assert told == [pytest.approx(np.mean(each))]


def test_arms_of_a_pool_share_what_is_read_off_its_naive_shadows(
    finished: tuple[Result, Path], store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    design, asked = design_of(small_plan(store), store), Counter[int]()
    context = WorkerContext(KIND, design, Store(str(store)))
    original = white_box_features

    def counted(model: torch.nn.Module, *others: Any, **named: Any) -> Any:
        asked[id(model)] += 1
        return original(model, *others, **named)

    monkeypatch.setattr(scoring, "white_box_features", counted)
    alone = {
        arm: score(WorkerContext(KIND, design, context.store), design.score_job(0, arm))
        for arm in ("none", "random-0.2")
    }
    first = asked.total()
    assert {arm: score(context, design.score_job(0, arm)) for arm in alone} == alone
    assert first - (asked.total() - first) == len(design.of(0, "shadow"))


def test_a_target_drops_what_its_own_ranking_puts_on_top_and_trains_on_the_rest(
    finished: tuple[Result, Path], store: Path
) -> None:
    design = design_of(small_plan(store), store)
    context = WorkerContext(KIND, design, Store(str(store)))
    for model in design.models.values():
        place = design.made(model, "gnq_log-0.2")
        artefact = Store(str(store)).get(place.stage, place.key)
        kept = unpack_arrays(artefact.read(ANSWERS))["kept"].astype(bool)
        scores = RANKINGS["gnq_log"](trace_of(context, model), model.seed)
        gone = np.flatnonzero(model.half & ~kept)
        assert not (kept & ~model.half).any()
        assert set(gone) == set(np.flatnonzero(model.half)[np.argsort(-scores, kind="stable")[:REMOVED]])
        assert json.loads(artefact.read(METRICS))["points"] == POINTS - REMOVED


def test_watching_changes_no_bit_of_a_training(finished: tuple[Result, Path], store: Path) -> None:
    from safetensors.torch import load

    design = design_of(small_plan(store), store)
    model = design.models["0-target-1"]
    context = WorkerContext(KIND, design, Store(str(store)))
    plain = train_model(design.build, tensors(context, design.points(model)), design.plan.recipe, model.seed)
    weights = load(Store(str(store)).get("train", design.train_job(model).key).read(WEIGHTS))
    for name, value in plain.state_dict().items():
        assert (value == weights[name]).all()


def test_null_models_saw_no_point_of_the_pool_and_targets_share_it_out(store: Path) -> None:
    design = design_of(small_plan(store), store)
    for pool, points in enumerate(design.drawn.pools):
        for model in design.null_models(pool):
            assert not np.isin(design.points(model), points).any()
            assert (design.points_by_name(model)["foreign"] == points).all()
        one, other = design.of(pool, "target")
        assert (one.half ^ other.half).all()
        assert not np.isin(design.drawn.test, points).any()
    assert not np.isin(design.drawn.pools[0], design.drawn.pools[1]).any()


def test_one_pool_has_no_null_models(store: Path) -> None:
    design = design_of(small_plan(store, split__pools=1), store)
    assert design.null_models(0) == []
    assert list(design.points_by_name(design.models["0-target-0"])) == ["own"]


def test_only_targets_are_seen_in_modes_that_no_defence_ranks_by(store: Path) -> None:
    design = design_of(small_plan(store), store)
    assert design.modes(design.models["0-target-0"]) == ("ridge", "diagonal")
    assert design.modes(design.models["0-shadow-0"]) == ("ridge",)


@pytest.mark.long
def test_points_can_be_ranked_by_what_they_are_in_their_batches(store: Path, tmp_path: Path) -> None:
    removal = [{"method": "remove", "ranking": "in_batch", "share": 0.2}]
    plan = small_plan(store, audit__in_batch=True, defences=removal, audit__attacks=["loss"], split__pools=1)
    document = audited(plan, tmp_path / "out").to_json()
    assert [row["arm"] for row in document["arms"]] == ["none", "in_batch-0.2", "random-0.2"]
    assert {row["score"] for row in document["correlations"] if not row["control"]} >= {"gnq_log", "in_batch"}
    design = design_of(plan, store)
    context = WorkerContext(KIND, design, Store(str(store)))
    for name in ("0-target-0", "0-shadow-3"):
        model = design.models[name]
        trace, place = trace_of(context, model), design.made(model, "in_batch-0.2")
        assert trace.in_batch is not None
        assert set(trace.in_batch.steps) == {design.plan.recipe.epochs}  # once an epoch
        kept = unpack_arrays(Store(str(store)).get(place.stage, place.key).read(ANSWERS))["kept"].astype(bool)
        top = np.argsort(-trace.in_batch.log["ridge"], kind="stable")[:REMOVED]
        assert set(np.flatnonzero(model.half & ~kept)) == set(np.flatnonzero(model.half)[top])


@pytest.mark.long
def test_other_models_rank_points_by_losses_that_they_were_not_trained_to(store: Path, tmp_path: Path) -> None:
    defences = [
        {"method": "remove", "ranking": name, "share": 0.2} for name in ("twin_loss", "held_out_loss", "random")
    ]
    plan = small_plan(store, defences=defences, audit__held_out=2, audit__attacks=["loss"], split__pools=1)
    document = audited(plan, tmp_path).to_json()
    assert {"twin_loss", "held_out_loss"} <= {row["score"] for row in document["correlations"] if row["control"]}
    assert {"twin_loss", "held_out_loss"} <= {row["control"] for row in document["gains"]}
    table = pq.read_table(tmp_path / "scores.parquet").to_pandas()
    own = table[table["arm"] == "none"].set_index(["pool", "twin", "point_id"]).sort_index()
    assert (own["rank_held_out_loss"].notna() == own["member"]).all()
    for (pool, twin), rows in own[own["member"]].groupby(level=["pool", "twin"]):
        points = rows.index.get_level_values("point_id")
        others = own.loc[pool, 1 - twin].loc[points, "loss"]  # the score of attack loss is minus the loss
        np.testing.assert_allclose(rows["rank_twin_loss"], -others, rtol=1e-6)
        removed = table[(table["arm"] == "twin_loss-0.2") & (table["pool"] == pool) & (table["twin"] == twin)]
        kept = removed.set_index("point_id").loc[points, "kept"].to_numpy(bool)
        ranks = rows["rank_twin_loss"].to_numpy()
        assert 0 < (~kept).sum() == round(0.2 * len(points)) and ranks[kept].max() <= ranks[~kept].min()


def test_mode_pinv_has_rankings_and_plain_sums_have_controls(store: Path, tmp_path: Path) -> None:
    plan = small_plan(store, audit__modes=["ridge", "pinv"], audit__attacks=["loss", "lira"], defences=[])
    document = audited(plan, tmp_path / "out").to_json()
    control = {row["score"]: row["control"] for row in document["correlations"]}
    assert not control["pinv_log"] and not control["pinv_sum"] and "diagonal" not in control
    assert control["loss_sum"] and control["gradient_norm_sum"]
    gained = {(row["score"], row["control"]) for row in document["gains"]}
    assert {("gnq_sum", "loss_sum"), ("pinv_sum", "gradient_norm_sum"), ("gnq_log", "loss_log")} <= gained


@pytest.mark.long
def test_a_plan_without_mode_ridge_ranks_points_by_what_it_has(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page_alone(monkeypatch)
    plan = small_plan(store, audit__modes=["pinv"], audit__attacks=["loss", "lira"], defences=[])
    document = audited(plan, tmp_path / "out", shown=True).to_json()
    assert {row["ranked_by"] for row in document["points"]} == {"pinv_log"}
    told = [row["pinv_log"] for row in document["points"]]
    assert told == sorted(told, reverse=True) and len(told) == 24
    assert all(row["bits"] == min(1.0, row["pinv_log"]) and row["gnq_log"] is None for row in document["points"])
    page = (tmp_path / "out" / "report.html").read_text("utf-8")
    assert "By pinv GNQ along training" in page and "Predictions by GNQ" in page


def test_a_setting_warns_of_its_own_weaknesses(store: Path, tmp_path: Path) -> None:
    change = {"audit.onion": 3, "audit.attacks": ["loss"], "defences": REMOVED_AT_RANDOM}
    odd = replace(SWEEPS["gnq-bins"], name="gnq-odd", varies=lambda plan: {"base": {}, "more": change})
    plan, out = small_plan(store, audit__attacks=["loss"], defences=REMOVED_AT_RANDOM), tmp_path / "out"
    document = swept(odd, plan, out).to_json()
    (line,) = (line for line in document["warnings"] if "audit.onion" in line)
    assert line.startswith("setting more: audit.onion is 3, but of 4 shadows each point is in 2")
    onion = {row["setting"]: row["onion"] for row in document["arms"] if row["arm"] == "random-0.2"}
    assert onion["base"] and onion["more"] is None


def test_a_defence_that_diverges_costs_its_arm_and_nothing_else(
    finished: tuple[Result, Path], store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page_alone(monkeypatch)
    recipe = PRIVATE | {"learning_rate": 1e30}
    plan = small_plan(store, defences=[*REMOVED_AT_RANDOM, {"method": "dp_sgd", "recipe": recipe}])
    document = audited(plan, tmp_path / "out", shown=True).to_json()
    (line,) = (line for line in document["warnings"] if "dp-noise-1" in line)
    assert line.startswith("setting base: arm dp-noise-1 is not judged: 12 of its 12 models could not be trained (")
    assert "0-target-0: training diverged in epoch 1 of " in line and "defences.1.recipe.learning_rate)" in line
    kept, lost = ({row["arm"]: row for row in document["arms"]}[arm] for arm in ("random-0.2", "dp-noise-1"))
    assert lost["diverged"] and lost["headline"] is None and lost["test_accuracy"] is None and not kept["diverged"]
    assert {row["arm"] for row in document["comparisons"]} == {"random-0.2"}
    whole = finished[0].to_json()
    for field in ("table", "correlations"):
        one, other = ([{**row, "p_holm": None} for row in each[field]] for each in (document, whole))
        assert one == [row for row in other if row.get("arm") in (None, "none", "random-0.2")], field
    (line,) = failed(["dp-noise-1.auc=0.9"], plan, document)
    assert line.startswith("gate dp-noise-1.auc=0.9: inconclusive: auc was not measured (base, dp-noise-1, no attack)")
    page = (tmp_path / "out" / "report.html").read_text()
    assert "Not judged, because training diverged in some of its models" in page
    assert "dp-noise-1" not in set(pq.read_table(tmp_path / "out" / "scores.parquet")["arm"].to_pylist())


@pytest.mark.long
def test_an_arm_is_judged_only_if_all_its_models_could_be_trained(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = small_plan(store, defences=[{**REMOVED_AT_RANDOM[0], "share": 0.4}], audit__attacks=["loss"])
    unlucky = design_of(plan, store).models["1-shadow-2"]
    seeds = seed_of(unlucky.retraining_seed)

    def diverging(*args: Any, seed: int, **kwargs: Any) -> Any:
        if seed == seeds:
            raise FloatingPointError("training diverged in epoch 1 of 3: the loss is nan; lower the learning rate")
        return fit(*args, seed=seed, **kwargs)

    monkeypatch.setattr(defending, "fit", diverging)
    document = audited(plan, tmp_path / "out").to_json()
    (line,) = (line for line in document["warnings"] if "is not judged" in line)
    assert "arm random-0.4 is not judged: 1 of its 12 models could not be trained (1-shadow-2: tr" in line
    assert {row["arm"] for row in document["table"]} == {"none"}


def test_batches_of_shadows_are_looked_at_only_where_a_defence_ranks_by_them(store: Path) -> None:
    plain, seen = (design_of(small_plan(store, audit__in_batch=value), store) for value in (False, True))
    same = {name: plain.train_job(model).key == seen.train_job(model).key for name, model in plain.models.items()}
    assert same == {name: "shadow" in name for name in plain.models}


def test_the_same_plan_again_does_nothing(finished: tuple[Result, Path], store: Path, tmp_path: Path) -> None:
    before = artefacts(store)
    again = audited(small_plan(store), tmp_path / "again")
    assert artefacts(store) == before and again.document["population"] == {"models": 60, "reused": 60, "trained": 0}
    assert (tmp_path / "again" / "scores.parquet").read_bytes() == (finished[1] / "scores.parquet").read_bytes()


def test_another_attack_trains_nothing(finished: tuple[Result, Path], store: Path, tmp_path: Path) -> None:
    before = artefacts(store)
    audited(small_plan(store, audit__attacks=["loss"]), tmp_path / "loss")
    assert artefacts(store) - before == Counter({"score": 10})


def test_the_cost_is_told_before_anything_runs(store: Path, tmp_path: Path) -> None:
    cost = estimate(KIND, small_plan(tmp_path / "empty"))
    assert {stage.stage: stage.needed for stage in cost.stages} == {"train": 12, "defend": 48, "score": 10}
    assert {entry.attack for entry in cost.queries} == {"loss", "lira", "rmia", "shadow_posterior", "white_box"}
    assert all(stage.unit_seconds > 0 for stage in cost.stages)
    lines = list(cost_lines(cost))
    assert "no queries, reads the weights: white_box" in lines
    assert not any("white_box" in line for line in lines if line.startswith("queries"))


def test_removal_without_its_control_gets_it() -> None:
    plan = load_plan("gnq-smoke", ["defences=[{method: remove, ranking: gnq_log, share: 0.1}]"])
    assert isinstance(plan, GnqPlan)
    assert list(plan.arms) == ["none", "gnq_log-0.1", "random-0.1"]
    assert plan.notes == ("defences: added random-0.1, the control of removal",)


def test_batches_of_one_point_cannot_be_looked_at() -> None:
    with pytest.raises(
        BadInput, match=r"recipe\.batch_size is 1, where no point has others in its batch; set audit\.in_"
    ):
        load_plan("gnq-smoke", ["audit.in_batch=true", "recipe.batch_size=1"])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("split.shadows=5", "split.shadows is 5; shadows come in twins: give an even number"),
        ("audit.modes=[diagonal]", "defences.0.ranking is gnq_log, which reads mode ridge; add it to audit.modes"),
        ("audit.modes=[rigde]", "audit.modes.0 is \"rigde\" (did you mean 'ridge'?); allowed: ridge, pinv, diagonal"),
        (
            "defences=[{method: remove, ranking: in_batch, share: 0.1}]",
            "defences.0.ranking is in_batch, but batches are not looked at; set audit.in_batch to true",
        ),
        (
            "audit={kind: gnq, in_batch: true, modes: [diagonal]}",
            "audit.in_batch is true, which reads mode ridge; add it to",
        ),
        ("audit.attacks=[lyra]", "audit.attacks.0 is \"lyra\" (did you mean 'lira'?)"),
        ("audit.attacks=[loss, loss]", "audit.attacks: 'loss' is listed 2 times; once is enough"),
        ("audit.bins=40", "audit.bins is 40; allowed: up to half of split.train_size"),
        ("recipe.target_epsilon=8.0", "recipe.target_epsilon is given but not recipe.max_grad_norm"),
        ("defences=[{method: remove, ranking: gnq_log}]", "defences.0.share is missing; remove needs it"),
        ("defences=[{method: remove, ranking: gnq, share: 0.1}]", 'defences.0.ranking is "gnq" (did'),
        (
            "defences=[{method: noise, ranking: gnq_log, share: 0.1}]",
            "defences.0.strength is missing; noise needs it",
        ),
        ("defences=[{method: dp_sgd}]", "defences.0.recipe is missing; dp_sgd needs it"),
        (
            "defences=[{method: dp_sgd, recipe: {epochs: 2}}]",
            "defences.0.recipe has neither target_epsilon nor noise_multiplier; dp_sgd needs one of them",
        ),
        (
            "defences=[{method: remove, ranking: random, share: 0.1, strength: 2.0}]",
            "defences.0.strength is given, which remove does not read; leave it out",
        ),
    ],
)
def test_a_plan_that_cannot_work_is_refused_in_one_line(change: str, said: str) -> None:
    with pytest.raises(BadInput) as caught:
        load_plan("gnq-smoke", [change])
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("split.train_size=500", "split: 3 pools of 2 × 500 points and 200 test points are 3200, but digits has 1797"),
        ("split.classes=[3]", "split.classes leaves one class; give two or more, or null for all"),
    ],
)
def test_a_plan_that_does_not_fit_its_data_is_refused(change: str, said: str) -> None:
    plan = load_plan("gnq-smoke", [change, "audit.bins=2"])
    with pytest.raises(BadInput, match=said):
        check_against_data(plan)


def test_remainder_batches_are_warned_of() -> None:
    plan = load_plan("gnq-smoke", ["recipe.batch_size=28"])
    assert any("of 60 points the last batch has 4" in line for line in plan.warnings)


def test_gates_look_at_the_headline_of_an_arm(finished: tuple[Result, Path], store: Path) -> None:
    document, plan = finished[0].to_json(), small_plan(store)
    result = run_of(json.loads(json.dumps(document)), GnqResult)
    document = with_null(result, 0.5).document()
    auc = document["arms"][0]["headline"]["auc"]
    assert failed([f"auc={auc + 1e-9}", "dp-noise-1.auc=0.99"], plan, document) == []
    (line,) = failed([f"auc={auc - 0.001}"], plan, document)
    assert line.startswith(f"gate auc={auc - 0.001}: failed: auc is {auc:.3f} (base, none,")
    assert failed(["posteriors.auc=0.99", "white_box.auc=0.99"], plan, document) == []
    (line,) = failed(["posteriors.auc=0"], plan, document)
    assert line.startswith("gate posteriors.auc=0: failed: auc is 0.") and "white_box" not in line
    (line,) = failed(["dp-noise-1.auc=0.99"], plan, with_null(result, 0.9).document())
    assert line.startswith("gate dp-noise-1.auc=0.99: inconclusive: control null models: Points are told from others")
    with pytest.raises(BadInput, match=r"arm 'dp-2' .*is not in the plan"):
        gates_of(["dp-2.auc=0.6"], KIND.headline, plan)
    with pytest.raises(BadInput, match="unknown metric 'aux'"):
        gates_of(["aux=0.6"], KIND.headline, plan)


def with_null(result: GnqResult, auc: float) -> GnqResult:
    """Return a result, judged, in which all attacks have one AUC on null models."""
    found = Estimate(auc, auc - 1e-4, auc + 1e-4)
    return judge(replace(result, table=tuple(
        replace(row, auc=found) if row.moment == "null" else row for row in result.table
    )))  # fmt: skip


def test_the_shipped_default_says_what_the_classes_say(tmp_path: Path) -> None:
    plan = load_plan("gnq-fashion14")
    plain = GnqPlan().resolved()
    plain["model"]["settings"] = plan.resolved()["model"]["settings"]
    plain["compute"]["chunk"] = 32  # a look at gradients is fastest when a few points fit the cache
    assert plan.resolved() == plain


def test_numbers_of_comparison_are_known_beforehand(finished: tuple[Result, Path], store: Path) -> None:
    plan = small_plan(store)
    assert numbers_compared(plan) == set(kind_named("gnq").compared(plan))
