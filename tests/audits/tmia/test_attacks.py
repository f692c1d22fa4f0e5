"""The membership attacks as one family: what each may read, what older ones learn, and refusals."""

from __future__ import annotations

import inspect
import math
from dataclasses import replace

import numpy as np
import pytest

from audits.errors import BadInput
from audits.tmia.answers import Answers
from audits.tmia.attacks import ATTACKS, JUDGED, JudgeSettings, shadows
from audits.tmia.attacks.gmia import Gmia2
from audits.tmia.attacks.shadows import ShadowRows
from tests.audits.tmia.made_up_answers import (
    BETA,
    LABELS,
    OLDER,
    ORACLES,
    RANKED,
    WHITE_BOX,
    ruling,
    scene,
    synthetic_answers,
    usual,
)
from tests.cases.families import as_one

pytestmark = pytest.mark.usefixtures("few_epochs")

# -------------------------------------------------------------------------------------------------- the family


def test_the_family_is_complete_and_declares_what_it_reads() -> None:
    assert sorted(ATTACKS) == sorted(RANKED + OLDER)
    for name in ATTACKS:
        kind = ATTACKS[name]
        assert kind.name == name and kind.ranked == (name in RANKED)
        access = {"labels": LABELS, "oracle": ORACLES, "white_box": WHITE_BOX}
        assert kind.access == next((level for level, names in access.items() if name in names), "posteriors")
        reads = {"labels": {"distance", "votes"}, "white_box": {"white_box"}}
        assert set(kind.reads) <= reads.get(kind.access, {"posterior"})
        assert kind.needs_true_label == (name in ("label_gap", "stolen_memories"))
        assert kind.has_level == (name in [*RANKED, "gmia3", "rmia"])
        assert kind.promises("all") == kind.promises("none") == kind.has_level
        assert kind.promises("kmeans") == (name in RANKED)
        assert list(inspect.signature(kind.find).parameters) == ["self", "view", "settings", "seed"]


@as_one("name", RANKED + OLDER)
def test_a_ruling_has_the_shapes_and_types_of_its_table(name: str) -> None:
    made, found = scene(asked=40, failed=0.05), usual(name)
    rows = made.answers.labels.rows if name in LABELS else np.arange(60)
    np.testing.assert_array_equal(found.rows, rows)
    assert set(found.statistic) == {*JUDGED, "reference"} if name in RANKED else set(JUDGED)
    for group, models in (("target", 6), ("null", 8)):
        assert found.statistic[group].shape == found.decision[group].shape == (models, len(rows))
        assert found.statistic[group].dtype == np.float64 and found.decision[group].dtype == bool
        if name in RANKED:
            p = found.p[group]
            np.testing.assert_array_equal(found.decision[group], p <= BETA)
            assert np.nanmin(p) >= 1 / 41 and np.nanmax(p) <= 1
    assert (found.p is None) == (name in OLDER and name != "rmia")
    if name in RANKED:
        assert found.statistic["reference"].shape == (40, len(rows))
    distances = name in ("tmia", "tmia_distance", "tmia_smoothed")
    assert found.queries == (316 if distances else 32 if name == "noise_votes" else 1)


@as_one("name", LABELS)
def test_the_wall_stands_in_the_base_class(name: str) -> None:
    seen = []
    kind = ATTACKS[name]

    class Curious(kind):  # type: ignore[misc, valid-type]
        def find(self, view, settings, seed):  # type: ignore[no-untyped-def]
            seen.append(view)
            return super().find(view, settings, seed)

    Curious().judge(scene().answers, JudgeSettings(BETA), 0)
    assert len(seen) == 1 and seen[0].posteriors is None and seen[0].labels is not None
    with pytest.raises(BadInput, match="no posteriors within this attack's access"):
        seen[0].known_posteriors()


@as_one("name", sorted({*RANKED, *OLDER} - set(ORACLES)))
def test_no_attack_but_oracles_is_shown_the_truth(name: str) -> None:
    assert scene().answers.view(ATTACKS[name].access).truth is None
    assert (scene().answers.view(ATTACKS[name].access).white_box is None) == (name not in WHITE_BOX)
    with pytest.raises(BadInput, match="the truth about targets is not within"):
        scene().answers.view(ATTACKS[name].access).known_truth()


def test_without_null_models_there_are_decisions_about_targets_alone() -> None:
    answers = synthetic_answers(3, null=0, samples=40).answers
    for name in ATTACKS:
        found = ruling(name, answers)
        assert found.decision["null"].shape == (0, 60) and found.decision["target"].any()


# -------------------------------------------------------------------------------------------------- older attacks


def test_shadow_rows_are_balanced_few_and_decided_by_the_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = scene(samples=400).answers.posteriors
    found = shadows.balanced_shadows(seen, 10, seed=3)
    assert len(found) == 10
    for model, rows in enumerate(found):
        assert rows.member.sum() * 2 == len(rows.member) == 2 * min(50, int(seen.shadow_member[model].sum()))
    assert sum(len(rows.member) for rows in found) == shadows.ROWS
    again, other = (shadows.balanced_shadows(seen, 10, seed)[4] for seed in (3, 4))
    np.testing.assert_array_equal(found[4].posterior, again.posterior)
    assert not np.array_equal(found[4].posterior, other.posterior)
    none = replace(seen, shadow_member=np.zeros_like(seen.shadow_member))
    with pytest.raises(BadInput, match=r"raise audit\.reference_samples"):
        shadows.balanced_shadows(none, 10, seed=3)


