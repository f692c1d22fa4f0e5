"""GNQ as triage of an unlearning audit: exposed points are ranked first, and forget requests get their uniqueness."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from scipy import stats
from test_pipeline import tiny_plan

from audits.disclosure.accumulate import fit_traced
from audits.disclosure.bits import bits_upper
from audits.errors import BadInput
from audits.seeds import derive_seed
from orchestrator.console import Terminal
from orchestrator.forget_requests import disclosure_rows
from orchestrator.jobs import STAGES, missing
from orchestrator.output_folder import claim_folder
from orchestrator.pipeline import Run, run_audit
from orchestrator.report import reading as report_reading
from orchestrator.report import render
from orchestrator.report.forget_requests import all_foretold
from orchestrator.report.markdown import markdown
from orchestrator.schedule import open_scheduler, schedule
from orchestrator.score_table import POOLED, pooled, whole_table
from orchestrator.setting import Setting
from orchestrator.stages import DISCLOSURE, WEIGHTS, Workshop
from orchestrator.stages.disclosure import SCORES, disclosure
from orchestrator.store import Store, unpack_arrays, unpack_table

pytestmark = pytest.mark.slow

EXPOSED = ("split.points=exposed", "split.ranking_models=2")
WATCHED = ("audit.attacks=[u_lira, loss_threshold]", "audit.disclosure=true", "audit.fdr=0.99")


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A finished audit of exposed points whose targets were watched: plan, result, page, store."""
    place = tmp_path_factory.mktemp("watched")
    plan = tiny_plan(place / "store", *EXPOSED, *WATCHED)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Run, "track", lambda *_: None)  # tracking and figures are tested elsewhere
        patch.setattr(render, "_draw", lambda *_: {})
        result = run_audit(plan, place / "out", Terminal(claim_folder(place / "out", plan)))
    return plan, result, (place / "out" / "report.html").read_text(encoding="utf-8"), Store(place / "store")


@pytest.fixture(scope="module")
def shop(done) -> Workshop:
    plan, *_, store = done
    return Workshop(open_scheduler(plan, store), store)


