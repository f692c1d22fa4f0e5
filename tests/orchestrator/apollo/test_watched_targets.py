"""GNQ as triage of an unlearning audit: exposed points are ranked first, and forget requests get their uniqueness."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from scipy import stats

from audits.errors import BadInput
from audits.seeds import derive_seed
from audits.uniqueness.accumulate import fit_traced
from audits.uniqueness.bits import bits_upper
from orchestrator.apollo.page import page as render
from orchestrator.apollo.page.forget_requests import all_foretold
from orchestrator.apollo.page.reading import ApolloRun
from orchestrator.apollo.page.tables import all_grids
from orchestrator.apollo.result.forget_requests import disclosure_rows
from orchestrator.apollo.score_table import POOLED, pooled, whole_table
from orchestrator.apollo.stages.disclosure import DISCLOSURE, SCORES, disclosure
from orchestrator.apollo.stages.stored import stored_model
from orchestrator.engine.jobs.job import keys_by_stage, missing, of_stage
from orchestrator.engine.run.worker import WEIGHTS, WorkerContext
from orchestrator.engine.setting import Setting
from orchestrator.engine.store.payloads import unpack_arrays, unpack_table
from orchestrator.engine.store.store import Store
from orchestrator.kinds import kind_named
from orchestrator.report.grid_formats import as_markdown
from orchestrator.report.rows import write_row
from tests.cases.runs import audited, context_of, jobs_of
from tests.orchestrator.apollo.test_pipeline import tiny_plan

pytestmark = pytest.mark.slow

EXPOSED = ("split.points=exposed", "split.ranking_models=2")
WATCHED = ("split.shadows=4", "audit.attacks=[u_lira, loss_threshold]", "audit.disclosure=true", "audit.fdr=0.99")


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A finished audit of exposed points whose targets were watched: plan, result, page, store."""
    place = tmp_path_factory.mktemp("watched")
    plan = tiny_plan(place / "store", *EXPOSED, *WATCHED)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(render, "draw", lambda *_: {})  # figures are tested elsewhere
        result = audited(plan, place / "out")
        page = kind_named("apollo").open_page().write(place / "out", None).read_text(encoding="utf-8")
    return plan, result, page, Store(place / "store")


@pytest.fixture(scope="module")
def context(done) -> WorkerContext:
    plan, *_, store = done
    return context_of(plan, store)


def traced(context: WorkerContext, member):
    """Return model and trace of a member, trained and watched here at every one of its 6 steps."""
    seed = derive_seed(context.plan.seed, "train", member.name)
    model = context.plan.model.architecture().build(context.design.data.shape, 10, derive_seed(seed, "init"))
    points = context.design.data.tensors(member.train)
    trace = fit_traced(
        model,
        points,
        context.plan.recipe,
        seed=derive_seed(seed, "fit"),
        every=1,
        ridge=1e-3,
        chunk=context.plan.compute.chunk,
    )
    return model, trace


def slow_sum(trace) -> list[float]:
    """Return Σ ½·log2(1 + GNQ) of each point, by the trapezoid rule written out."""
    values = 0.5 * np.log2(1 + trace.gnq["ridge"])
    sums = [0.0] * values.shape[1]
    for first, second, width in zip(values, values[1:], np.diff(trace.steps), strict=False):
        for point in range(len(sums)):
            sums[point] += width * (first[point] + second[point]) / 2
    return sums


def test_points_are_ranked_among_those_of_the_model_that_trains_on_them(done, context):
    plan, result, _, _ = done
    found, models = context.design.ranking(), tuple(context.design.ranking_members.values())
    assert len(models) == 2 and np.isnan(found).sum() == len(found) - 2 * plan.split.train_size
    for member in models:
        _, trace = traced(context, member)
        assert list(trace.steps) == list(range(7))
        sums = slow_sum(trace)
        for point, value in zip(member.train, sums, strict=True):
            place = sum((other < value) + (other == value) / 2 for other in sums) / len(sums)
            assert found[point] == pytest.approx(place, abs=1e-12)
    asked = set(result.scores["point_id"].to_pylist())
    others = [point for point in np.flatnonzero(~np.isnan(found)) if point not in asked]
    assert min(found[list(asked)]) >= max(found[others])


