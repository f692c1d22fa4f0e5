"""On a GPU the search benchmark runs."""

from __future__ import annotations

import json

import pytest

from benchmarks import apollo_search


@pytest.mark.gpu
def test_search_benchmark_runs_on_a_gpu(capsys):
    apollo_search.main(["--quick", "--device", "cuda", "--cases", "mlp"])
    document = json.loads(capsys.readouterr().out)
    assert document["section"] == "apollo_search cuda"
    assert document["cases"][0]["forms"]["batched"]["peak_bytes"] > 0
