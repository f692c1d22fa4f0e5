"""The benchmark of gradient uniqueness runs, agrees with itself and leaves a record."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks import gnq, gnq_gram, gnq_gram_forms, gnq_uniqueness
from benchmarks.record import environment


def test_the_quick_form_leaves_a_record_whose_forms_agree(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gnq.main(["--part", "uniqueness", "--quick", "--repeats", "1", "--json", str(tmp_path / "a.json")])
    document = json.loads(capsys.readouterr().out)
    assert document == json.loads((tmp_path / "a.json").read_text())
    assert document["section"] == "gnq uniqueness cpu"
    (rows,) = (value for value in document.values() if isinstance(value, list) and value and "ratio" in value[0])
    for row in rows:
        assert set(row["ratio"]) == {gnq_uniqueness.DEFINITION, *gnq_uniqueness.PLAIN}
        assert row["parameters"] == gnq_uniqueness.PARAMETERS * row["n"]
        assert row["largest_difference"] < 1e-8
        assert all(ratio["least"] <= ratio["median"] <= ratio["most"] for ratio in row["ratio"].values())


def test_the_definition_is_that_of_the_paper() -> None:
    G = np.random.default_rng(0).normal(size=(5, 9))
    others = np.delete(G, 2, 0)
    truth = G[2] @ np.linalg.pinv(others.T @ others, hermitian=True, rcond=1e-12) @ G[2]
    assert gnq_uniqueness.definition(G, 2) == pytest.approx(truth, rel=1e-9)
    assert gnq_uniqueness.whole_way(G)[2] == pytest.approx(truth, rel=1e-9)


def test_without_a_part_all_parts_run_and_each_fills_its_section(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = {
        name: replace(part, measure=lambda *given: {}, tables=lambda record: "made") for name, part in gnq.PARTS.items()
    }
    monkeypatch.setattr(gnq, "PARTS", made)
    sections = ("gnq gram cpu", "gnq uniqueness cpu")
    docs = tmp_path / "benchmarks.md"
    docs.write_text("".join(f"<!-- begin: {name} -->\nold\n<!-- end: {name} -->\n" for name in sections))
    gnq.main(["--quick", "--markdown", "--docs", str(docs)])
    shown = capsys.readouterr().out
    assert docs.read_text() == shown
    assert [shown.count(name) for name in sections] == [2, 2] and "old" not in shown
    with pytest.raises(SystemExit, match="2"):
        gnq.main(["--quick", "--json", str(tmp_path / "a.json")])
    assert "--json holds the record of one part; choose one of gram, uniqueness by --part" in capsys.readouterr().err


@pytest.mark.long
def test_the_gram_part_compares_equal_matrices_and_draws_its_tables(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In short: the next test."""
    gnq.main(["--part", "gram", "--quick", "--json", str(tmp_path / "a.json"), "--markdown"])
    shown, document = capsys.readouterr().out, json.loads((tmp_path / "a.json").read_text())
    assert document["section"] == "gnq gram cpu"
    assert document["command"] == "python -m benchmarks.gnq --part gram --quick"
    assert [case["model"] for case in document["cases"]] == ["mlp", "cnn"]
    for case in document["cases"]:
        assert case["largest_difference"] < 1e-8
        for size in case["sizes"]:
            for name in gnq_gram_forms.PLAIN:
                assert f"| {case['model']} | {size['n']} | {name} |" in shown
                least, middle, most = (size["ratio"][name][word] for word in ("least", "median", "most"))
                assert 0 < least <= middle <= most
    assert [size["n"] for size in document["cases"][1]["growth"]] == [8, 16]
    assert "not run" not in shown


@pytest.mark.parametrize("model", ["mlp", pytest.param("", marks=pytest.mark.long)])
def test_the_gpus_case_runs_at_a_tiny_size_and_says_what_is_carried_on(model: str) -> None:
    (case,) = gnq_gram_forms.CASES["cuda"]
    small = replace(case, shape=(3, 16, 16), sizes=(3,), growth=(3, 6), settings={**case.settings, "width": 2})
    if model:
        small = replace(small, model=model, settings={"hidden": [4]})
    found = gnq_gram.measured(small, 1, "cpu", 1, apart=False)
    assert found["dtype"] == "float32"
    for size, seconds in zip(found["growth"], (1.5, 6.0), strict=True):
        size["usual"]["seconds"] = seconds
    record = {
        "section": "gnq gram cuda",
        "command": "",
        "environment": environment("cpu", 1),
        "repeats": 1,
        "load_average_at_end": 0.0,
        "cases": [found],
    }
    shown = gnq_gram.tables(record)
    assert "From N = 3 to 6 the time grew 4-fold" in shown
    assert "takes 1 110 000 minutes" in shown  # 6 s × (20 000 / 6)² / 60
    assert "K 2.98 GiB: an extrapolation" in shown


def test_forms_that_disagree_are_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    right = gnq_gram_forms.FORMS["Opacus"]
    monkeypatch.setitem(gnq_gram_forms.FORMS, "Opacus", lambda *given: right(*given) * (1 + 1e-6))
    with pytest.raises(SystemExit, match=r"mlp: the forms differ by 1\.0e-06"):
        gnq.main(["--part", "gram", "--quick"])


@pytest.mark.parametrize(
    ("part", "device", "says"),
    [("uniqueness", "cuda", "uniqueness runs on cpu"), ("gram", "tpu", "gram runs on cpu or cuda")],
)
def test_a_device_that_a_part_does_not_know_is_refused(
    part: str, device: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        gnq.main(["--part", part, "--quick", "--device", device])
    assert says in capsys.readouterr().err


@pytest.mark.parametrize("section", ["gnq uniqueness cpu", "gnq gram cpu", "gnq gram cuda"])
def test_its_sections_stand_in_the_documents(section: str) -> None:
    text = (Path(__file__).parents[2] / "docs" / "results" / "benchmarks.md").read_text()
    assert text.count(f"<!-- begin: {section} -->") == text.count(f"<!-- end: {section} -->") == 1
