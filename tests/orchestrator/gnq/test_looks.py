"""Looks at a training as jobs of their own: the same scores as by looking while training, cut into rows or not."""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from safetensors.torch import load

from audits.data.tensors import TensorSet
from audits.errors import BadInput
from audits.gradients.gram import from_rows, gram, gram_rows, row_shards
from audits.gradients.validate import made_auditable
from audits.models import make_model
from audits.training.fit import fit
from audits.training.recipe import Recipe
from audits.uniqueness.accumulate import checkpoint_steps, fit_kept, fit_traced
from audits.uniqueness.scores import point_scores
from orchestrator.engine.cost.estimate import estimate
from orchestrator.engine.jobs.job import of_stage
from orchestrator.engine.run.worker import WEIGHTS, WorkerContext
from orchestrator.engine.setting import Setting
from orchestrator.engine.store.payloads import pack_table
from orchestrator.engine.store.store import Store
from orchestrator.gnq.jobs import GnqJobs
from orchestrator.gnq.kind import KIND
from orchestrator.gnq.plan import GnqPlan
from orchestrator.gnq.result.document import fits
from orchestrator.gnq.stages.stored import ANSWERS, TRACE, trace_of
from orchestrator.gnq.stages.training import CHECKPOINT, train
from orchestrator.kinds import load_plan, open_design
from tests.cases.layer_models import case
from tests.cases.runs import audited

POINTS = 13
HALF = 20
"""Points that a model of the plan trains on."""
MODELS = 6
LOOKS = MODELS * 2
"""At each model's checkpoints, with the one at the beginning."""
TOGETHER: dict[str, Any] = {}
APART = {"audit.looks": "apart"}
SHARDS = 2
SHARDED = {"audit.looks": "apart", "audit.look_shards": SHARDS}


@cache
def drawn(name: str) -> tuple[torch.nn.Module, torch.Tensor, torch.Tensor]:
    """Return a model that has trained for a while, and points of which it was trained on."""
    generator = torch.Generator().manual_seed(3)
    x, y = torch.rand(POINTS, 1, 8, 8, generator=generator), torch.arange(POINTS) % 4
    model = make_model(name, {}).build((1, 8, 8), 4, 0)
    return fit(model, TensorSet(x, y), Recipe(epochs=3, batch_size=5), seed=1), x, y


@pytest.mark.parametrize(
    ("name", "shards"),
    [
        *(("mlp", shards) for shards in (1, 3, POINTS)),
        ("cnn", 3),
        *(pytest.param("cnn", shards, marks=pytest.mark.long) for shards in (1, POINTS)),
    ],
)
def test_rows_of_shards_make_the_gram_matrix(name: str, shards: int) -> None:
    model, x, y = drawn(name)
    K = gram(model, x, y)
    parts = [gram_rows(model, x, y, low, high) for low, high in row_shards(POINTS, shards)]
    joined = from_rows(parts, POINTS)
    assert torch.equal(joined, joined.T)
    assert float((joined - K).abs().max() / K.abs().max()) < 1e-12


@pytest.mark.parametrize("cut", [{"memory": 9000, "chunk": 3}, {"chunk": 2, "parameter_chunk": 100}], ids=str)
def test_rows_do_not_depend_on_chunks_and_memory(cut: dict[str, Any]) -> None:
    model, x, y = case("cnn")
    K = gram(model, x, y)
    joined = from_rows([gram_rows(model, x, y, *rows, **cut) for rows in row_shards(len(x), 2)], len(x))
    assert float((joined - K).abs().max() / K.abs().max()) < 1e-12


@pytest.mark.parametrize(("points", "shards"), [(60, 1), (60, 3), (60, 60), (5, 4), (1000, 7)])
def test_shards_share_out_all_rows_and_about_as_many_pairs(points: int, shards: int) -> None:
    found = row_shards(points, shards)
    assert [row for low, high in found for row in range(low, high)] == list(range(points))
    assert len(found) == shards
    assert all(low < high for low, high in found)
    if points >= 20 * shards:
        pairs = [sum(points - row for row in range(low, high)) for low, high in found]
        assert max(pairs) < 1.1 * min(pairs)


