"""Whole audits of designs that are not the usual one: what is forgotten, who is asked about, whose shadows."""

from __future__ import annotations

import json
import shutil
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch

from audits.data import toy2d
from audits.seeds import Purpose, derive_seed
from audits.training.fit import train_model
from orchestrator.apollo.page.exposure import shown_images
from orchestrator.apollo.plan import ApolloPlan
from orchestrator.apollo.result.rows import ExposedPoint, ExposureList
from orchestrator.apollo.stages.stored import builder_of, stored_model
from orchestrator.engine.jobs.code_version import reached
from orchestrator.engine.jobs.job import missing
from orchestrator.engine.run.run import Result
from orchestrator.engine.store.store import Store
from orchestrator.kinds import kind_named, open_design
from orchestrator.report import writing
from orchestrator.report.pictures import MOST_POINTS
from tests.cases.runs import audited, begun, context_of, draw_only, jobs_of
from tests.orchestrator.apollo.test_pipeline import ONE_TARGET, tiny_plan

ATTACKS = "audit.attacks=[apollo, random_directions, single_query, u_lira]"
CLASSES = (3, 5, 8)
IDS = tuple(range(0, 240, 20))
DESIGNS = {
    "classes": (
        f"split.forget={{classes: [{', '.join(map(str, CLASSES))}]}}",
        "split.train_size=100",
        "split.target_pool=200",
        *ONE_TARGET,
        "split.candidates={forget: 8, unseen: 12}",
    ),
    "ids": (
        f"split.forget={{ids: [{', '.join(map(str, IDS))}]}}",
        *ONE_TARGET,
    ),
    "other shadows": (
        "split.forget=0.5",
        *ONE_TARGET,
        "shadow_model={name: cnn, settings: {}}",
    ),
}


def paged(plan, out: Path) -> tuple[Result, str]:
    """Run the audit; return its result and the text of its page."""
    result = audited(plan, out)
    file = kind_named("apollo").open_page().write(out, None)
    return result, file.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """Return what returns plan, result and page of a design, whose audit is made when it is first asked for."""
    place = tmp_path_factory.mktemp("designs")

    @cache
    def of(name: str) -> tuple[ApolloPlan, Result, str]:
        plan = tiny_plan(place / "store", ATTACKS, *DESIGNS[name])
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(writing, "draw", lambda *_: {})  # figures are tested elsewhere
            return plan, *paged(plan, place / name)

    return of


def forget_points(result: Result) -> set[int]:
    """Return the ids of the forget points of a result."""
    rows = np.array(result.scores["group"].to_pylist()) == "forget"
    return set(result.scores["point_id"].to_numpy()[rows].tolist())


def test_forgotten_classes_are_named_and_nothing_else_is_asked_about(done):
    plan, result, page = done("classes")
    assert "all training points of class 3, 5, 8 forgotten" in page
    assert set(result.scores["label"].to_pylist()) <= set(CLASSES)
    design = open_design(plan)
    for target in design.targets:
        own = target.train[np.isin(design.data.labels[target.train], CLASSES)]
        np.testing.assert_array_equal(np.sort(own), np.sort(target.forget))


@pytest.mark.long
def test_points_forgotten_by_name_are_those_asked_about(done):
    _, result, page = done("ids")
    assert "12 named points forgotten" in page
    assert forget_points(result) == set(IDS)


def test_shadows_of_another_architecture_and_half_of_the_training_set_forgotten(done):
    plan, result, page = done("other shadows")
    assert "mlp on digits" in page and "shadows of cnn" in page and "50 % of 60 training points forgotten" in page
    assert any("fewer than 8 shadows" in line for line in result.document["warnings"])
    design = open_design(plan)
    assert all(len(member.forget) == 30 for member in design.targets)
    documents = {job.member: job.document["model"]["name"] for job in jobs_of(plan, "train")}
    for member in design.partition.members:
        assert documents[member.name] == ("mlp" if member.role == "target" else "cnn")


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.long] * (name == "ids")) for name in DESIGNS])
def test_every_design_gives_every_attack_a_finite_score(done, name):
    plan, result, _ = done(name)
    assert {row["attack"] for row in result.document["table"]} == set(plan.audit.attacks)
    assert np.isfinite(result.scores["score"].to_numpy()).all()


