"""The benchmark against peers hands them what ours gets: stand-ins that score as we do give our numbers."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest
from scipy.stats import norm

from audits.signals.confidence import scaled
from audits.signals.likelihood_ratio import log_likelihood_ratio, surprise
from audits.signals.moderated import moderated_moments
from audits.signals.rmia import dominance, evidence_of
from audits.statistics.roc import auc
from benchmarks import peers_mia, peers_mia_forms, record
from benchmarks.peers_mia_answers import Handed, Known
from benchmarks.peers_mia_forms import LEAKPRO, OURS, SACROML, forms
from benchmarks.peers_mia_tables import verdict
from tests.cases.imported import imported_with

ROOT = Path(__file__).resolve().parents[2]


def target(pool: int, leak: float = 4.0) -> Handed:
    """A target and six shadows that are surer of what they were trained on, the points in no order of membership."""
    random = np.random.default_rng(pool)
    count, classes = 60, 4
    sides = [random.permutation(count) < count // 2 for _ in range(4)]
    half = np.stack([side for pair in sides[1:] for side in (pair, ~pair)])
    labels = random.integers(classes, size=count)
    hard = random.normal(size=(count, classes))

    def logits(trained: np.ndarray) -> np.ndarray:
        own = np.arange(classes) == labels[:, None]
        return (hard + random.normal(size=hard.shape) + own * (1 + leak * trained[:, None])).astype(np.float32)

    known = Known(
        random.integers(classes, size=30),
        random.normal(size=(30, classes)).astype(np.float32),
        random.normal(size=(6, 30, classes)).astype(np.float32),
    )
    return Handed(pool, labels, logits(sides[0]), np.stack([logits(own) for own in half]), half, sides[0], known, None)


def log_softmax(logits: np.ndarray) -> np.ndarray:
    values = logits.astype(np.float64)
    return values - np.log(np.exp(values).sum(-1, keepdims=True))


def moderated(asked: np.ndarray, values: np.ndarray, outside: np.ndarray) -> np.ndarray:
    mean, variance = moderated_moments(values, outside)
    return -norm.logsf(asked, mean, np.sqrt(variance))


class LeakProStandIn:
    """An attack that asks its handlers as LeakPro's do, and scores as ours."""

    def __init__(self, handler, configs):
        self.handler, self.configs = handler, configs

    def prepare_attack(self):
        handler, shadows = self.handler, self.module.ShadowModelHandler()
        assert handler.population_size == len(handler.population) == 60
        data = np.concatenate([handler.train_indices, handler.test_indices])
        numbers = shadows.create_shadow_models(
            num_models=self.configs["num_shadow_models"], shadow_population=np.arange(60), training_fraction=0.5
        )
        shadows.get_shadow_models(numbers)
        self.members = len(handler.train_indices)
        self.labels = handler.get_labels(data)
        self.half = shadows.get_in_indices_mask(numbers, data).T
        target = shadows.load_logits(name=f"target_{shadows.target_model_hash}")
        answers = np.stack([shadows.load_logits(indx=number) for number in numbers])
        self.target, self.shadows = log_softmax(target), log_softmax(answers)
        self.soft, self.soft_shadows = log_softmax(target / 2), log_softmax(answers / 2)

    def run_attack(self):
        member = np.arange(60) < self.members
        signals = self.score()
        assert auc(signals, member) > 0.7, "who comes first is no member"
        return SimpleNamespace(signal_values=signals[:, None])


class LiRAStandIn(LeakProStandIn):
    def score(self):
        asked, values = scaled(self.target, self.labels), scaled(self.shadows, self.labels)
        if self.configs["online"]:
            return log_likelihood_ratio(asked, np.stack([values] * 2), np.stack([self.half, ~self.half]))
        return surprise(asked, values, ~self.half)


class RMIAStandIn(LeakProStandIn):
    def score(self):
        rows = np.arange(60)
        expected = evidence_of(self.soft_shadows[:, rows, self.labels], np.stack([self.half, ~self.half]))
        return dominance(self.soft[rows, self.labels] - expected, np.zeros(1))