@pytest.mark.parametrize(("low", "high"), [(-1, 2), (3, 3), (0, POINTS + 1)])
def test_rows_that_are_not_there_are_refused(low: int, high: int) -> None:
    model, x, y = drawn("mlp")
    with pytest.raises(BadInput, match=rf"rows {low} to {high} of K; allowed: 0 ≤ low < high ≤ {POINTS}"):
        gram_rows(model, x, y, low, high)
    with pytest.raises(BadInput, match="parts of K with 2 rows in all; give all 3"):
        from_rows([torch.ones(2, 3)], 3)


def test_a_gradient_that_is_not_finite_is_named_by_its_place_among_all_points() -> None:
    model, x, y = drawn("mlp")

    def infinite(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return torch.where(torch.arange(len(labels)) == 2, torch.inf, 1.0) * logits.sum(1)

    with pytest.raises(BadInput, match="the gradient of point 7 is not finite"):
        gram_rows(model, x, y, 5, 9, loss=infinite)


@pytest.mark.parametrize(
    ("name", "settings", "every"),
    [
        ("mlp", {}, 1),
        *(pytest.param("mlp", {}, every, marks=pytest.mark.long) for every in (4, 6, 100)),
        ("mlp", {"batch_norm": True, "dropout": 0.2}, 5),
        pytest.param("cnn", {}, 5, marks=pytest.mark.long),
    ],
)
def test_a_training_keeps_the_weights_that_looks_would_see(name: str, settings: dict[str, Any], every: int) -> None:
    _, x, y = drawn("mlp")
    data, recipe = TensorSet(x, y), Recipe(epochs=2, batch_size=5)
    traced, kept, plain = (make_model(name, settings).build((1, 8, 8), 4, 0) for _ in range(3))
    trace = fit_traced(traced, data, recipe, seed=1, every=every)
    states = fit_kept(kept, data, recipe, seed=1, every=every)
    fit(plain, data, recipe, seed=1)
    assert tuple(states) == tuple(trace.steps) == checkpoint_steps(6, every)
    for weight, value in plain.state_dict().items():
        assert torch.equal(kept.state_dict()[weight], value)
        assert torch.equal(states[6][weight], value)
    for place, state in enumerate(states.values()):
        kept.load_state_dict(state)
        np.testing.assert_array_equal(point_scores(made_auditable(kept), data).gnq["ridge"], trace.gnq["ridge"][place])


def plan_of(store: Path, *changes: dict[str, Any]) -> GnqPlan:
    """Return the smoke plan with one pool, few shadows, and one defence of each kind that reads traces."""
    values: dict[str, Any] = {
        "compute.workers": 0,
        "compute.store": str(store),
        "split.pools": 1,
        "split.shadows": 4,
        "split.train_size": HALF,
        "recipe.epochs": 2,
        "model.settings.hidden": [8],
        "audit.attacks": ["loss"],
        "audit.checkpoints": 1,
        "defences": [
            {"method": "remove", "ranking": "gnq_log", "share": 0.2},
            {"method": "remove", "ranking": "random", "share": 0.2},
            {"method": "noise", "ranking": "diagonal", "share": 0.2, "strength": 1.0},
        ],
    }
    for change in changes:
        values |= change
    plan = load_plan("gnq-smoke", values=values)
    assert isinstance(plan, GnqPlan)
    return plan


def design_of(plan: GnqPlan, store: Path) -> GnqJobs:
    found = open_design(plan, Store(str(store)))
    assert isinstance(found, GnqJobs)
    return found


class Bench:
    """Runs plans in one store, without page and tracking."""

    def __init__(self, store: Path, out: Path) -> None:
        self.store, self.out = store, out

    def run(self, *changes: dict[str, Any]) -> tuple[pa.Table, dict[str, Any]]:
        plan = plan_of(self.store, *changes)
        found = audited(plan, self.out)
        return found.scores, found.to_json()

    def made(self) -> Counter[str]:
        return Counter({stage: len(keys) for stage, keys in KIND.present(Store(str(self.store))).items()})


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(tmp_path_factory.mktemp("looks-store"), tmp_path_factory.mktemp("looks-run"))


@pytest.fixture(scope="module")
def runs(bench: Bench) -> dict[str, tuple[pa.Table, dict[str, Any], Counter[str]]]:
    """The smoke plan with looks together, apart, and apart in shards: scores, result, and what was made."""
    found = {}
    for name, change in (("together", TOGETHER), ("apart", APART), ("sharded", SHARDED)):
        before = bench.made()
        scores, document = bench.run(change)
        found[name] = (scores, document, bench.made() - before)
    return found


Runs = dict[str, tuple[pa.Table, dict[str, Any], Counter[str]]]


def test_looks_apart_give_the_bytes_of_looks_together(runs: Runs) -> None:
    assert pack_table(runs["apart"][0]) == pack_table(runs["together"][0])
    for part in ("table", "correlations", "bins", "traces", "arms"):
        assert runs["apart"][1][part] == runs["together"][1][part]


def test_shards_change_rounding_only(runs: Runs) -> None:
    one, cut = runs["together"][0], runs["sharded"][0]
    assert one.column_names == cut.column_names
    for name in one.column_names:
        if pa.types.is_floating(one[name].type):
            np.testing.assert_allclose(cut[name].to_numpy(), one[name].to_numpy(), rtol=1e-10, atol=1e-12)
        else:
            assert cut[name].equals(one[name])


def test_every_look_is_a_job_and_shards_are_joined(runs: Runs, bench: Bench) -> None:
    others = {"defend": MODELS * 3, "score": 4}
    assert runs["together"][2] == {"train": MODELS, **others}
    assert runs["apart"][2] == {"train": MODELS, "look": LOOKS, **others}
    # Watched models are those of looks apart, and only the looks and those that read them are new.
    assert runs["sharded"][2] == {"look": LOOKS * (SHARDS + 1), **others}
    for _, document, _ in runs.values():
        assert document["population"]["models"] == MODELS * 4


def test_trained_models_and_traces_are_those_of_watching(runs: Runs, bench: Bench) -> None:
    store = Store(str(bench.store))
    whole, apart, cut = (design_of(plan_of(bench.store, each), bench.store) for each in (TOGETHER, APART, SHARDED))
    for name, model in whole.models.items():
        one, other = (store.get("train", each.train_job(each.models[name]).key) for each in (whole, apart))
        assert one.read(WEIGHTS) == other.read(WEIGHTS)
        assert one.read("answers.safetensors") == other.read("answers.safetensors")
        assert TRACE in one.files and TRACE not in other.files
        kept = {name for name in other.files if name.startswith("checkpoint-")}
        assert kept == {CHECKPOINT.format(step) for step in apart.looks}
        last = load(other.read(CHECKPOINT.format(apart.looks[-1])))
        assert last.keys() == load(other.read(WEIGHTS)).keys()
        seen, again, joined = (
            trace_of(WorkerContext(KIND, each, store), each.models[name]) for each in (whole, apart, cut)
        )
        assert set(seen.gnq) == set(again.gnq) == set(whole.modes(model))
        np.testing.assert_array_equal(seen.steps, again.steps)
        np.testing.assert_array_equal(seen.squared_norm, again.squared_norm)
        for mode, values in seen.gnq.items():
            np.testing.assert_array_equal(values, again.gnq[mode])
            np.testing.assert_allclose(joined.gnq[mode], values, rtol=1e-9)


def test_a_second_run_asks_nothing(runs: Runs, bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    before = bench.made()
    scores, document = bench.run(SHARDED)
    assert bench.made() == before
    assert pack_table(scores) == pack_table(runs["sharded"][0])
    assert document["population"] == {"models": MODELS * 4, "reused": MODELS * 4, "trained": 0}
    told = "".join(capsys.readouterr())
    looks = f"look: {LOOKS * (SHARDS + 1)} jobs, {LOOKS * (SHARDS + 1)} reused, 0 to do\n"
    assert f"population: {MODELS * 4} models, {MODELS * 4} reused, 0 to train\n{looks}" in told


def test_another_ridge_trains_no_watched_model_and_makes_no_row_again(bench: Bench) -> None:
    one, other = (design_of(plan_of(bench.store, SHARDED, each), bench.store) for each in ({}, {"audit.ridge": 0.01}))
    model = "0-target-0"
    assert one.train_job(one.models[model]).key == other.train_job(other.models[model]).key
    assert one.row_job(one.models[model], 1, 1).key == other.row_job(other.models[model], 1, 1).key
    assert one.look_job(one.models[model], 1).key != other.look_job(other.models[model], 1).key


def test_readers_of_traces_wait_for_looks_and_others_do_not(bench: Bench) -> None:
    private = {"method": "dp_sgd", "recipe": {"epochs": 2, "noise_multiplier": 1.0, "max_grad_norm": 1.0}}
    defences = [{"method": "remove", "ranking": "gnq_log", "share": 0.2}, private]
    change = {"defences": defences, "data.name": "fashion14", "audit.inversion": {"images": 1}}
    design = design_of(plan_of(bench.store, SHARDED, change), bench.store)
    jobs = design.jobs()
    rows = {job.key for job in of_stage(jobs, "look") if job.shard >= 0}
    joins = {job.key for job in of_stage(jobs, "look") if job.shard < 0}
    assert (len(joins), len(rows)) == (LOOKS, LOOKS * SHARDS)
    own: dict[str, set[str]] = {job.member: set() for job in of_stage(jobs, "look")}
    for job in of_stage(jobs, "look"):
        if job.shard < 0:
            own[job.member].add(job.key)
            assert set(job.needs) & rows == set(job.document["rows"])
    for job in of_stage(jobs, "defend"):
        assert set(job.needs) & joins == (set() if job.label.startswith("dp") else own[job.member])
    plain = design_of(plan_of(bench.store, change), bench.store)
    dp = [{job.key for job in of_stage(each, "defend") if job.label.startswith("dp")} for each in (jobs, plain.jobs())]
    assert dp[0] == dp[1]
    for job in (*of_stage(jobs, "invert"), *(unit for unit in of_stage(jobs, "score") if unit.label == "none")):
        assert set(job.needs) & joins == own["0-target-0"] | own["0-target-1"]
    for job in jobs:
        assert design.same(job) == job
        assert job.stage == "look" or set(job.document.get("looks", ())) == set(job.needs) & joins
    done: set[str] = set()
    for job in jobs:
        assert set(job.needs) <= done  # a Tune trial does them in this order
        done.add(job.key)


def test_models_that_no_gram_matrix_is_made_of_are_not_cut(bench: Bench) -> None:
    only = {"defences": [{"method": "remove", "ranking": "random", "share": 0.2}]}
    design = design_of(plan_of(bench.store, SHARDED, only), bench.store)
    assert design.modes(design.models["0-shadow-0"]) == ()
    assert design.shards(design.models["0-shadow-0"]) == []
    assert len(design.shards(design.models["0-target-0"])) == SHARDS


def test_documents_of_a_plan_without_looks_hold_no_word_of_them(bench: Bench) -> None:
    jobs = design_of(plan_of(bench.store), bench.store).jobs()
    assert of_stage(jobs, "look") == ()
    fitting = {"data", "classes", "points", "count", "asked", "test", "model", "recipe", "code", "platform", "seed"}
    assert set(of_stage(jobs, "train")[0].document) == fitting | {"modes", "ridge", "checkpoints", "chunk"}
    assert set(of_stage(jobs, "defend")[0].document) == fitting | {"watched", "defence", "method"}
    assert set(of_stage(jobs, "score")[0].document) == {
        *("watched", "defended", "null", "model", "pool", "halves", "attacks", "modes", "bins", "onion", "chunk"),
        *("arm", "seed", "code", "platform"),
    }


def test_the_cost_of_looks_is_told(tmp_path: Path) -> None:
    costs = {stage.stage: stage for stage in estimate(KIND, plan_of(tmp_path, SHARDED)).stages}
    needed = {"train": MODELS, "look": LOOKS * (SHARDS + 1), "defend": MODELS * 3, "score": 4}
    assert {name: stage.needed for name, stage in costs.items()} == needed
    whole = {stage.stage: stage for stage in estimate(KIND, plan_of(tmp_path)).stages}
    assert costs["look"].unit_seconds > 0
    assert costs["train"].unit_bytes == 3 * whole["train"].unit_bytes  # the trained model and two checkpoints
    assert costs["look"].bytes >= LOOKS * 8 * HALF * (HALF + 1) // 2


@pytest.mark.long
def test_ranks_in_doubt_are_counted_where_looks_are_apart(bench: Bench) -> None:
    """Mode pinv is in doubt at the same checkpoints, whoever looks; in short: ``tests/audits/uniqueness``."""
    changes = {"audit.modes": ["ridge", "pinv"], "recipe.learning_rate": 0.1, "split.train_size": 150}
    changes |= {"defences": [{"method": "remove", "ranking": "random", "share": 0.2}], "model.settings.hidden": [2]}
    changes |= {"recipe.epochs": 6, "audit.checkpoints": 2}
    counts = []
    for change in (TOGETHER, APART):
        plan = plan_of(bench.store, changes, change)
        audited(plan, bench.out)
        setting = Setting("base", {}, plan, tuple(design_of(plan, bench.store).jobs()))
        counts.append([model["doubts"] for model in fits(setting, Store(str(bench.store)), ["none"])["none"][0]])
    assert counts[0] == counts[1]
    assert sum(counts[0]) > 0


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            ["audit.looks=apart", "audit.in_batch=true"],
            "audit.looks is apart, which keeps the weights of checkpoints alone, but audit.in_batch looks at every "
            "step; set audit.looks to together or audit.in_batch to false",
        ),
        (
            ["audit.look_shards=2"],
            "audit.look_shards is 2, but looks are taken together with the training; set audit.looks to apart or",
        ),
        (
            ["audit.looks=apart", "audit.look_shards=61"],
            "audit.look_shards is 61; allowed: 1 to 60, the points that a model trains on (split.train_size)",
        ),
        (["audit.looks=appart"], "audit.looks"),
        (["audit.looks=apart", "audit.look_shards=0"], "audit.look_shards is 0"),
    ],
)
def test_looks_that_cannot_be_taken_are_refused_in_one_line(changes: list[str], said: str) -> None:
    with pytest.raises(BadInput) as caught:
        load_plan("gnq-smoke", changes)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_nobody_looks_at_shadows_whose_traces_nothing_reads(bench: Bench) -> None:
    changes = {**APART, "defences": []}
    design = design_of(plan_of(bench.store, changes), bench.store)
    jobs = design.jobs()
    looked = {job.member for job in of_stage(jobs, "look")}
    assert looked == {model.name for model in design.models.values() if model.group == "target"}
    read = {need for job in jobs for need in job.needs}
    assert all(job.key in read for job in of_stage(jobs, "look")), "every look is read by a later job"
    kinds = {job.member: job.document["kind"] for job in of_stage(jobs, "train")}
    assert set(kinds.values()) == {"apart", "unseen"}
    assert {name for name, kind in kinds.items() if kind == "apart"} == looked


def test_shadows_whose_traces_nothing_reads_are_trained_alike_and_unseen_where_looks_are_together(bench: Bench) -> None:
    together, apart = (design_of(plan_of(bench.store, {**how, "defences": []}), bench.store) for how in ({}, APART))
    for name, model in together.models.items():
        job = together.train_job(model)
        assert (job.document.get("kind") == "unseen") == (model.group == "shadow")
        assert (job.key == apart.train_job(apart.models[name]).key) == (model.group == "shadow")
    ranked = design_of(plan_of(bench.store), bench.store)
    shadow = next(model for model in ranked.models.values() if model.group == "shadow")
    context = WorkerContext(KIND, together, Store(str(bench.store)))
    files = train(context, together.train_job(together.models[shadow.name]))
    seen = train(WorkerContext(KIND, ranked, context.store), ranked.train_job(shadow))
    assert TRACE in seen and TRACE not in files
    assert all(files[name] == seen[name] for name in (WEIGHTS, ANSWERS))