@pytest.fixture(scope="module")
def retained(tmp_path_factory):
    """An audit with three groups of candidates and estimated radii: plan, result, page, folder, store."""
    place = tmp_path_factory.mktemp("retained")
    plan = tiny_plan(
        place / "store",
        "audit.attacks=[apollo, random_directions, single_query]",
        "split.candidates={forget: 12, unseen: 12, retained: 12}",
        "audit.radii=true",
        "audit.fpr=[0.9, 0.95]",
        "split.targets=1",
        "audit.search.steps=2",
    )
    with pytest.MonkeyPatch.context() as patch:
        draw_only(patch, "radii", "budget")
        return plan, *paged(plan, place / "out"), place / "out", Store(place / "store")


def test_retained_points_are_scored_and_kept_out_of_rates(retained):
    plan, result, page, _, _ = retained
    groups = result.scores["group"].to_pylist()
    assert groups.count("retained") == groups.count("forget") == groups.count("unseen") > 0
    assert all(row["forget"] == row["unseen"] == 12 for row in result.document["table"])
    rows = result.document["three_way"]
    assert {row["attack"] for row in rows} == {"apollo", "random_directions", "single_query"}
    assert {row["unlearner"] for row in rows} == {entry.label for entry in plan.unlearning}
    assert all(row["points"] == [12, 12, 12] for row in rows)
    assert "Forgotten, retained or never seen" in page


def test_the_full_budget_is_the_main_table_and_budgets_count_queries(retained):
    plan, result, page, _, _ = retained
    rate, rows = plan.audit.fpr[0], result.document["budget"]
    assert {row["attack"] for row in rows} == {"apollo", "random_directions"}
    main = {(row["unlearner"], row["attack"]): row for row in result.document["table"] if row["promised_fpr"] == rate}
    full = 1 + 4 * plan.audit.search.steps
    for label in (entry.label for entry in plan.unlearning):
        for attack in ("apollo", "random_directions"):
            own = {row["queries"]: row for row in rows if (row["unlearner"], row["attack"]) == (label, attack)}
            assert list(own) == [1, 2, 3, 5, full]
            table = main[label, attack]
            assert table["queries_per_point"] == full
            for name in ("auc", "auc_low", "auc_high", "tpr", "tpr_low", "tpr_high"):
                assert own[full][name] == pytest.approx(table[name], abs=1e-12)
            single = main[label, "single_query"]
            assert own[1]["auc"] == pytest.approx(single["auc"], abs=1e-12), "one label: the calibrated label at x"
    assert "Power against queries" in page


def test_radii_are_measured_for_forgotten_points_and_methods_that_are_no_control(retained):
    plan, result, page, out, store = retained
    own, row = result.document["radii"]
    assert [each["reference"] for each in (own, row)] == ["own_start", "retrain"]
    assert own["median_retrained_distance"] < 0.5 * row["median_retrained_distance"], "another start is far away"
    assert own["median_unlearned_distance"] == row["median_unlearned_distance"] > 0
    assert row["unlearner"] == "gradient_ascent" and row["points"] == 12
    assert set(row["candidates"]["point_id"]) == forget_points(result)
    for each, way in ((own, "under"), (own, "over"), (row, "under"), (row, "over")):
        assert each[way]["intervals"] == sum(each[way][name] for name in ("expected", "refuted", "open"))
    for way in ("under", "over"):
        span = np.array(row["candidates"][way], dtype=float)
        flip = np.array(row["candidates"][f"flip_{way}"], dtype=float)
        assert row[way]["intervals"] == np.isfinite(span).all(1).sum() <= 12
        assert row[way]["flips"] == np.isfinite(flip).sum()
        reach = plan.audit.search.epsilon * plan.audit.search.steps
        assert ((flip[np.isfinite(flip)] >= 0) & (flip[np.isfinite(flip)] <= reach * (1 + 1e-6))).all()
    assert "Radii that the theory expects" in page
    assert (out / "figures" / "radii_gradient_ascent.svg").exists() == bool(
        row["under"]["intervals"] + row["over"]["intervals"] + row["under"]["flips"] + row["over"]["flips"]
    )
    assert len(store.keys("radii")) == len(store.keys("own_start")) == plan.split.targets