class SacroStandIn:
    """An attack that reads its shadows from its folder as SACRO-ML's does, and scores as ours."""

    saved: ClassVar[dict] = {}

    def __init__(self, output_dir, write_report, n_shadow_models, mode, fix_variance, report_individual):
        self.pooled = fix_variance
        self.shadow_path, self.count, self.mode, self.result = output_dir, n_shadow_models, mode, {}
        assert report_individual and not write_report

    def _run(self, shadow_clf, x_train, y_train, proba_train, x_test, y_test, proba_test):
        points, labels = np.vstack([x_train, x_test]), np.hstack([y_train, y_test])
        shadows = [self.saved[self.shadow_path, number] for number in range(self.count)]
        half = np.stack([np.isin(np.arange(60), inside) for _, inside, _ in shadows])
        assert all(np.array_equal(np.flatnonzero(~own), out) for own, (_, _, out) in zip(half, shadows, strict=True))
        values = scaled(np.log(np.stack([model.predict_proba(points) for model, _, _ in shadows])), labels)
        asked = scaled(np.log(np.vstack([proba_train, proba_test])), labels)
        if self.mode == "online-carlini":
            scores = log_likelihood_ratio(asked, np.stack([values] * 2), np.stack([half, ~half]))
        else:
            scores = (surprise if self.pooled else moderated)(asked, values, ~half)
        assert auc(scores, np.arange(60) < len(y_train)) > 0.7, "who comes first is no member"
        self.result["member_prob"] = list(scores)


def save(path, number, model, inside, outside):
    SacroStandIn.saved[path, number] = model, inside, outside


@pytest.fixture
def stand_ins(monkeypatch):
    """Put modules named as the peers' in their place."""

    def module(name: str, **content) -> ModuleType:
        made = ModuleType(name)
        made.__dict__.update(content)
        monkeypatch.setitem(sys.modules, name, made)
        return made

    for name in ("leakpro", "leakpro.attacks", "sacroml", "sacroml.attacks"):
        module(name).__path__ = []
    attacks = module("leakpro.attacks.mia_attacks")
    attacks.__path__ = []
    for name, kind, form in (
        ("lira", "AttackLiRA", LiRAStandIn),
        ("rmia", "AttackRMIA", RMIAStandIn),
        ("base", "AttackBASE", RMIAStandIn),
    ):
        own = module(f"leakpro.attacks.mia_attacks.{name}", ShadowModelHandler=None)
        setattr(own, kind, type(kind, (form,), {"module": own}))
        setattr(attacks, name, own)
    module("sacroml.attacks.likelihood_attack", LIRAAttack=SacroStandIn)
    module("sacroml.attacks.utils", save_shadow_model=save)
    monkeypatch.setattr(peers_mia_forms, "missing", lambda: [])
    monkeypatch.setattr(peers_mia, "missing", lambda: [])


def scores(name: str, handed: Handed) -> np.ndarray:
    (form,) = (form for form in forms() if form.name == name)
    with form.prepared(handed) as score:
        return score()


def test_stand_ins_for_peers_that_score_as_ours_give_our_scores_point_by_point(stand_ins):
    one = target(0)
    assert not one.member[: one.member.sum()].all()
    for name, same in [
        ("LeakPro, LiRA online", "ours, LiRA online"),
        ("LeakPro, LiRA offline", "ours, LiRA offline"),
        ("SACRO-ML, online-carlini, variance of all points", "ours, LiRA online"),
        ("SACRO-ML, offline, variance of all points", "ours, LiRA offline"),
        ("SACRO-ML, offline, variance per point", "ours, LiRA offline, moderated"),
    ]:
        np.testing.assert_allclose(scores(name, one), scores(same, one), rtol=1e-6, atol=1e-6)


def test_rmia_of_a_stand_in_orders_points_as_ours(stand_ins):
    one = target(0)
    found, same = scores("LeakPro, RMIA online", one), scores("ours, RMIA softened", one)
    assert np.array_equal(np.argsort(found), np.argsort(same))


