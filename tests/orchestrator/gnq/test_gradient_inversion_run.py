"""Gradient inversion within a GNQ audit, end to end and tiny: what is sought, by what controls, and what is told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr

from audits.errors import BadInput
from audits.gnq.gradient_inversion.matching import reconstruct
from audits.gnq.gradient_inversion.settings import GradientInversionSettings
from audits.gnq.inversion import mse, ssim
from audits.statistics.intervals import ibragimov_mueller_t
from audits.uniqueness.accumulate import fit_kept
from orchestrator.engine.jobs.job import keys_by_stage, of_stage
from orchestrator.engine.run.run import Result
from orchestrator.engine.run.worker import WorkerContext
from orchestrator.engine.store.payloads import unpack_arrays
from orchestrator.engine.store.store import Store
from orchestrator.gnq.kind import KIND
from orchestrator.gnq.page.gradient_inversion import gradient_verdict
from orchestrator.gnq.page.reading import GnqRun
from orchestrator.gnq.plan import GnqPlan, GradientInversion
from orchestrator.gnq.result.gradient_inversions import gradient_inversion_warnings
from orchestrator.gnq.stages.context import Context
from orchestrator.gnq.stages.finished import seed_of, untrained
from orchestrator.gnq.stages.matching import FOUND, PICTURES, weights_at
from orchestrator.gnq.stages.stored import tensors, trace_of
from orchestrator.kinds import check_against_data, load_plan, open_design
from tests.cases.runs import audited

ASKED = {"points": 4, "batches": [1, 2], "methods": ["analytic", "dlg", "geiping"], "looks": [0, 1, -1], "steps": 3}


def plan_of(place: Path, asked: dict[str, Any] | None = ASKED, **changes: Any) -> GnqPlan:
    values: dict[str, Any] = {
        "audit.attacks": ["loss"],
        "audit.bins": 2,
        "audit.checkpoints": 2,
        "audit.looks": "apart",
        "audit.gradient_inversion": asked,
        "data.name": "fashion14",
        "split": {"pools": 2, "train_size": 12, "shadows": 4, "test": 20},
        "model": {"name": "mlp", "settings": {"hidden": [32]}},
        "recipe": {"learning_rate": 0.01, "epochs": 2, "batch_size": 6},
        "defences": [],
        "compute.workers": 0,
        "compute.device": "cpu",
        "compute.store": str(place / "store"),
    }
    plan = load_plan("gnq-smoke", values=values | {name.replace("__", "."): value for name, value in changes.items()})
    assert isinstance(plan, GnqPlan)
    return plan


def context_of(plan: GnqPlan, place: Path) -> Context:
    store = Store(str(place / "store"))
    design: Any = open_design(plan, store)
    return WorkerContext(KIND, design, store)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("gradient-inversion")


@pytest.fixture(scope="module")
def finished(place: Path) -> Result:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("orchestrator.engine.run.run.Run.watch", lambda self, settings, left, **how: None)
        patch.setattr("orchestrator.engine.run.run.Run.track", lambda self, document: None)
        patch.setattr("orchestrator.report.writing.draw", lambda makers, folder: {})
        return audited(plan_of(place), place / "out", shown=True)


@pytest.fixture(scope="module")
def left(place: Path, finished: Result) -> dict[tuple[int, int], tuple[list[dict[str, Any]], dict[str, np.ndarray]]]:
    """Return (steps, pool) → what the stage left of each target."""
    context = context_of(plan_of(place), place)
    found = {}
    for job in of_stage(context.design.jobs(), "match"):
        artefact = context.store.get("match", job.key)
        found[job.document["step"], job.unit] = (
            json.loads(artefact.read(FOUND))["targets"],
            unpack_arrays(artefact.read(PICTURES)),
        )
    return found


def test_the_same_own_points_are_sought_at_every_checkpoint(place: Path, left: Any) -> None:
    context = context_of(plan_of(place), place)
    assert sorted(left) == [(step, pool) for step in (0, 2, 4) for pool in (0, 1)]
    for (step, pool), (targets, arrays) in left.items():
        for target, told in zip(context.design.of(pool, "target"), targets, strict=True):
            own = context.design.points(target)
            assert set(told["point_ids"]) <= set(own.tolist()) and len(set(told["point_ids"])) == 4
            assert told["point_ids"] == left[0, pool][0][target.index]["point_ids"]
            pixels = context.design.data.inputs[told["point_ids"]].astype(np.float64) / 255
            assert np.allclose(arrays["image"][target.index], pixels, atol=1e-6)
            trace, rows = trace_of(context, target), [own.tolist().index(point) for point in told["point_ids"]]
            assert told["scores"]["gnq"] == trace.gnq["ridge"][step // 2][rows].tolist()
            assert told["scores"]["loss"] == trace.loss[step // 2][rows].tolist()


def test_what_is_found_comes_from_the_weights_of_the_checkpoint_and_controls_from_another_of_the_class(
    place: Path, left: Any
) -> None:
    context = context_of(plan_of(place), place)
    targets, arrays = left[2, 1]
    (target, _), told = context.design.of(1, "target"), targets[0]
    points, recipe = tensors(context, context.design.points(target)), context.design.plan.recipe
    model = untrained(context, target.seed)
    kept = fit_kept(model, points, recipe, seed=seed_of(target.seed), every=2)  # trained once more
    model.load_state_dict(kept[2])
    model = model.double().eval()
    ids = context.design.drawn.pools[1]
    pool_x, pool_y = tensors(context, ids).all()
    own = [ids.tolist().index(point) for point in told["point_ids"]]
    seed = context.seed("gradient inversion", target.name)
    settings = GradientInversionSettings(steps=3)
    loss = torch.nn.functional.cross_entropy
    for first in (0, 2):
        rows = torch.tensor(own[first : first + 2])
        slow = torch.autograd.grad(loss(model(pool_x[rows].double()), pool_y[rows]), list(model.parameters()))
        means = {name: each[None] for (name, _), each in zip(model.named_parameters(), slow, strict=True)}
        found = reconstruct(model, means, pool_y[rows][None], (1, 14, 14), "geiping", settings, seed=seed).images[0]
        stored = torch.from_numpy(arrays["geiping-2-own"][0, first : first + 2]).double()
        assert min(float((stored - found[order]).abs().max()) for order in ([0, 1], [1, 0])) < 1e-3
    # Read off the control's own gradient, the other point of the class is there as it is.
    for place_, row in enumerate(own):
        other = torch.from_numpy(arrays["analytic-1-other"][0, place_])
        same = [i for i in range(len(ids)) if pool_y[i] == pool_y[row] and i != row]
        near = [float(mse(other, pool_x[i])) < 1e-6 for i in same]
        assert any(near) or not same


def test_a_first_fully_connected_layer_gives_points_back_and_controls_do_not(finished: Result) -> None:
    rows = {(row["step"], row["batch"], row["method"], row["given"]): row for row in document(finished)}
    for step in (0, 2, 4):
        assert rows[step, 1, "analytic", "own"]["ssim"] > 0.999 and rows[step, 1, "analytic", "own"]["mse"] < 1e-6
        assert rows[step, 1, "analytic", "own"]["labels_right"] == 1.0
        assert (
            rows[step, 1, "analytic", "other"]["mse"] > 0.01 and rows[step, 1, "analytic", "class_mean"]["mse"] > 0.01
        )
        assert (step, 2, "analytic", "own") not in rows and rows[step, 2, "dlg", "own"]["labels_right"] is None


def document(finished: Result, field: str = "gradient_inversions") -> list[dict[str, Any]]:
    return list(finished.to_json()[field])


def test_rows_hold_means_and_rank_correlations_over_pools(finished: Result, left: Any) -> None:
    rows = {(row["step"], row["batch"], row["method"], row["given"]): row for row in document(finished)}
    ranks = {
        (row["step"], row["batch"], row["method"], row["given"], row["score"], row["outcome"]): row["spearman"]
        for row in document(finished, "recovery_correlations")
    }
    assert not [key for key in ranks if key[2] == "analytic"]
    for given in ("own", "other"):
        likeness, correlations = [], []
        for pool in (0, 1):
            targets, arrays = left[4, pool]
            images = torch.from_numpy(arrays["image"]).double()
            seen = ssim(torch.from_numpy(arrays[f"geiping-2-{given}"]), images)
            errors = mse(torch.from_numpy(arrays[f"geiping-2-{given}"]), images)
            likeness.append(float(seen.mean()))
            correlations.append(np.mean([spearmanr(t["scores"]["gnq"], -errors[k])[0] for k, t in enumerate(targets)]))
        row = rows[4, 2, "geiping", given]
        assert row["points"] == 16 and row["ssim"] == pytest.approx(np.mean(likeness), abs=1e-5)
        low, high = ibragimov_mueller_t(likeness, 0.95)
        assert (row["ssim_low"], row["ssim_high"]) == pytest.approx((max(low, -1), min(high, 1)), abs=1e-4)
        assert ranks[4, 2, "geiping", given, "gnq", "mse"] == pytest.approx(np.mean(correlations), abs=1e-9)
    gains = {
        (row["step"], row["batch"], row["method"], row["control"], row["given"], row["outcome"]): row
        for row in document(finished, "recovery_gains")
    }
    own, other = (ranks[4, 2, "geiping", given, "gnq", "mse"] for given in ("own", "other"))
    assert gains[4, 2, "geiping", "gnq", "other", "mse"]["difference"] == pytest.approx(own - other)
    loss = ranks[4, 2, "geiping", "own", "loss", "mse"]
    assert gains[4, 2, "geiping", "loss", "own", "mse"]["difference"] == pytest.approx(own - loss)
    closer = {(row["step"], row["batch"], row["method"], row["against"], row["measure"]): row for row in
              document(finished, "gradient_inversion_gains")}  # fmt: skip
    for against in ("other", "class_mean"):
        found = [rows[4, 1, "dlg", given]["ssim"] for given in ("own", against)]
        assert closer[4, 1, "dlg", against, "ssim"]["difference"] == pytest.approx(found[0] - found[1])


def test_the_page_shows_points_and_what_each_search_gives_and_trackers_get_numbers(
    finished: Result, place: Path
) -> None:
    page = (place / "out" / "report.html").read_text("utf-8")
    section = page.split('<section id="gradient-inversion">')[1].split("</section>")[0]
    pictures = document(finished, "gradient_inversion_pictures")
    assert [(row["pool"], len(row["searches"])) for row in pictures] == [(pool, 15) for pool in (0, 0, 1, 1)]
    for row in pictures:
        shown = [
            row["image"],
            row["class_mean"],
            *(each[name] for each in row["searches"] for name in ("own", "other")),
        ]
        assert all(address in section for address in shown)
    assert "None" not in section and "Spearman of GNQ with SSIM" in page and "<dt>Gradient inversion</dt>" in page
    assert "rank correlation of scores at the checkpoint" in KIND.open_page().markdown(place / "out")
    metrics = KIND.metrics(finished.to_json(), "base")
    assert metrics["gradient_inversion.4.1.analytic.own.ssim"] > 0.999
    assert -1 <= metrics["gradient_inversion.4.2.dlg.own.ssim.gnq"] <= 1


def test_the_verdict_counts_where_gnq_differs_from_controls(finished: Result) -> None:
    told = finished.to_json()
    for row in told["gradient_inversion_gains"]:
        row |= {"difference": 0.2, "low": 0.1, "high": 0.3, "p_holm": 0.5 if row["batch"] == 2 else 0.01}
    for row in told["recovery_gains"]:
        side = {"squared_norm": 1, "loss": -1}.get(row["control"], 0)
        row |= {"difference": side, "low": side - 0.1, "high": side + 0.1, "p_holm": 0.01}
    found, ranks = gradient_verdict(GnqRun.of(told), "base")
    assert found.kind == "leak" and found.text.count("after 4 steps") == 5 == found.text.count("closer to the point")
    assert "DLG, batches of 2, after 4 steps" in found.text and "not after Holm" in found.text
    assert "Over 12 searches" in ranks.text
    assert "Minus ‖g‖²: more in 12, less in 0 of 12" in ranks.text and "Minus loss: more in 0, less in 12" in ranks.text
    assert "(control): more in 0, less in 0 of 12 after Holm’s correction: a null result." in ranks.text
    for row in told["gradient_inversion_gains"]:
        row["low"] = -0.1
    plain, _ = gradient_verdict(GnqRun.of(told), "base")
    assert plain.kind == "plain" and "no closer, a null result" in plain.text
    older = {name: value for name, value in told.items() if not name.startswith(("gradient", "recovery"))}
    assert gradient_verdict(GnqRun.of(older), "base") == []


def test_without_it_every_other_key_is_the_same(place: Path) -> None:
    def keys(plan: GnqPlan) -> dict[str, list[str]]:
        return keys_by_stage(open_design(plan, Store(str(place / "store"))).jobs())

    asked, plain = keys(plan_of(place)), keys(plan_of(place, None))
    other = keys(plan_of(place, {**ASKED, "tv": 0.2}))
    assert "match" not in plain and len(asked["match"]) == 6
    assert plain == {stage: found for stage, found in asked.items() if stage != "match"}
    assert not set(other["match"]) & set(asked["match"]) and other["score"] == asked["score"]


def test_looks_taken_together_give_the_weights_at_both_ends(place: Path, finished: Result) -> None:
    together = context_of(plan_of(place, {**ASKED, "looks": [0, -1]}, audit__looks="together"), place)
    target = together.design.of(0, "target")[0]
    together.perform(together.design.train_job(target))
    for end in (0, 2):
        one, other = (weights_at(each, target, end) for each in (together, context_of(plan_of(place), place)))
        for name, weight in one.state_dict().items():
            assert torch.equal(weight, other.state_dict()[name])


def test_defaults_of_the_plan_are_those_of_the_method() -> None:
    assert GradientInversion().settings == GradientInversionSettings()
    assert load_plan("gnq-fashion14").audit.gradient_inversion is None


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"points": 61}, "points is 61; allowed: 3, below which no rank correlation says anything, to 60"),
        ({"points": 12}, "batches: 8 does not divide audit.gradient_inversion.points (12)"),
        ({"methods": ["idlg"]}, "methods.0 is \"idlg\" (did you mean 'dlg'?); allowed: analytic, dlg, geiping"),
        ({"methods": ["dlg", "dlg"]}, "methods: 'dlg' is listed 2 times"),
        ({"methods": ["analytic"], "batches": [8]}, "methods is analytic alone, which reads single points"),
        ({"looks": [3]}, "looks: 3 is no checkpoint; there are 3 (audit.checkpoints and the beginning)"),
        ({"looks": [0, -3]}, "looks: checkpoint 0 is listed 2 times"),
        ({"looks": [1]}, "looks: 1 lies between the ends of training, whose weights are kept only with looks apart"),
        ({"tv": -1.0}, "audit.gradient_inversion.tv is -1.0"),
    ],
)
def test_impossible_searches_are_refused_in_one_line(asked: dict[str, Any], said: str) -> None:
    with pytest.raises(BadInput) as caught:
        load_plan("gnq-smoke", values={"audit.gradient_inversion": asked})
    assert said in str(caught.value) and "\n" not in str(caught.value)


def test_points_must_be_images_and_the_first_layer_one_that_can_be_read() -> None:
    asked = {"audit.gradient_inversion": {"methods": ["analytic"]}}
    with pytest.raises(BadInput, match=r"audit\.gradient_inversion: points of digits have shape \(1, 8, 8\)"):
        check_against_data(load_plan("gnq-smoke", values=asked))
    cnn = {"data.name": "fashion14", "model": {"name": "cnn", "settings": {}}}
    with pytest.raises(BadInput, match="analytic reads a first fully connected layer with a bias, which model cnn"):
        check_against_data(load_plan("gnq-smoke", values=asked | cnn))


def test_labels_that_gradients_do_not_tell_and_points_alone_in_their_class_are_warned_of() -> None:
    target = {"alone": 1, "found": [{"right": 0.75}, {"right": None}]}
    wrong, alone = gradient_inversion_warnings({4: [[target, {"alone": 0, "found": [{"right": 1.0}]}]]})
    assert "after 4 steps the labels of 12.5% of single points" in wrong and "1 point is the only one" in alone
    assert gradient_inversion_warnings({}) == []