def test_a_target_that_starts_as_it_did_trains_by_the_same_seed_on_what_it_retains(retained):
    plan, _, _, _, store = retained
    context = context_of(plan, store)
    member, recipe = context.design.targets[0], plan.recipe
    seed = derive_seed(plan.seed, Purpose.TRAIN, member.name)
    data = context.tensors(member.retain)
    whole = train_model(builder_of(context, member), context.tensors(member.train), recipe, seed)
    again = train_model(builder_of(context, member), data, recipe, seed)
    for expected, reference in ((whole, context.design.trained(member)), (again, context.design.own_start(member))):
        found = stored_model(context, reference, member).state_dict()
        assert all(torch.equal(value, found[name]) for name, value in expected.state_dict().items())


def test_radii_leave_scores_and_their_keys_alone(retained):
    plan, _, _, _, store = retained
    without = plan.changed({"audit.radii": False})
    assert not jobs_of(without, "radii", "own_start")
    assert {job.key for job in jobs_of(without, "score")} == {job.key for job in jobs_of(plan, "score")}
    assert not list(missing(jobs_of(plan), kind_named("apollo").present(store))), "something was left undone"


def test_exposed_points_are_shown_as_they_are(retained):
    plan, *_ = retained
    data = open_design(plan).data
    named = {"unlearner": "identity", "target": 0, "label": 1, "score": 1.0, "p": 0.01, "q": 0.05}
    points = tuple(ExposedPoint(**named, point_id=point) for point in range(MOST_POINTS + 5))
    exposed = ExposureList(setting="base", attack="apollo", fdr=0.1, dependence="positive", points=points)
    found = shown_images(exposed, data)
    assert set(found) == set(range(MOST_POINTS))
    for point, pixels in found.items():
        assert pixels.dtype == np.uint8
        np.testing.assert_array_equal(pixels, data.inputs[point])
    assert shown_images(exposed, toy2d.make(40)) == {}
    assert shown_images(None, data) == {}


def test_the_page_shows_the_images_of_exposed_points(retained, tmp_path, monkeypatch):
    monkeypatch.setattr(writing, "draw", lambda *_: {})  # figures are tested elsewhere
    plan, result, _, out, _ = retained
    shutil.copytree(out, tmp_path / "out")
    point = {"unlearner": "identity", "target": 0, "label": 1, "score": 1.0, "p": 0.01, "q": 0.05}
    exposed = result.document["exposed"] | {"points": [point | {"point_id": 7}]}
    (tmp_path / "out" / "result.json").write_text(json.dumps(result.document | {"exposed": exposed}))
    run = begun(plan, tmp_path / "out", "apollo-audit", shown=True)
    run.report({"exposed": exposed})
    assert '<img class="thumb" alt="point 7"' in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


def test_code_that_makes_details_and_radii_is_in_their_keys():
    score, radii = (reached((kind_named("apollo").stage(name).body.__module__,)) for name in ("score", "radii"))
    assert {"audits.apollo.attacks.budget", "audits.apollo.attacks.three_way"} <= set(score)
    assert {"audits.statistics.radii", "orchestrator.apollo.stages.radii"} <= set(radii)
    assert not any(name.startswith("audits.apollo.attacks.") for name in radii)