def traced(shop: Workshop, member):
    """Return model and trace of a member, trained and watched here at every one of its 6 steps."""
    seed = derive_seed(shop.plan.seed, "train", member.name)
    model = shop.plan.model.architecture().build(shop.scheduler.data.shape, 10, derive_seed(seed, "init"))
    points = shop.scheduler.data.tensors(member.train)
    trace = fit_traced(
        model,
        points,
        shop.plan.recipe,
        seed=derive_seed(seed, "fit"),
        every=1,
        ridge=1e-3,
        chunk=shop.plan.compute.chunk,
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


def test_points_are_ranked_among_those_of_the_model_that_trains_on_them(done, shop):
    plan, result, _, _ = done
    found, models = shop.scheduler.ranking(), tuple(shop.scheduler.ranking_members.values())
    assert len(models) == 2 and np.isnan(found).sum() == len(found) - 2 * plan.split.train_size
    for member in models:
        _, trace = traced(shop, member)
        assert list(trace.steps) == list(range(7))
        sums = slow_sum(trace)
        for point, value in zip(member.train, sums, strict=True):
            place = sum((other < value) + (other == value) / 2 for other in sums) / len(sums)
            assert found[point] == pytest.approx(place, abs=1e-12)
    asked = set(result.scores["point_id"].to_pylist())
    others = [point for point in np.flatnonzero(~np.isnan(found)) if point not in asked]
    assert min(found[list(asked)]) >= max(found[others])


def test_the_ranking_is_one_job_and_trains_no_model_of_the_store(done, shop):
    plan, _, _, store = done
    (job,) = shop.scheduler.ranking_jobs()
    assert job.stage == "rank" and not job.needs and store.keys("rank") == {job.key}
    assert store.keys("train") == {each.key for each in shop.scheduler.schedule().train_jobs}
    with pytest.raises(BadInput, match=r"split\.points is exposed, but no ranking"):
        schedule(plan)


def test_each_target_is_watched_to_the_same_weights(done, shop):
    from safetensors.torch import load

    *_, store = done
    jobs = shop.scheduler.schedule().disclosure_units
    assert [job.member for job in jobs] == [member.name for member in shop.scheduler.targets]
    for job in jobs:
        member = shop.scheduler.member(job.member)
        model, trace = traced(shop, member)
        stored = load(store.get("train", shop.scheduler.trained(member).key).read(WEIGHTS))
        assert all(torch.equal(value, stored[name]) for name, value in model.state_dict().items())
        found = unpack_arrays(store.get("disclosure", job.key).read(DISCLOSURE))
        np.testing.assert_array_equal(found["point_id"], member.train)
        np.testing.assert_allclose(found["gnq_log"], slow_sum(trace), rtol=1e-10)
        np.testing.assert_allclose(found["bits"], bits_upper(trace.gnq["ridge"], trace.weights), rtol=1e-10)
        np.testing.assert_allclose(found["final_loss"], trace.loss[-1], rtol=1e-10)
        np.testing.assert_allclose(found["gradient_norm"], trace.squared_norm[-1], rtol=1e-10)


def test_another_model_than_the_stored_one_is_refused(done):
    plan, *_, store = done
    shop = Workshop(open_scheduler(plan, store), store)
    job = shop.scheduler.schedule().disclosure_units[0]
    member = shop.scheduler.member(job.member)
    model = shop.model(shop.scheduler.trained(member), member)
    next(model.parameters()).data.view(-1)[0] += 1e-7  # stays in the workshop's memory, the store is as it was
    with pytest.raises(BadInput, match=r"target-000 trained again differs from the stored model in .*weight") as caught:
        disclosure(shop, job)
    assert "\n" not in str(caught.value)


def test_forget_requests_get_their_uniqueness(done, shop):
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
    for job in shop.scheduler.schedule().disclosure_units:
        found = unpack_arrays(store.get("disclosure", job.key).read(DISCLOSURE))
        place = {int(point): index for index, point in enumerate(found["point_id"])}
        sums = found["gnq_log"]
        for row in (row for row in rows if f"target-{row['target']:03d}" == job.member):
            index = place[row["point_id"]]
            pairs = {"gnq_log": "gnq_log", "bits": "bits", "loss": "final_loss", "squared_norm": "gradient_norm"}
            assert all(row[field] == found[name][index] for field, name in pairs.items())
            assert row["percentile"] == ((sums < sums[index]).sum() + 0.5 * (sums == sums[index]).sum()) / len(sums)


def test_correlations_are_scipys_over_the_requests_of_each_target(done, shop):
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


def test_settings_taken_together_keep_their_targets_apart(done, shop):
    _, result, _, store = done
    jobs = shop.scheduler.schedule()
    parts = [
        (name, unpack_table(store.get("score", job.key).read("scores.parquet")))
        for name in ("one", "two")
        for job in jobs.score_units
    ]
    table = whole_table(pooled(parts))
    columns = {name: table[name].to_numpy() for name in table.column_names}
    settings = [Setting(name, {}, shop.plan, jobs) for name in ("one", "two")]
    rows, correlations = disclosure_rows(columns, settings, store, POOLED, 0.95)
    once = {(row["target"], row["point_id"]): row for row in result.document["disclosure"]}
    assert len(rows) == 2 * len(once)
    assert all(row == once[row["target"] % 1000, row["point_id"]] | {"target": row["target"]} for row in rows)
    assert {row["targets"] for row in correlations} == {4}


def test_the_page_says_what_was_known_before_unlearning(done):
    _, result, page, _ = done
    assert "What could be known before unlearning" in page and "under the Gaussian model, never a guarantee" in page
    assert page.count("(control)</th>") >= 4
    row = next(row for row in result.document["disclosure_correlations"] if row["unlearner"] == "gradient_ascent")
    assert f"{abs(row['spearman']):.3f}".removeprefix("0") + " [" in page
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
    own = markdown(report_reading.Run(document, scores))
    assert "**rank correlation with the attack over forget requests [95" in own and value in own
    again = [{**row, "setting": "other"} for row in document["disclosure_correlations"]]
    both = {
        **document,
        "table": [*document["table"], *({**row, "setting": "other"} for row in document["table"])],
        "disclosure_correlations": [*document["disclosure_correlations"], *again],
    }
    grids = all_foretold(report_reading.Run(both, scores))
    assert [grid.title.split(":")[0] for grid in grids] == [row["setting"], "other"]
    assert grids[0].rows == grids[1].rows
    assert all_foretold(report_reading.Run({**document, "disclosure_correlations": []}, scores)) == []


def test_nothing_is_watched_and_no_key_changes_unless_asked(done, shop):
    plan, _, _, store = done
    scheduler = open_scheduler(plan.changed({"audit.disclosure": False}), store)
    without, whole = scheduler.schedule(), shop.scheduler.schedule()
    assert not without.disclosure_units
    assert without.keys() == {stage: keys for stage, keys in whole.keys().items() if stage != "disclosure"}
    assert not list(missing(whole.everything, {stage: store.keys(stage) for stage in STAGES})), "something is undone"
    columns = {name: done[1].scores[name].to_numpy() for name in done[1].scores.column_names}
    assert disclosure_rows(columns, [Setting("base", {}, plan, without)], store, "base", 0.95) == ([], [])


def test_the_result_is_json(done):
    document = done[1].document
    assert json.loads(json.dumps(document["disclosure"])) == document["disclosure"]
