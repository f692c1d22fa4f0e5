"""The benchmark of HopSkipJump compares point by point at equal queries; how fast or near anything is, no test asks."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest
import torch
from torch import nn

from audits.queries.hop_skip_jump import RANK
from benchmarks import hop_skip_jump, hop_skip_jump_models, record
from benchmarks.hop_skip_jump_peers import Budget, Counting, Problem, gradient, matched, ours, spent


@pytest.fixture
def problem() -> Problem:
    generator = torch.Generator().manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(16, 3))
    with torch.no_grad():
        model[1].weight.copy_(torch.randn(3, 16, generator=generator))
        model[1].bias.copy_(-model[1].weight.sum(1) / 2)
    x, pool = (torch.rand(count, 1, 4, 4, generator=generator) for count in (5, 50))
    return Problem(Counting(model).eval(), x, model(x).argmax(1), pool, model(pool).argmax(1))


@pytest.mark.parametrize("noise", [False, True])
def test_our_queries_are_counted_and_what_is_found_is_across(problem, noise):
    found = spent(problem, lambda p: ours(p, RANK, noise))
    assert found["queries"] == RANK.queries
    assert found["distance"].isfinite().all() and found["cpu_seconds"] > 0


def test_what_is_not_across_is_not_a_distance(problem):
    found = spent(problem, lambda p: torch.cat([p.x[:2], torch.full_like(p.x[2:], torch.nan)]))
    assert found["distance"].isnan().all() and found["queries"] == 0


def test_the_nearest_start_image_of_another_label_is_taken(problem):
    start = problem.nearest_start(6)
    far = (problem.starts(6) - problem.x.flatten(1)[:, None]).norm(dim=2)
    other = problem.model(problem.starts(6).reshape(-1, 1, 4, 4)).argmax(1).reshape(5, 6) != problem.y[:, None]
    assert problem.across(start).all()
    assert torch.allclose((start - problem.x).flatten(1).norm(dim=1), far.where(other, torch.inf).amin(1))


@pytest.mark.parametrize("queries", [300, 1000, 3734])
def test_a_peer_gets_the_budget_that_comes_nearest(problem, queries):
    def search(asked: Problem, budget: Budget) -> torch.Tensor:
        many = 30 + 17 * budget.rounds + sum(int(budget.directions * t**0.5) for t in range(1, budget.rounds + 1))
        asked.model(asked.x.repeat(many, 1, 1, 1))
        return asked.x

    budget = matched(problem, search, queries)
    assert spent(problem, lambda p: search(p, budget))["queries"] == pytest.approx(queries, rel=0.02)
    assert 50 <= budget.directions <= 200
    assert gradient(2) == 241


def test_searches_are_compared_point_by_point_and_failures_left_out():
    def found(*distance: float) -> dict:
        return {"distance": torch.tensor(distance, dtype=torch.float64), "queries": 316.0, "cpu_seconds": 0.1}

    near, noisy = found(1, 2, 3, 4), found(2, 2, 2, 2)
    rows = hop_skip_jump.compared(
        {
            "ours, from images": near,
            "ours, from noise": noisy,
            "ART, from noise": found(4, 4, 1, torch.nan),
            "foolbox, from images, all at once": found(*[torch.nan] * 4),
            "foolbox, from images, one by one": {
                **found(2, 4, 6, 8),
                "cpu_seconds": 0.2,
                "rounds": 9,
                "directions": 98,
            },
        }
    )
    assert [row["found"] for row in rows] == [4, 4, 3, 0, 4]
    assert (rows[0]["median"], rows[0]["p90"]) == (2.5, 3.7) and rows[2]["p90"] == 4
    assert [row.get("cpu_ratio") for row in rows] == [None, None, 1, 1, 0.5]
    assert rows[2]["ratio"]["mean"] == pytest.approx((0.5 * 0.5 * 2) ** (1 / 3), rel=1e-3)
    assert rows[2]["ours_nearer"] == pytest.approx(2 / 3, rel=1e-3)
    assert "ratio" not in rows[3] and rows[4]["ratio"] == {"mean": 0.5, "low": 0.5, "high": 0.5}
    assert (rows[4]["median"], rows[4]["rounds"], rows[4]["directions"]) == (5, 9, 98)


def test_missing_peers_are_told_with_the_way_to_install_them(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(
        SystemExit, match=r"art and foolbox cannot be imported; .* pip install --editable '.\[parity\]'"
    ):
        hop_skip_jump.main([])


@pytest.mark.parametrize("module", [hop_skip_jump, hop_skip_jump_models])
def test_impossible_sizes_are_refused(module, capsys):
    with pytest.raises(SystemExit) as stopped:
        module.main(["--points", "0"])
    assert stopped.value.code == 2
    assert "--points 0" in capsys.readouterr().err


@pytest.mark.long
def test_many_models_are_asked_in_both_forms_and_the_record_is_printed(capsys):
    hop_skip_jump_models.main(["--quick"])
    document = json.loads(capsys.readouterr().out)
    assert (document["models"], document["points"], document["queries"]) == (2, 3, RANK.queries)
    assert document["largest_difference"] <= 1e-9
    assert all(len(each) == 1 and each[0] > 0 for each in document["milliseconds"].values())


def test_forms_that_differ_are_not_timed(monkeypatch):
    one = hop_skip_jump_models.distances_of_models
    monkeypatch.setattr(hop_skip_jump_models, "distances_of_models", lambda *given: one(*given) + 1e-6)
    with pytest.raises(SystemExit, match=r"the two forms differ by 1\.0e-06 in float64"):
        hop_skip_jump_models.main(["--quick"])


def test_the_docs_have_a_place_for_every_section():
    text = (Path(record.__file__).parent.parent / "docs" / "results" / "benchmarks.md").read_text()
    for section in ("hop_skip_jump cpu", "hop_skip_jump cpu rank", "hop_skip_jump_models cpu"):
        record.replace_section(text, section, "")