@pytest.mark.long
def test_peers_are_compared_with_ours_that_asks_the_same_and_differences_are_paired(stand_ins):
    document = peers_mia.measured([target(pool) for pool in (0, 0, 1, 1, 2, 2)])
    rows = {row["name"]: row for row in document["attacks"]}
    assert len(rows) == len(OURS) + len(LEAKPRO) + len(SACROML)
    assert (document["pools"], document["targets"], document["shadows"], document["points"]) == (3, 6, 6, 60)
    for row in document["attacks"]:
        assert row["auc"]["low"] <= row["auc"]["mean"] <= row["auc"]["high"]
    same = rows["LeakPro, LiRA online"]
    assert same["difference"] == {"mean": 0, "low": 0, "high": 0, "p": 1, "targets": 3, "p_holm": 1}
    assert same["auc"] == rows["ours, LiRA online"]["auc"]
    online, offline = rows["ours, RMIA softened"]["auc"]["mean"], rows["ours, RMIA offline"]["auc"]["mean"]
    told = rows["LeakPro, RMIA offline"]
    assert told["difference"]["mean"] == pytest.approx(offline - online, abs=2e-4)
    assert [row["name"] for row in document["promised"]] == [peers_mia.words(name) for name in OURS]


def test_a_difference_is_called_one_where_it_holds_over_all_comparisons(stand_ins):
    said = [verdict({"mean": mean, "p_holm": p}) for mean, p in ((0.1, 0.05), (0.1, 0.06), (-0.1, 0.01))]
    assert said == ["**ours higher**", "no difference", "**ours lower**"]
    rows = peers_mia.measured([target(pool) for pool in (0, 1, 2)])["attacks"]
    raw, held = (np.array([row["difference"][name] for row in rows if row["package"]]) for name in ("p", "p_holm"))
    assert held.min() == pytest.approx(min(1, raw.min() * len(raw)), rel=1e-3)
    assert (held >= raw).all() and (held > raw).any()


def test_pools_of_several_seeds_are_different_pools():
    runs = [[target(pool) for pool in (0, 0, 1)] for _ in range(2)]
    assert [one.pool for one in peers_mia.together(runs)] == [0, 0, 1, 2, 2, 3]


WITHOUT = """
import runpy, sys
sys.modules.update(dict.fromkeys(("ray", "mlflow", "leakpro", "sacroml")))
runpy.run_module("benchmarks.peers_mia", run_name="__main__")
"""


@pytest.mark.long
def test_it_runs_without_ray_and_mlflow(tmp_path):
    found = subprocess.run(
        [sys.executable, "-c", WITHOUT, "--quick", "--json", str(tmp_path / "a.json")],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert found.returncode == 0, found.stderr
    assert json.loads(found.stdout) == json.loads((tmp_path / "a.json").read_text())


def test_it_is_imported_without_ray_mlflow_and_peers():
    assert not {"ray", "mlflow", "leakpro", "sacroml"} & imported_with(Path(peers_mia.__file__)).keys()


@pytest.mark.long
def test_rows_of_peers_that_are_missing_are_left_out(tmp_path, monkeypatch, capsys):
    for name in ("leakpro", "sacroml"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setattr(peers_mia, "missing", lambda: [*peers_mia_forms.PEERS])
    monkeypatch.setattr(peers_mia_forms, "missing", lambda: [*peers_mia_forms.PEERS])
    peers_mia.main(["--quick", "--json", str(tmp_path / "a.json")])
    found = capsys.readouterr()
    document = json.loads(found.out)
    assert document == json.loads((tmp_path / "a.json").read_text())
    assert document["command"] == "python -m benchmarks.peers_mia --quick" and document["plan"] == "mia-smoke"
    assert [row["ours"] for row in document["attacks"]] == list(OURS) and document["peers"] == {}
    for name, way in peers_mia_forms.PEERS.items():
        assert found.err.count(f"{name} is not installed, its rows are left out ({way})") == 1
    assert all(0 <= row[f"fpr_{rate:g}"]["mean"] <= 1 for row in document["promised"] for rate in peers_mia.RATES)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["gnq-smoke"], "audit.kind is 'gnq' in the plan; allowed: mia"),
        (["no-such-plan"], "no-such-plan"),
    ],
)
def test_other_plans_are_refused_in_one_line(arguments, says, capsys, tmp_path):
    with pytest.raises(SystemExit) as stopped:
        peers_mia.main([*arguments, "--store", str(tmp_path)])
    assert stopped.value.code == 2
    assert says in capsys.readouterr().err


def test_the_docs_have_a_place_for_it():
    text = (Path(record.__file__).parent.parent / "docs" / "results" / "benchmarks.md").read_text()
    record.replace_section(text, "peers_mia cpu", "")