def test_the_ranking_is_one_job_and_trains_no_model_of_the_store(done, context):
    plan, _, _, store = done
    (job,) = context.design.first_jobs()
    assert job.stage == "expose" and not job.needs and store.keys("expose") == {job.key}
    assert store.keys("train") == {each.key for each in jobs_of(plan, "train", store=store)}
    with pytest.raises(BadInput, match=r"split\.points is exposed, but no ranking"):
        jobs_of(plan)


def test_each_target_is_watched_to_the_same_weights(done, context):
    from safetensors.torch import load

    *_, store = done
    jobs = of_stage(context.design.jobs(), "disclosure")
    assert [job.member for job in jobs] == [member.name for member in context.design.targets]
    for job in jobs:
        member = context.design.member(job.member)
        model, trace = traced(context, member)
        stored = load(store.get("train", context.design.trained(member).key).read(WEIGHTS))
        assert all(torch.equal(value, stored[name]) for name, value in model.state_dict().items())
        found = unpack_arrays(store.get("disclosure", job.key).read(DISCLOSURE))
        np.testing.assert_array_equal(found["point_id"], member.train)
        np.testing.assert_allclose(found["gnq_log"], slow_sum(trace), rtol=1e-10)
        np.testing.assert_allclose(found["bits"], bits_upper(trace.gnq["ridge"], trace.weights), rtol=1e-10)
        np.testing.assert_allclose(found["final_loss"], trace.loss[-1], rtol=1e-10)
        np.testing.assert_allclose(found["gradient_norm"], trace.squared_norm[-1], rtol=1e-10)


def test_another_model_than_the_stored_one_is_refused(done):
    plan, *_, store = done
    context = context_of(plan, store)
    (job, *_) = of_stage(context.design.jobs(), "disclosure")
    member = context.design.member(job.member)
    model = stored_model(context, context.design.trained(member), member)
    next(model.parameters()).data.view(-1)[0] += 1e-7  # stays in the context's memory, the store is as it was
    with pytest.raises(BadInput, match=r"target-000 trained again differs from the stored model in .*weight") as caught:
        disclosure(context, job)
    assert "\n" not in str(caught.value)


def test_forget_requests_get_their_uniqueness(done, context):
    plan, result, _, store = done
    rows = result.document["disclosure"]
    scores = {name: result.scores[name].to_numpy() for name in ("target", "point_id", "group", "label")}
    forgotten = scores["group"] == "forget"
    truth = {
        tuple(map(int, key))
        for key in zip(*(scores[n][forgotten] for n in ("target", "point_id", "label")), strict=True)
    }
    assert len(rows) == len(truth) == plan.split.targets * plan.split.candidates.forget
    assert {(row["target"], row["point_id"], row["label"]) for row in rows} == truth
    for job in of_stage(context.design.jobs(), "disclosure"):
        found = unpack_arrays(store.get("disclosure", job.key).read(DISCLOSURE))
        place = {int(point): index for index, point in enumerate(found["point_id"])}
        sums = found["gnq_log"]
        for row in (row for row in rows if f"target-{row['target']:03d}" == job.member):
            index = place[row["point_id"]]
            pairs = {"gnq_log": "gnq_log", "bits": "bits", "loss": "final_loss", "squared_norm": "gradient_norm"}
            assert all(row[field] == found[name][index] for field, name in pairs.items())
            assert row["percentile"] == ((sums < sums[index]).sum() + 0.5 * (sums == sums[index]).sum()) / len(sums)


def test_correlations_are_scipys_over_the_requests_of_each_target(done, context):
    plan, result, _, _ = done
    rows = result.document["disclosure_correlations"]
    assert len(rows) == len(plan.unlearning) * len(plan.audit.attacks) * len(SCORES)
    assert {row["score"] for row in rows if not row["control"]} == {"gnq_log"}
    known = {(row["target"], row["point_id"]): row for row in result.document["disclosure"]}
    scores = result.scores.to_pylist()
    for row in (row for row in rows if row["score"] == "gnq_log"):
        each = []
        for target in range(plan.split.targets):
            own = [
                (known[target, line["point_id"]]["gnq_log"], line["score"])
                for line in scores
                if (line["unlearner"], line["attack"], line["target"], line["group"])
                == (row["unlearner"], row["attack"], target, "forget")
            ]
            each.append(stats.spearmanr(*zip(*own, strict=True)).statistic)
        assert row["targets"] == len(each) == 2 and row["spearman"] == pytest.approx(np.mean(each), abs=1e-12)
        half = stats.t.ppf(0.975, 1) * abs(each[0] - each[1]) / 2
        assert row["low"] == pytest.approx(max(-1, np.mean(each) - half), abs=1e-9)
        assert row["high"] == pytest.approx(min(1, np.mean(each) + half), abs=1e-9)


