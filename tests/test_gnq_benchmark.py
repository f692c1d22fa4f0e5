"""The benchmark of gradient uniqueness runs, agrees with itself and leaves a record."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import gnq


def test_the_quick_form_leaves_a_record_whose_forms_agree(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gnq.main(["--part", "uniqueness", "--quick", "--repeats", "1", "--json", str(tmp_path / "a.json")])
    document = json.loads(capsys.readouterr().out)
    assert document == json.loads((tmp_path / "a.json").read_text())
    assert document["section"] == "gnq uniqueness cpu"
    (rows,) = (value for value in document.values() if isinstance(value, list) and value and "ratio" in value[0])
    for row in rows:
        assert row["largest_difference"] < 1e-8
        assert all(ratio["least"] <= ratio["median"] <= ratio["most"] for ratio in row["ratio"].values())


def test_its_section_stands_in_the_documents() -> None:
    text = (Path(__file__).parent.parent / "docs" / "benchmarks.md").read_text()
    assert text.count("<!-- begin: gnq uniqueness cpu -->") == text.count("<!-- end: gnq uniqueness cpu -->") == 1
