"""The simulated audits of given models: who was trained on is known, and verdicts are held against it."""

from __future__ import annotations

import json

import numpy as np
import pytest

from benchmarks import given_simulation
from benchmarks.given_lists import LISTED, REST, SCENARIOS, UNLISTED, drawn
from benchmarks.given_simulation import Case, Outcome, errors, main, outcome_of, plan_of, summary
from orchestrator.kinds import plan_from

COUNT = LISTED + UNLISTED + REST


def lists(scenario: str, seed: int = 0):
    """Return the points of a scenario, of images that are noise."""
    rng = np.random.default_rng(seed)
    x, y = rng.random((COUNT, 1, 14, 14)).astype(np.float32), rng.integers(0, 10, COUNT)
    points = drawn(x, y, seed)
    SCENARIOS[scenario].change(points, np.random.default_rng(seed))
    return points


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_lists_say_of_who_was_trained_on_what_the_scenario_says(scenario: str) -> None:
    points, truth = lists(scenario), SCENARIOS[scenario].truth
    share = np.isin(points.members, points.trained).mean()
    assert {"members": share == 1, "some": 0.2 < share < 0.8, "nobody": share < 0.15}[truth], share
    assert len(points.trained) == LISTED and not np.isin(points.members, points.others).any()
    assert len(np.unique(points.members)) == len(points.members) and points.x.shape[0] == len(points.y)
    assert points.x.min() >= 0 and points.x.max() <= 1 and points.x.dtype == np.float32


@pytest.mark.parametrize("kind", given_simulation.KINDS)
def test_plans_of_all_audits_are_plans(kind: str, tmp_path) -> None:
    plan = plan_from(plan_of(Case(kind, "honest", "over-fitted", 1), tmp_path))
    assert plan.kind.startswith(kind)


def test_errors_are_counted_of_the_cases_that_they_are_about(tmp_path, capsys) -> None:
    verdict = {
        "level": "leak",
        "controls": [{"name": "own models", "state": "failed"}, {"name": "direction of scores", "state": "held"}],
        "findings": [{"attack": "rmia", "value": 0.7, "low": 0.6, "high": 0.8}, {"attack": "loss", "value": None}],
    }
    document = {"verdict": verdict, "own": [{"attack": "rmia", "auc": 0.69}]}
    cases = [Case("mia", name, "over-fitted", 1) for name in ("honest", "nobody", "blurred, nobody")]
    found = [outcome_of(case, document, 1, 2.0) for case in cases]
    assert found[0] == Outcome(cases[0], "leak", ("own models",), 0.7, 0.6, 0.8, 0.69, 1, 2.0)
    told = "\n".join(errors(found))
    assert "false leaks 2 of 2" in told and "false reassurance 0 of 1" in told and "leaks found 1 of 1" in told
    assert "| mia | honest | members | over-fitted | 1 | 1 | 0 | 0 | 0.700 | own models 1 |" in summary(found)
    (tmp_path / "outcomes.jsonl").write_text('{"cut')
    assert main(["--out", str(tmp_path), "--table", "--scenarios", "honest", "--seeds", "1"]) == 0
    assert "false leaks" not in capsys.readouterr().out


def test_a_call_goes_on_where_another_one_ended(tmp_path, capsys, monkeypatch) -> None:
    def carried_out(some, workers):
        for case in some:
            yield Outcome(case, "leak", (), 0.7, 0.6, 0.8, 0.7, 1, 2.0)

    monkeypatch.setattr(given_simulation, "in_processes", carried_out)
    words = ["--out", str(tmp_path), "--scenarios", "honest"]
    assert main([*words, "--seeds", "1"]) == main([*words, "--seeds", "2"]) == 0
    lines = [json.loads(line) for line in (tmp_path / "outcomes.jsonl").read_text().splitlines()]
    assert len(lines) == 6 and len({json.dumps(line["case"]) for line in lines}) == 6
    assert "honest leaks found 2 of 2" in capsys.readouterr().out