def test_settings_taken_together_keep_their_targets_apart(done, context):
    _, result, _, store = done
    jobs = tuple(context.design.jobs())
    parts = [
        (name, unpack_table(store.get("score", job.key).read("scores.parquet")))
        for name in ("one", "two")
        for job in of_stage(jobs, "score")
    ]
    table = whole_table(pooled(parts))
    columns = {name: table[name].to_numpy() for name in table.column_names}
    settings = [Setting(name, {}, context.plan, jobs) for name in ("one", "two")]
    rows, correlations = disclosure_rows(columns, settings, store, POOLED, 0.95)
    once = {(row["target"], row["point_id"]): row for row in result.document["disclosure"]}
    assert len(rows) == 2 * len(once)
    for row in rows:
        assert write_row(row) == once[row.target % 1000, row.point_id] | {"target": row.target}
    assert {row.targets for row in correlations} == {4}


def test_the_page_says_what_was_known_before_unlearning(done):
    _, result, page, _ = done
    assert "Known before unlearning" in page and "rests on a Gaussian model and is no guarantee" in page
    assert page.count("(control)</th>") >= 4
    row = next(row for row in result.document["disclosure_correlations"] if row["unlearner"] == "gradient_ascent")
    assert f"{abs(row['spearman']):.3f}".removeprefix("0") + ' <span class="ci">[' in page
    point = result.document["exposed"]["points"][0]
    share = next(
        row["percentile"]
        for row in result.document["disclosure"]
        if (row["target"], row["point_id"]) == (point["target"], point["point_id"])
    )
    line = f"<td>{point['point_id']}</td><td>{point['label']}</td><td>{point['target']}</td>"
    cells = next(text for text in page.split("\n") if line in text)
    assert f"<td>{share * 100:.0f}\N{NO-BREAK SPACE}%</td></tr>" in cells
    assert "GNQ,<br>percentile" in page


def test_the_markdown_has_the_correlations_of_every_setting(done):
    _, result, _, _ = done
    document = result.document
    row = next(row for row in document["disclosure_correlations"] if row["score"] == "gnq_log")
    value = ("−" if row["spearman"] < 0 else "") + f"{abs(row['spearman']):.3f}".removeprefix("0") + " ["
    scores = {name: result.scores[name].to_numpy() for name in result.scores.column_names}
    own = "\n\n".join(map(as_markdown, all_grids(ApolloRun.of(document, scores))))
    assert "**rank correlation with the attack over forget requests [95" in own and value in own
    again = [{**row, "setting": "other"} for row in document["disclosure_correlations"]]
    both = {
        **document,
        "table": [*document["table"], *({**row, "setting": "other"} for row in document["table"])],
        "disclosure_correlations": [*document["disclosure_correlations"], *again],
    }
    grids = all_foretold(ApolloRun.of(both, scores))
    assert [grid.title.split(":")[0] for grid in grids] == [row["setting"], "other"]
    assert grids[0].lines == grids[1].lines
    assert all_foretold(ApolloRun.of({**document, "disclosure_correlations": []}, scores)) == []


def test_nothing_is_watched_and_no_key_changes_unless_asked(done, context):
    plan, _, _, store = done
    without, whole = jobs_of(plan.changed({"audit.disclosure": False}), store=store), context.design.jobs()
    assert not of_stage(without, "disclosure")
    kept = keys_by_stage(whole)
    assert kept.pop("disclosure") and keys_by_stage(without) == kept
    assert not list(missing(whole, kind_named("apollo").present(store))), "something is undone"
    columns = {name: done[1].scores[name].to_numpy() for name in done[1].scores.column_names}
    assert disclosure_rows(columns, [Setting("base", {}, plan, without)], store, "base", 0.95) == ([], [])


def test_the_result_is_json(done):
    document = done[1].document
    assert json.loads(json.dumps(document["disclosure"])) == document["disclosure"]