def test_gmia1_reads_reference_model_0_alone_and_gmia2_the_first_ten() -> None:
    seen = scene().answers.posteriors
    for name, last in (("gmia1", 0), ("gmia2", 9)):
        before = ruling(name, Answers(posteriors=seen))
        for changed, same in ((last + 1, True), (last, False)):
            posterior = seen.shadow_posterior.copy()
            posterior[changed] = posterior[changed][:, ::-1] ** 2
            after = ruling(name, Answers(posteriors=replace(seen, shadow_posterior=posterior)))
            assert np.array_equal(before.statistic["target"], after.statistic["target"]) == same


def test_older_attacks_are_the_librarys() -> None:
    made = scene(asked=40, failed=0.05)
    seen = made.answers.posteriors
    rows = shadows.balanced_shadows(seen, 10, seed=5)
    verdict = Gmia2().judge(rows, seen.posterior["null"], 5)
    np.testing.assert_allclose(usual("gmia2").statistic["null"], verdict.score, atol=1e-5)

    known = [
        -math.log(seen.shadow_posterior[model, point, seen.shadow_star[model, point]])
        for model, point in zip(*np.nonzero(seen.shadow_member), strict=True)
    ]
    own = -usual("yeom").statistic["target"]
    np.testing.assert_array_equal(usual("yeom").decision["target"], own < sum(known) / len(known))

    unseen = np.sort(seen.shadow_posterior.max(-1)[~seen.shadow_member].astype(float))
    allowed = int(BETA * len(unseen) + 1e-9)
    threshold = unseen[len(unseen) - 1 - allowed]
    np.testing.assert_array_equal(usual("gmia3").decision["null"], seen.posterior["null"].max(-1) > threshold)

    labels = made.answers.labels
    right = labels.predicted["target"] == made.label[labels.rows]
    np.testing.assert_array_equal(usual("label_gap").decision["target"], right)


# -------------------------------------------------------------------------------------------------- refusals


def test_label_gap_is_refused_where_each_model_has_a_class_of_its_own() -> None:
    with pytest.raises(BadInput, match=r"label_gap needs the true class.*leave label_gap out"):
        ruling("label_gap", scene(star="own").answers)


@as_one("name", RANKED)
def test_a_level_beyond_reach_is_refused(name: str) -> None:
    with pytest.raises(BadInput, match="n_ref = 40"):
        ruling(name, scene().answers, beta=0.01)


@as_one(
    "name, part, gone, says",
    [
        ("tmia_distance", "labels", {"distance": None}, "no answers of kind 'distance'"),
        ("noise_votes", "labels", {"queries": {"distance": 316}}, "no answers of kind 'votes'"),
        ("tmia", "labels", {"fit_points": None}, "use tmia_distance"),
        ("tmia", "labels", {"fit_points": np.arange(12) + 100}, "points of the fit are candidates"),
    ],
)
def test_missing_answers_are_named(name: str, part: str, gone: dict[str, object], says: str) -> None:
    answers = scene().answers
    with pytest.raises(BadInput, match=says):
        ruling(name, replace(answers, labels=replace(answers.labels, **gone)))


def test_an_attack_without_its_part_says_so() -> None:
    with pytest.raises(BadInput, match=r"raise audit\.asked"):
        ruling("tmia", Answers(posteriors=scene().answers.posteriors))
    with pytest.raises(BadInput, match="no posteriors"):
        ruling("yeom", Answers(labels=scene().answers.labels))


def test_answers_that_do_not_fit_together_are_refused() -> None:
    labels, seen = scene().answers.labels, scene().answers.posteriors
    with pytest.raises(BadInput, match=r"votes of group null has shape \(7, 60\); give \(8, 60\)"):
        replace(labels, votes={**labels.votes, "null": labels.votes["null"][:7]})
    with pytest.raises(BadInput, match="59 labels and 60 ids"):
        replace(labels, label=labels.label[1:])
    with pytest.raises(BadInput, match="n_ref = 40"):
        replace(seen, shadow_member=seen.shadow_member[:3])
    with pytest.raises(BadInput, match=r"star of group target has shape \(6, 59\)"):
        replace(seen, star={**seen.star, "target": seen.star["target"][:, 1:]})
    broken = {group: values.copy() for group, values in seen.posterior.items()}
    broken["null"][2, 3, 0] = math.nan
    with pytest.raises(FloatingPointError, match="a null model is not a number"):
        replace(seen, posterior=broken)
    with pytest.raises(BadInput, match=r"beta is 0\.0"):
        JudgeSettings(0.0)
    assert isinstance(shadows.shadow_rows(seen, seen.shadow_member)[0], ShadowRows)
